"""The browser of a session: started when the first page is wanted, ended with the session.

The rule: there is one, and it is started again at most once for a page. Where it cannot be had, the sentence says how
to get it; nothing else of panpan needs it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias
from urllib.parse import urlsplit

import anyio

from panpan.capabilities.web.browser.running_chromium import find_chromium
from panpan.capabilities.web.settings import WebSettings
from panpan.errors import ToolError
from panpan.system.environment import child_environment
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.folder_tree import make_private_folder
from panpan.system.files.read_file import read_regular_file
from panpan.system.web.network import WebNetwork
from panpan.system.web.url_guard import PlainUrl, plain_url
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

if TYPE_CHECKING:
    from panpan.capabilities.web.browser.running_chromium import Launch, RunningChromium


Scroll: TypeAlias = Literal["none", "smart", "full"]
"""Scrolling before a page is read: none, as long as more content loads (smart), or to the end (full)."""

Allow: TypeAlias = Callable[[PlainUrl], None]
"""Raises ToolError where an address is not to be asked for."""


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A page as a browser showed it."""

    url: str
    """Final address, after redirects."""
    status: int
    """HTTP status of the page itself."""
    html: str
    """The document after its scripts ran."""
    title: str
    notes: tuple[str, ...] = ()
    """Notes for the reader of the page, such as requests that were refused or not waited for."""


class PageRenderer(Protocol):
    """Opens pages in a browser."""

    async def render(self, url: str, *, wait_s: float, scroll: Scroll, allow: Allow) -> RenderedPage:
        """Open a page, wait and scroll as asked, and give what it became.

        Args:
            url: A public address, as somebody wrote it.
            wait_s: Seconds given to its scripts after it was loaded, 0 to 30.
            scroll: How far down it is scrolled.
            allow: Asked before the page itself goes anywhere, its first address included; where it does not, the page
                stays where it is, and says so.

        Raises:
            ToolError: There is no browser, with the way to get one; the address is refused; or it took too long.
        """
        ...


@dataclass(frozen=True, slots=True)
class BrowserTimeouts:
    """Time limits, in seconds, for the steps of showing a page."""

    open_s: float = 15.0
    """Opening a new page in Chromium, which takes a tenth of a second unless Chromium hangs."""
    begin_s: float = 60.0
    load_s: float = 15.0
    """Loading the document; after that it is read as far as it has loaded."""
    scroll_s: float = 0.4
    """Pause after each scroll, in which more content may load."""
    answer_s: float = 10.0
    """Reading the page; one whose scripts never pause cannot be read."""


@dataclass(frozen=True, slots=True)
class RenderRequest:
    """Address of a page, with the waiting and scrolling that are wanted."""

    plain: PlainUrl
    wait_s: float
    scroll: Scroll
    allow: Allow
    """Asked before the page itself goes anywhere."""


@dataclass(frozen=True, slots=True)
class BrowserProfile:
    """Identity and storage with which pages are shown."""

    user_agent: str | None = None
    """User agent that servers are sent; None: Chromium's own with `product`."""
    product: str = ""
    """The name of the program that drives the browser, unless it is hidden."""
    hides_driver: bool = False
    storage: Mapping[str, Any] | None = None
    """Cookies and local storage that a log-in has left, as Playwright keeps them."""


MAX_PAGES = 4
MAX_WAIT_S = 30.0
_STEPS_S = 60.0
"""Time for the start of the browser, scrolling and reading, besides the limits of the single steps."""


class Browser:
    """Shows pages. Close it with the session.

    Args:
        network: How the outside is reached.
        launch: Says how Chromium is started; asked when it is. Raises ToolError where there is none.
        max_pages: That are open at the same time; others wait.
        user_agent: User agent that servers are sent; None: Chromium's own with `product`.
        product: The name of this program, as `name/version`; not told where the driver is hidden.
        storage_for: Returns what a log-in to the site of a host has left, if there was one.
        waits: How long the steps of a page may take.
    """

    def __init__(
        self,
        network: WebNetwork,
        launch: Callable[[], "Launch"],
        *,
        max_pages: int = MAX_PAGES,
        user_agent: str | None = None,
        product: str = "",
        storage_for: Callable[[str], Mapping[str, Any] | None] = lambda _: None,
        timeouts: BrowserTimeouts | None = None,
    ) -> None:
        self._network = network
        self._launch = launch
        self._user_agent = user_agent
        self._product = product
        self._storage_for = storage_for
        self._timeouts = timeouts or BrowserTimeouts()
        self._free = anyio.Semaphore(max_pages)
        self._starting = anyio.Lock()
        self._chromium: RunningChromium | None = None
        self._is_closed = False

    @property
    def chromium(self) -> "RunningChromium | None":
        """Chromium while it runs; None otherwise."""
        return self._chromium

    async def render(self, url: str, *, wait_s: float, scroll: Scroll, allow: Allow) -> RenderedPage:
        """See `PageRenderer.render`."""
        request = RenderRequest(plain_url(url, self._network.private), min(max(wait_s, 0.0), MAX_WAIT_S), scroll, allow)
        storage = self._storage_for(request.plain.host)
        async with self._free:
            chromium = await self._running()
            try:
                return await self._rendered(chromium, request, storage)
            except ToolError:
                if chromium.is_alive or self._is_closed:
                    raise
            return await self._rendered(await self._running(), request, storage)  # Chromium itself crashed or hung

    async def aclose(self) -> None:
        """End the browser; nothing more is shown."""
        self._is_closed = True
        async with self._starting:
            if self._chromium is not None:
                await self._chromium.aclose()
                self._chromium = None

    async def _rendered(
        self, chromium: "RunningChromium", request: RenderRequest, storage: Mapping[str, Any] | None
    ) -> RenderedPage:
        from panpan.capabilities.web.browser.page_rendering import rendered_page

        profile = BrowserProfile(self._user_agent, self._product, chromium.launch.hides_driver, storage)
        limit_s = self._timeouts.begin_s + self._timeouts.load_s + request.wait_s + _STEPS_S
        try:
            with anyio.fail_after(limit_s):
                return await rendered_page(chromium, self._network, request, profile, self._timeouts)
        except TimeoutError:
            await chromium.kill()  # so that the next page does not wait for this one
            raise ToolError(f"the page of {request.plain.host} was given up after {limit_s:g} s") from None

    async def _running(self) -> "RunningChromium":
        """Return Chromium, started where it does not run."""
        from panpan.capabilities.web.browser.running_chromium import RunningChromium  # most sessions show no page

        async with self._starting:
            if self._is_closed:
                raise ToolError("the session is about to end; no page is opened any more")
            if self._chromium is not None and not self._chromium.is_alive:
                await self._chromium.aclose()
                self._chromium = None
            if self._chromium is None:
                _require_asyncio()
                self._chromium = await RunningChromium.start(self._launch())
            return self._chromium


