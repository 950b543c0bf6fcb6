"""One page: fetched over plain HTTP, and made into what a model can read; and what robots.txt asks for."""

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import anyio

from panpan.capabilities.web.page_tree import Obstacle
from panpan.documents.read_image import image_format
from panpan.errors import ToolError
from panpan.system.processes.sandboxed_worker import MEMORY_BYTES, WITHIN_S, run_parser
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.system.text.file_text import is_binary
from panpan.system.web.domain_lists import is_same_site
from panpan.system.web.network import GuardedClient
from panpan.system.web.url_guard import Origin, PlainUrl
from panpan.types.content import ImageBlock
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

if TYPE_CHECKING:
    from panpan.system.web.exchange import GuardedResponse


# Each address on the way, also that of a redirect, is judged before it is requested.

MAX_TEXT_BYTES = 5_000_000
"""Most bytes of text that are read; a longer text is cut."""
MAX_FILE_BYTES = 30_000_000
"""Most bytes of a PDF or a picture, which are useless in part."""
BODY_S = 60.0
_MAX_REDIRECTS = 10
_SNIFFED_BYTES = 1_024
_ACCEPT = {
    "accept": "text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.9,application/pdf;q=0.9,*/*;q=0.8",
    "accept-language": "en,*;q=0.5",
}
_TEXT = ("text/", *(f"application/{name}" for name in ("json", "xml", "yaml", "toml", "javascript")))
_TEXT_SUFFIXES = ("+json", "+xml", "+yaml", "-yaml", "-javascript", "-sh", "-tex", "-bibtex", "-ndjson", "/sql", "/tex")
_MEDIA_TYPE = compile_late(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,60}/[a-z0-9*][a-z0-9!#$&^_.+-]{0,60}")
"""RFC 6838, section 4.2, with half the length; a server could write anything there, and the model reads it."""
_HTML = ("text/html", "application/xhtml+xml")

Kind: TypeAlias = Literal["html", "text", "pdf", "image", "other"]
Check: TypeAlias = Callable[[PlainUrl], Awaitable[None]]
"""Raises ToolError where an address is not to be asked for."""


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """A server's answer to a request for a page."""

    url: str
    """Final address, after redirects."""
    status: int
    headers: Mapping[str, str]
    kind: Kind
    media_type: str
    """Media type in the server's words, lower case, without parameters; empty if there is none or it is invalid."""
    charset: str | None
    body: bytes
    """Empty where it is of another kind, which nobody could read."""
    is_cut: bool = False


class RedirectCircleError(ToolError):
    """A server that sends on to where it sent from, as some do to whoever keeps no cookies."""


class _RedirectedError(Exception):
    """Ends a request where its server sends on."""

    def __init__(self, url: str) -> None:
        self.url = url


async def fetch_page(client: GuardedClient, url: str, check: Check, *, timeout_s: float) -> FetchedPage:
    """Fetch a page and what it redirects to.

    Raises:
        RedirectCircleError: It comes back to where it was.
        ToolError: There is no answer that can be read, or it is not to be asked for.
    """
    asked: list[str] = []
    while True:
        plain = client.plain(url)
        address = plain.url.partition("#")[0]
        if address in asked:
            raise RedirectCircleError(f"{plain.host} redirects in a circle; it may want cookies, which are not kept")
        if len(asked) > _MAX_REDIRECTS:
            raise ToolError(f"{plain.host} redirects on after {_MAX_REDIRECTS} redirects")
        asked.append(address)
        await check(plain)
        try:
            async with client.stream("GET", url, headers=_ACCEPT, timeout_s=timeout_s, allow=_one_hop()) as response:
                return await _read(response)
        except _RedirectedError as onward:
            url = onward.url


def _one_hop() -> Callable[[PlainUrl], None]:
    """Allow one address, and end the request at the next one: `check` may need the client to ask other servers."""
    asked: list[str] = []

    def allow(plain: PlainUrl) -> None:
        if asked:
            raise _RedirectedError(plain.url)
        asked.append(plain.url)

    return allow


async def _read(response: "GuardedResponse") -> FetchedPage:
    media_type, charset = _content_type(response.headers.get("content-type", ""))
    body = bytearray()
    kind: Kind | None = None
    is_cut = False
    try:
        with anyio.fail_after(BODY_S):
            async with aclosing(response.chunks()) as chunks:
                async for chunk in chunks:
                    body += chunk
                    if kind is None and len(body) >= _SNIFFED_BYTES:
                        kind = kind_of(media_type, bytes(body[:_SNIFFED_BYTES]))
                    if kind == "other":
                        break
                    if len(body) > (MAX_FILE_BYTES if kind in ("pdf", "image") else MAX_TEXT_BYTES):
                        is_cut = True
                        break
    except TimeoutError:
        raise ToolError(f"{response.url} did not arrive completely within {BODY_S:g} s") from None
    kind = kind or kind_of(media_type, bytes(body[:_SNIFFED_BYTES]))
    if is_cut and kind in ("pdf", "image"):
        raise ToolError(f"{response.url} has more than the {MAX_FILE_BYTES:,} bytes that are read of such a file")
    kept = b"" if kind == "other" else bytes(body[:MAX_TEXT_BYTES] if is_cut else body)
    return FetchedPage(response.url, response.status, response.headers, kind, media_type, charset, kept, is_cut)


def kind_of(media_type: str, head: bytes) -> Kind:
    """Return the kind of an answer, judged by its first bytes first, since servers call much `text/plain`."""
    if head.startswith(b"%PDF-"):
        return "pdf"
    if image_format(head) is not None:
        return "image"
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:100].lower()
    if media_type in _HTML or (not media_type and start.startswith((b"<!doctype html", b"<html"))):
        return "html"
    if media_type.startswith(_TEXT) or media_type.endswith(_TEXT_SUFFIXES):
        return "text"
    is_unknown = media_type in ("", "application/octet-stream", "binary/octet-stream")
    return "text" if is_unknown and not is_binary(head) else "other"


