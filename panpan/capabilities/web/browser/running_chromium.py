"""One Chromium: which is started, with which arguments, and its end with all of its processes and files."""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import TYPE_CHECKING, Any, Self

import anyio
from anyio import CancelScope, to_thread

from panpan.errors import ToolError
from panpan.system.environment import how_to_install
from panpan.system.files.folder_tree import remove_tree
from panpan.system.processes.own_process import with_watchdog
from panpan.system.processes.process_table import ProcessTree
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from playwright.async_api import Browser as Driven
    from playwright.async_api import Playwright


# A process that runs untrusted pages has one way out, the proxy. Each argument here closes another way, or removes
# something that no page needs.

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge")
"""Names of Chromium on the path, best first."""
MAC_PROGRAMS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
)
_OF_PLAYWRIGHT = (
    "chromium-*/chrome-linux*/chrome",
    "chromium-*/chrome-mac*/Chromium.app/Contents/MacOS/Chromium",
    "chromium-*/chrome-mac*/Google Chrome for Testing.app/Contents/MacOS/Google Chrome for Testing",
)
"""Paths of Chromium below the folder of `playwright install chromium`."""

DRIVER = "playwright>=1.55,<2"
"""The package that drives Chromium, as in the extra `browser` of pyproject.toml."""

PROXY_HOST = "proxy.panpan.invalid"
"""The one name that Chromium finds the address of. RFC 6761, section 6.4: nobody has a host in `invalid`."""

NOWHERE = "http://192.0.2.1:9"
"""The proxy of what belongs to no page. RFC 5737: nobody has this address."""

_WITHOUT = (
    "--disable-popup-blocking",  # without it, scripts cannot open windows without a click
    "--disable-ipc-flooding-protection",  # without it, scripts that navigate endlessly are throttled
    "--enable-unsafe-swiftshader",  # 3D graphics are useless here, and a way to attack Chromium
)


def find_chromium(chosen: str, search_path: str, env: Mapping[str, str]) -> str:
    """Return the program to start: `chosen` is auto, off or an absolute path.

    `search_path` holds no folders of the project; `env` says where Playwright puts its own browsers.

    Raises:
        ToolError: There is none, or none is wanted; says what to do.
    """
    if chosen == "off":
        raise ToolError("the browser is switched off (web.browser in the settings)")
    if chosen != "auto":
        if not Path(chosen).is_absolute() or shutil.which(chosen) is None:
            raise ToolError(f"web.browser in the settings names {chosen}, which is not the absolute path of a program")
        return chosen
    found = next((path for name in PROGRAMS if (path := shutil.which(name, path=search_path))), None)
    found = found or next(_elsewhere(env), None)
    if found is None:
        raise ToolError(
            "there is no Chromium or Chrome for pages that need a browser; install one (Debian and Ubuntu: "
            "`apt install chromium`), or name its program in the settings as web.browser"
        )
    return found


def _elsewhere(env: Mapping[str, str]) -> Iterator[str]:
    yield from (path for path in MAC_PROGRAMS if os.access(path, os.X_OK))
    home = Path(env.get("HOME") or "/nonexistent")
    usual = home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "ms-playwright"
    folder = Path(env.get("PLAYWRIGHT_BROWSERS_PATH") or usual)
    if folder.is_absolute():
        found = (path for pattern in _OF_PLAYWRIGHT for path in sorted(folder.glob(pattern), reverse=True))
        yield from (str(path) for path in found if os.access(path, os.X_OK))