def _require_asyncio() -> None:
    """Playwright waits for futures of asyncio, and for nothing else."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise ToolError(
            "there is no browser here: it needs asyncio, and the program that runs panpan runs it on trio"
        ) from None


# The user's log-ins: one file per site with its cookies and local storage, in Playwright's format. Such a file is as
# good as a password. Only the user may read it, it is used only for pages of its own site, and it exists only because
# the user logged in for this purpose.

MAX_BYTES = 5_000_000
_SITE = compile_late(r"[a-z0-9_.:-]{1,253}")


class SavedLogins:
    """The log-ins that are kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def sites(self) -> Sequence[str]:
        """Return the sites that there is a log-in for."""
        if not self._folder.is_dir():
            return ()
        return sorted(path.stem for path in self._folder.glob("*.json") if _SITE.fullmatch(path.stem))

    def storage_for(self, host: str) -> Mapping[str, Any] | None:
        """Return the log-in kept for the site of a host, or for the nearest one above it; None if there is none.

        Raises:
            ToolError: It cannot be read.
        """
        labels = host.split(".")
        names = {".".join(labels[start:]): None for start in range(len(labels) - 1)} or {host: None}
        site = next((name for name in names if self._place(name).is_file()), None)
        if site is None:
            return None
        try:
            storage = json.loads(read_regular_file(self._place(site), max_bytes=MAX_BYTES, follow_symlinks=True))
            return _of_site(storage, site)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise ToolError(
                f"the log-in that is kept for {site} is damaged; `panpan web logout {site}` forgets it"
            ) from None

    def keep(self, site: str, storage: Mapping[str, Any]) -> None:
        """Keep what belongs to a site, in place of what was kept for it; raise `ToolError` if it is too large."""
        data = json.dumps(_of_site(storage, site)).encode()
        if len(data) > MAX_BYTES:
            raise ToolError(f"the log-in to {site} left {len(data):,} bytes, of which {MAX_BYTES:,} can be kept")
        make_private_folder(self._folder)
        write_atomic(self._place(site), data, mode=0o600, follow_symlinks=True)

    def forget(self, site: str) -> bool:
        """Forget the log-in to a site; return whether there was one.

        Raises:
            ToolError: It is no site, or its file cannot be removed.
        """
        place = self._place(site)
        try:
            place.unlink()
        except FileNotFoundError:
            return False
        except OSError as exc:
            raise ToolError(f"the log-in to {site} is still there: {place} cannot be removed ({exc.strerror})") from exc
        return True

    def _place(self, site: str) -> Path:
        if not _SITE.fullmatch(site):
            raise ToolError(f"{site!r} is not a site; name it like example.org")
        return self._folder / f"{site}.json"


def _of_site(storage: Mapping[str, Any], site: str) -> Mapping[str, Any]:
    """Return the part of a storage that belongs to the site, without that of another site used for the log-in."""
    cookies = [cookie for cookie in storage["cookies"] if _is_related(cookie["domain"].lstrip("."), site)]
    origins = [origin for origin in storage["origins"] if _is_at(urlsplit(origin["origin"]).hostname or "", site)]
    return {"cookies": cookies, "origins": origins}


def _is_related(domain: str, site: str) -> bool:
    """True if the site sees a cookie of the domain, or has one below itself."""
    return _is_at(domain, site) or _is_at(site, domain)


def _is_at(host: str, site: str) -> bool:
    return host == site or host.endswith(f".{site}")


def browser_of(
    settings: WebSettings,
    network: WebNetwork,
    env: Mapping[str, str],
    search_path: Callable[[], str],
    logins: Path,
    product: str,
) -> Browser:
    """Return the browser of a session; nothing is started or looked for yet.

    `env` holds no keys, and `search_path` returns no folders of the project.
    """
    return Browser(
        network,
        lambda: launch_of(settings, env, search_path()),
        max_pages=settings.pages,
        user_agent=settings.user_agent,
        product=product,
        storage_for=SavedLogins(logins).storage_for,
    )


def launch_of(settings: WebSettings, env: Mapping[str, str], search_path: str, *, has_window: bool = False) -> "Launch":
    """Return the launch of Chromium; `env` holds no keys, and `search_path` no folders of the project.

    Raises:
        ToolError: There is none; says what to do.
    """
    from panpan.capabilities.web.browser.running_chromium import Launch  # most sessions show no page

    program = find_chromium(settings.browser, search_path, env)
    return Launch(program, child_environment(env), hides_driver=settings.stealth, has_window=has_window)