def _content_type(header: str) -> tuple[str, str | None]:
    media_type, *parameters = header.split(";")
    pairs = [parameter.partition("=") for parameter in parameters]
    charsets = [value.strip().strip("\"'") for name, _, value in pairs if name.strip().lower() == "charset"]
    name = media_type.strip().lower()
    return name if _MEDIA_TYPE.fullmatch(name) else "", next(iter(charsets), None)


# Parse untrusted content in a process of its own (`page_text.py`), which ends with the call. In this process, one slow
# regular expression would block everything.

_MAX_BYTES = 50_000_000
"""Most bytes of the process's output: 5,000,000 characters in UTF-8, or a picture."""


@dataclass(frozen=True, slots=True)
class ParseRequest:
    """A page to make text of, and how."""

    page: FetchedPage
    asked: str
    """The address that was asked for, which may be another than that of the page."""
    wants_all: bool = False
    pages: str | None = None
    """Page range of a PDF, such as "3-7"."""
    is_rendered: bool = False


@dataclass(frozen=True, slots=True)
class ParsedPage:
    """A page as text or as a picture."""

    text: str = ""
    is_cut: bool = False
    title: str = ""
    extent: str = "all"
    """Part of the page that the text covers: `Extent` in `page_text.py`."""
    sends_on_to: str = ""
    """Address to which the page sends browsers on by itself, as it wrote it."""
    obstacle: Obstacle | None = None
    scans: Sequence[int] = ()
    """Pages of a PDF that hold pictures and no text."""
    what: str = ""
    picture: ImageBlock | None = None


async def parse_page(
    request: ParseRequest, sandbox: CommandSandbox, *, within_s: float = WITHIN_S, memory_bytes: int = MEMORY_BYTES
) -> ParsedPage:
    """Return a page as text or as a picture, made in a process of its own.

    Raises:
        ToolError: It is damaged, or takes too much time or memory.
    """
    module, job, most = "panpan.capabilities.web.page_text", encoded_job(request), _MAX_BYTES
    ended = await run_parser(module, (), job, sandbox, max_bytes=most, within_s=within_s, memory_bytes=memory_bytes)
    if ended.timed_out or ended.exit_code != 0 or ended.is_truncated:
        why = f"it took more than {within_s:g} s" if ended.timed_out else "it is damaged, or takes too much memory"
        raise ToolError(f"the content cannot be converted to text: {why}")
    return decoded_answer(ended.stdout)


def encoded_job(request: ParseRequest) -> bytes:
    """Return the input of the process: a line of JSON, and the body behind it."""
    page = request.page
    job = {
        "kind": page.kind, "url": page.url, "status": page.status, "headers": dict(page.headers),
        "charset": page.charset, "asked": request.asked, "wants_all": request.wants_all, "pages": request.pages,
        "is_rendered": request.is_rendered,
    }  # fmt: skip
    return json.dumps(job).encode() + b"\n" + page.body