def arguments(*, hides_driver: bool) -> tuple[str, ...]:
    """Return Chromium's arguments, besides those of Playwright."""
    return (
        # No name resolves but the proxy's, and no address of this machine, so direct requests of Chromium fail. The
        # proxy looks up names.
        f"--host-resolver-rules=MAP {PROXY_HOST} 127.0.0.1, MAP * ~NOTFOUND",
        # UDP bypasses every proxy: disable it for WebRTC and HTTP/3.
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--disable-quic",
        # What Chromium does by itself: guesses at names and pages, reports, safe browsing, translation.
        "--dns-prefetch-disable",
        "--no-pings",
        "--disable-domain-reliability",
        "--disable-client-side-phishing-detection",
        "--disable-remote-fonts",
        # What pages do not get: 3D graphics, speech, files, notifications, remote control.
        "--disable-3d-apis",
        "--disable-speech-api",
        "--disable-file-system",
        "--disable-notifications",
        "--deny-permission-prompts",
        "--disable-presentation-api",
        "--disable-remote-playback-api",
        # Limits: megabytes for a page's objects, and processes for all pages.
        "--js-flags=--max-old-space-size=512",
        "--renderer-process-limit=8",
        *(("--disable-blink-features=AutomationControlled",) if hides_driver else ()),
    )


def can_have_sandbox() -> bool:
    """Return True if Chromium can bound its own processes: never as root, for which it refuses to start with them."""
    return os.geteuid() != 0


# Whoever starts Chromium stops it, and removes the one folder in which Chromium and its driver may leave files. If
# panpan is killed, Playwright's driver sees the end of its input and stops Chromium. If the driver is killed, too,
# Chromium sees the end of the pipe that drives it.

START_S = 30.0
DRIVER_S = 10.0
_CLOSE_S = 3.0
_TERM_S = 0.5
_MAX_FOLDER_CHARS = 40


@dataclass(frozen=True, slots=True)
class Launch:
    """Program, environment and limits with which Chromium is started."""

    program: str
    env: Mapping[str, str]
    """Its whole environment; no keys."""
    hides_driver: bool = False
    """True if pages are to see less of what tells that a program drives it."""
    has_window: bool = False
    max_data_bytes: int = 4 << 30
    """Memory that one of its processes may have for data, where the system can bound it; Linux can."""


class RunningChromium:
    """Chromium, and the driver that Playwright puts in front. Made by `start`; `aclose` ends both."""

    def __init__(
        self, launch: Launch, tree: ProcessTree, folder: Path, playwright: "Playwright", driven: "Driven"
    ) -> None:
        self.launch = launch
        self.tree = tree
        self.folder = folder
        """Folder for temporary files of Chromium and its driver, removed with them."""
        self._playwright = playwright
        self._is_closed = False
        self.driven = driven

    @classmethod
    async def start(cls, launch: Launch) -> Self:
        """Start Chromium.

        Raises:
            ToolError: Playwright is not installed, or Chromium does not start; says what to do.
        """
        try:
            from playwright.async_api import Error, async_playwright
        except ImportError:
            raise ToolError(
                f"Playwright, which drives the browser, is not installed; run: {how_to_install(DRIVER)}"
            ) from None
        tree, folder = ProcessTree(), _new_folder()
        env = tree.marked(with_watchdog({**launch.env, "TMPDIR": str(folder)}))
        playwright: Playwright | None = None
        try:
            playwright = await _driver_started(async_playwright(), env)
            driven = await playwright.chromium.launch(
                executable_path=launch.program,
                headless=not launch.has_window,
                args=arguments(hides_driver=launch.hides_driver),
                ignore_default_args=_WITHOUT,
                chromium_sandbox=can_have_sandbox(),
                env=dict(env),
                proxy={"server": NOWHERE, "bypass": "<-loopback>"},
                timeout=START_S * 1000,
                handle_sigint=False,  # panpan handles signals
                handle_sigterm=False,
                handle_sighup=False,
            )
            await to_thread.run_sync(_bound_memory, tree, launch.max_data_bytes)
            return cls(launch, tree, folder, playwright, driven)
        except BaseException as exc:
            with CancelScope(shield=True):
                if playwright is not None:
                    await _stopped(playwright)
                await tree.end(_TERM_S)
                await to_thread.run_sync(_remove, folder)
            if isinstance(exc, Error):
                raise ToolError(_why_not_started(launch, str(exc))) from exc
            raise

    @property
    def is_alive(self) -> bool:
        """True if it can be asked for pages."""
        return not self._is_closed and self.driven.is_connected()

    async def kill(self) -> None:
        """End a Chromium that no longer answers; cannot be cancelled."""
        self._is_closed = True
        await self.tree.end(0)
        await self.aclose()

    async def aclose(self) -> None:
        """End Chromium and all of its processes; cannot be cancelled, and takes some seconds at most."""
        from playwright.async_api import Error

        self._is_closed = True
        with CancelScope(shield=True):
            with anyio.move_on_after(_CLOSE_S), suppress(Error):
                await self.driven.close()
            await _stopped(self._playwright)
            await self.tree.end(_TERM_S)
            await to_thread.run_sync(_remove, self.folder)


