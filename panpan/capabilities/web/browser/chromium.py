"""Which Chromium is started, and with which arguments.

The rule: what the page of a stranger runs in has one way out, the proxy. Each argument here closes another way, or
takes away something that no page has to have.
"""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from panpan.errors import ToolError

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge")
"""What Chromium is called on the path, best first."""
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
"""Below the folder into which `playwright install chromium` puts it."""

DRIVER = "playwright>=1.55,<2"
"""The package that drives Chromium, as in the extra `browser` of pyproject.toml."""

PROXY_HOST = "proxy.panpan.invalid"
"""The one name that Chromium finds the address of. RFC 6761, section 6.4: nobody has a host in `invalid`."""

NOWHERE = "http://192.0.2.1:9"
"""The proxy of what belongs to no page. RFC 5737: nobody has this address."""

_WITHOUT = (
    "--disable-popup-blocking",  # without it, scripts open no windows that nobody clicked for
    "--disable-ipc-flooding-protection",  # without it, scripts that go elsewhere for ever are slowed down
    "--enable-unsafe-swiftshader",  # drawing in three dimensions is of no use, and a way to attack Chromium
)


def find_chromium(chosen: str, search_path: str, env: Mapping[str, str]) -> str:
    """Return the program to start.

    Args:
        chosen: The setting: auto, off or an absolute path.
        search_path: Where to look, as in `PATH`; without folders of the project.
        env: The environment; says where Playwright puts its own browsers.

    Raises:
        ToolError: There is none, or none is wanted; says what to do.
    """
    if chosen == "off":
        raise ToolError("the browser is switched off (web.browser in the settings)")
    if chosen != "auto":
        if not Path(chosen).is_absolute() or shutil.which(chosen) is None:
            raise ToolError(f"web.browser in the settings names {chosen}, which is no program by its absolute path")
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
    """Return what Chromium is started with, beside what Playwright starts it with.

    Args:
        hides_driver: Whether pages are to see less of what tells that a program drives it.
    """
    return (
        # No name leads anywhere but that of the proxy, and no address of this machine either: what Chromium would ask
        # for directly, it does not find. Names are looked up by the proxy.
        f"--host-resolver-rules=MAP {PROXY_HOST} 127.0.0.1, MAP * ~NOTFOUND",
        # UDP goes past every proxy: none for WebRTC, none for HTTP/3.
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--disable-quic",
        # What Chromium does of its own accord: guesses at names and pages, reports, safe browsing, translation.
        "--dns-prefetch-disable",
        "--no-pings",
        "--disable-domain-reliability",
        "--disable-client-side-phishing-detection",
        "--disable-remote-fonts",
        # What pages are not given: drawing in three dimensions, speech, files, notifications, remote control.
        "--disable-3d-apis",
        "--disable-speech-api",
        "--disable-file-system",
        "--disable-notifications",
        "--deny-permission-prompts",
        "--disable-presentation-api",
        "--disable-remote-playback-api",
        # A page may take so many megabytes for its objects, and all pages together so many processes.
        "--js-flags=--max-old-space-size=512",
        "--renderer-process-limit=8",
        *(("--disable-blink-features=AutomationControlled",) if hides_driver else ()),
    )


def left_out() -> tuple[str, ...]:
    """Return what Playwright would start Chromium with, and panpan does not."""
    return _WITHOUT


def can_have_sandbox() -> bool:
    """Return whether Chromium can bound its own processes: never as root, for which it refuses to start with them."""
    return os.geteuid() != 0