def decoded_answer(answer: bytes) -> ParsedPage:
    """Return the page that the process has written; raise `ToolError` if it could not read the page."""
    said: dict[str, Any] = json.loads(answer)
    if "error" in said:
        raise ToolError(said["error"])
    obstacle, picture = said.pop("obstacle", None), said.pop("picture", None)
    return ParsedPage(
        **said,
        obstacle=Obstacle(**obstacle) if obstacle else None,
        picture=ImageBlock.model_validate(picture) if picture else None,
    )


# The longest matching line counts. If two are equally long, the one that allows counts. Skip unreadable lines.

MAX_BYTES = 512_000
"""Most bytes of a robots.txt that are read; RFC 9309, section 2.5, asks for at least 500 KiB."""
MAX_DELAY_S = 30.0
"""Seconds between two requests that a site may want (`Crawl-delay`, which no RFC knows and many sites have). Some want
hours, in which no call would end."""
_PRODUCT = compile_late(r"[A-Za-z_-]+")
_LINE_END = compile_late(r"\r\n|\r|\n")
_ENCODED = compile_late(r"%([0-9A-Fa-f]{2})")
_SECONDS = compile_late(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_UNRESERVED = compile_late(r"[A-Za-z0-9._~-]")
_BEYOND_ASCII = compile_late(r"[^\x00-\x7f]+")


@dataclass(frozen=True, slots=True)
class RobotsRule:
    """One line that allows or disallows paths."""

    pattern: str
    """Path pattern, with `*` for anything and an optional `$` at the end."""
    allows: bool

    def matches(self, path: str) -> bool:
        """Return True if it speaks of a path, which is in its plain form as the pattern is."""
        is_whole = self.pattern.endswith("$")
        first, *rest = self.pattern.removesuffix("$").split("*")
        if not path.startswith(first):
            return False
        if not rest:
            return not is_whole or path == first
        at = len(first)
        for part in rest[:-1]:
            found = path.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        return path.endswith(rest[-1]) and len(path) - len(rest[-1]) >= at if is_whole else path.find(rest[-1], at) >= 0


@dataclass(frozen=True, slots=True)
class Robots:
    """The rules that are meant for one program."""

    rules: tuple[RobotsRule, ...] = ()
    delay_s: float = 0.0
    """Seconds that are wanted between two requests, at most `MAX_DELAY_S`."""

    @classmethod
    def read(cls, text: str, product: str) -> "Robots":
        """Return the rules of a robots.txt for a program, such as `panpan`, whatever the case of its name."""
        own, everybody = _Group(), _Group()
        names_it = False
        for group in _groups(text):
            if product.lower() in group.products:
                own.add(group)
                names_it = True
            elif "*" in group.products:
                everybody.add(group)
        meant = own if names_it else everybody
        return cls(tuple(meant.rules), min(meant.delay_s or 0.0, MAX_DELAY_S))

    def allow(self, path: str) -> bool:
        """Return True if a path may be asked for."""
        path = _plain(path or "/")
        if path == "/robots.txt":
            return True
        matching = [rule for rule in self.rules if rule.matches(path)]
        return max(matching, key=lambda rule: (len(rule.pattern), rule.allows)).allows if matching else True


def product_of(user_agent: str) -> str:
    """Return a program's name in a robots.txt: the first word of its user agent."""
    found = _PRODUCT.match(user_agent)
    return found[0] if found else user_agent


@dataclass(slots=True)
class _Group:
    products: set[str] = field(default_factory=set)
    rules: list[RobotsRule] = field(default_factory=list)
    delay_s: float | None = None

    @property
    def is_complete(self) -> bool:
        return bool(self.rules) or self.delay_s is not None

    def add(self, other: "_Group") -> None:
        self.rules += other.rules
        self.delay_s = max(filter(None, (self.delay_s, other.delay_s)), default=None)


def _groups(text: str) -> Iterator[_Group]:
    group = _Group()
    for key, value in _lines(text):
        if key == "user-agent":
            if group.is_complete:
                yield group
                group = _Group()
            found = _PRODUCT.match(value)
            group.products.add("*" if value.startswith("*") else found[0].lower() if found else "")
        elif group.products and key in ("allow", "disallow") and value:
            group.rules.append(RobotsRule(_plain(value), key == "allow"))
        elif group.products and key == "disallow":  # an empty one closes nothing, but counts as a rule
            group.rules.append(RobotsRule("", allows=True))
        elif group.products and key == "crawl-delay" and _SECONDS.fullmatch(value):
            group.delay_s = float(value)
    yield group


def _lines(text: str) -> Sequence[tuple[str, str]]:
    bare = (line.partition("#")[0].partition(":") for line in _LINE_END.split(text.removeprefix("\ufeff")))
    return [(key.strip().lower(), value.strip()) for key, colon, value in bare if colon]


def _plain(path: str) -> str:
    """Return a path as RFC 9309, section 2.2.2, compares it: what needs no encoding without, what needs it with one."""
    encoded = _BEYOND_ASCII.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), path)
    return _ENCODED.sub(_decoded, encoded)