async def _driver_started(starting: Any, env: Mapping[str, str]) -> "Playwright":
    """Start Playwright's driver in an environment of its own; it would have panpan's, with all keys."""
    from playwright._impl import transport

    transport.get_driver_env = _driver_environment  # type: ignore[attr-defined]  # there is no argument for it
    given = _GIVEN_ENVIRONMENT.set(env)
    try:
        with anyio.fail_after(DRIVER_S, shield=True):  # nobody could stop a half-started driver (0.5 s)
            playwright: Playwright = await starting.start()
    except TimeoutError:
        raise ToolError(f"Playwright did not start within {DRIVER_S:g} s") from None
    except Exception as exc:
        raise ToolError(f"Playwright does not start: {_first_line(exc)}") from exc
    finally:
        _GIVEN_ENVIRONMENT.reset(given)
    _hear_of_end(starting)
    return playwright


_GIVEN_ENVIRONMENT: ContextVar[Mapping[str, str] | None] = ContextVar("_GIVEN_ENVIRONMENT", default=None)
"""Environment for the driver that this task starts; another session that starts one meanwhile has its own."""


def _driver_environment() -> dict[str, str]:
    """Return the environment of the driver that is being started here; whoever else starts one gets the usual."""
    from playwright._impl._driver import get_driver_env

    usual, given = get_driver_env(), _GIVEN_ENVIRONMENT.get()
    if given is None:
        return usual
    return dict(given) | {name: value for name, value in usual.items() if name.startswith("PW_")}


def _new_folder() -> Path:
    """Make a folder whose name is short, since sockets lie in it, whose paths may have about a hundred characters."""
    usual = gettempdir()
    return Path(mkdtemp(prefix="pp-", dir=usual if len(usual) <= _MAX_FOLDER_CHARS else "/tmp"))


def _remove(folder: Path) -> None:
    with suppress(OSError):  # a folder that cannot be removed is no failure
        remove_tree(folder)


def _hear_of_end(starting: Any) -> None:
    """Take note of the driver's end, which calls fail with anyway; asyncio would print what nobody took note of."""
    with suppress(AttributeError):  # Playwright has no stable name for it
        ended = starting._client._transport.on_error_future
        ended.add_done_callback(lambda future: None if future.cancelled() else future.exception())


def _bound_memory(tree: ProcessTree, size_bytes: int) -> None:
    """Bound what runs already, among it what each page's process comes from.

    Not the addresses, of which Chromium takes terabytes without using them.
    """
    import resource

    if hasattr(resource, "prlimit"):
        for process in tree.members():
            with suppress(OSError, ValueError):  # it has ended, or has a lower limit already
                resource.prlimit(process.pid, resource.RLIMIT_DATA, (size_bytes, size_bytes))


async def _stopped(playwright: "Playwright") -> None:
    with anyio.move_on_after(_CLOSE_S), suppress(Exception):  # its driver may have ended already
        await playwright.stop()


def _why_not_started(launch: Launch, text: str) -> str:
    if "sandbox" in text and can_have_sandbox():
        return (
            f"{launch.program} does not start, since it cannot bound its own processes here; let users make namespaces "
            "(`sysctl kernel.unprivileged_userns_clone=1`), or install chromium-sandbox"
        )
    if launch.has_window and ("DISPLAY" in text or "X server" in text):
        return f"{launch.program} cannot open a window here"
    return f"{launch.program} does not start: {_first_line(text)}"


def _first_line(text: object) -> str:
    return str(text).strip().partition("\n")[0][:300]