def _decoded(found: re.Match[str]) -> str:
    char = chr(int(found[1], 16))
    return char if _UNRESERVED.fullmatch(char) else found[0].upper()


# The robots.txt of each site, requested once a session. A site whose robots.txt fails closes everything (RFC 9309,
# section 2.3.1.4); one without rules closes nothing.

KEPT_S = 86_400.0
"""Seconds after which a robots.txt is read again; RFC 9309, section 2.4, allows a day."""
TRY_AGAIN_S = 30.0
"""Seconds after which a site is asked again that could not say; all who waited for it meanwhile have its answer."""
TIMEOUT_S = 10.0
_MAX_SITES = 500
_SETTING = "the user may set `robots = false` under [web]"


@dataclass(slots=True)
class _Site:
    """One origin."""

    robots: Robots | None = None
    """None: it could not say."""
    why: str = ""
    """Reason why the site could not say."""
    unreachable: str = ""
    """Reason why the site could not be asked at all."""
    good_until: float = float("-inf")
    lock: anyio.Lock = field(default_factory=anyio.Lock)


class _ElsewhereError(Exception):
    """Ends a request that is sent on to another site."""


class SiteRobots:
    """Checks pages against the robots.txt of their sites."""

    def __init__(self, client: GuardedClient, user_agent: str) -> None:
        self._client = client
        self._product = product_of(user_agent)
        self._sites: dict[Origin, _Site] = {}

    async def check(self, plain: PlainUrl) -> float:
        """Return the seconds that the site wants between two requests; its rules are asked for once.

        Raises:
            ToolError: The page is closed to programs, the site cannot say, or it cannot be asked at all.
        """
        site = self._site(plain)
        async with site.lock:
            if anyio.current_time() >= site.good_until:
                await self._look(plain, site)
                site.good_until = anyio.current_time() + (TRY_AGAIN_S if site.robots is None else KEPT_S)
        if site.unreachable:
            raise ToolError(site.unreachable)
        if site.robots is None:
            raise ToolError(
                f"robots.txt of {plain.host} cannot be read ({site.why}), which closes the site; {_SETTING}"
            )
        path = plain.url.partition("://")[2].partition("#")[0].partition("/")[2]
        if not site.robots.allow(f"/{path}"):
            raise ToolError(
                f"robots.txt of {plain.host} closes this page to programs ({self._product})",
                advice=f"take another source, or ask the user: {_SETTING}",
            )
        return site.robots.delay_s

    def _site(self, plain: PlainUrl) -> _Site:
        if plain.origin not in self._sites and len(self._sites) >= _MAX_SITES:
            del self._sites[next(iter(self._sites))]
        return self._sites.setdefault(plain.origin, _Site())

    async def _look(self, plain: PlainUrl, site: _Site) -> None:
        def allow(redirect: PlainUrl) -> None:
            if not is_same_site(plain, redirect):
                raise _ElsewhereError

        site.robots, site.unreachable = None, ""
        address = "/".join([*plain.url.split("/")[:3], "robots.txt"])
        try:
            async with self._client.stream("GET", address, timeout_s=TIMEOUT_S, max_redirects=5, allow=allow) as answer:
                if answer.status >= 500 or answer.status == 429:
                    site.why = f"status {answer.status}"
                else:
                    text = await _text_of(answer) if answer.status < 300 else ""
                    site.robots = Robots.read(text, self._product)
        except _ElsewhereError:  # RFC 9309, section 2.3.1.2, allows to treat it as missing
            site.robots = Robots()
        except ToolError as error:
            site.unreachable = str(error)


async def _text_of(answer: "GuardedResponse") -> str:
    body = bytearray()
    with anyio.move_on_after(TIMEOUT_S):
        async with aclosing(answer.chunks()) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) > MAX_BYTES:
                    break
    return bytes(body[:MAX_BYTES]).decode("utf-8", "replace")
