"""One page: fetched over plain HTTP, and made into what a model can read."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import anyio

from panpan.capabilities.web.page_tree import Obstacle
from panpan.documents.read_image import image_format
from panpan.errors import ToolError
from panpan.system.processes.sandboxed_worker import MEMORY_BYTES, WITHIN_S, run_parser
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.system.text.file_text import is_binary
from panpan.system.web.network import GuardedClient
from panpan.system.web.url_guard import PlainUrl
from panpan.types.content import ImageBlock
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from panpan.system.web.exchange import GuardedResponse


# Each address on the way, that of a redirect as well, is shown to whoever may refuse it before it is asked for.

MAX_TEXT_BYTES = 5_000_000
"""Of text that are read; what is longer is cut."""
MAX_FILE_BYTES = 30_000_000
"""Of a PDF or a picture, which are of no use in part."""
BODY_S = 60.0
_MAX_REDIRECTS = 10
_SNIFFED_BYTES = 1_024
_ACCEPT = {
    "accept": "text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.9,application/pdf;q=0.9,*/*;q=0.8",
    "accept-language": "en,*;q=0.5",
}
_TEXT = ("text/", *(f"application/{name}" for name in ("json", "xml", "yaml", "toml", "javascript")))
_TEXT_SUFFIXES = ("+json", "+xml", "+yaml", "-yaml", "-javascript", "-sh", "-tex", "-bibtex", "-ndjson", "/sql", "/tex")
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,60}/[a-z0-9*][a-z0-9!#$&^_.+-]{0,60}")
"""RFC 6838, section 4.2, with half the length; a server could write anything there, and the model is told of it."""
_HTML = ("text/html", "application/xhtml+xml")

Kind: TypeAlias = Literal["html", "text", "pdf", "image", "other"]
Check: TypeAlias = Callable[[PlainUrl], Awaitable[None]]
"""Raises ToolError where an address is not to be asked for."""


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """What a server answered."""

    url: str
    """Where it came from, after redirects."""
    status: int
    headers: Mapping[str, str]
    kind: Kind
    media_type: str
    """As the server says it, in lower case and without parameters; empty where it says nothing, or what is none."""
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
        raise ToolError(f"{response.url} did not come whole within {BODY_S:g} s") from None
    kind = kind or kind_of(media_type, bytes(body[:_SNIFFED_BYTES]))
    if is_cut and kind in ("pdf", "image"):
        raise ToolError(f"{response.url} has more than the {MAX_FILE_BYTES:,} bytes that are read of such a file")
    kept = b"" if kind == "other" else bytes(body[:MAX_TEXT_BYTES] if is_cut else body)
    return FetchedPage(response.url, response.status, response.headers, kind, media_type, charset, kept, is_cut)


def kind_of(media_type: str, head: bytes) -> Kind:
    """Return what can be made of an answer; its first bytes count first, as servers call much `text/plain`."""
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


# What strangers send is taken apart in a process of its own (`page_text.py`), which ends with the call. In this one, a
# regular expression that meets its match would hold up all.

_MAX_BYTES = 50_000_000
"""Of what the process says: 5,000,000 characters in UTF-8, or a picture."""


@dataclass(frozen=True, slots=True)
class ParseRequest:
    """A page to make text of, and how."""

    page: FetchedPage
    asked: str
    """The address that was asked for, which may be another than that of the page."""
    wants_all: bool = False
    pages: str | None = None
    """Of a PDF, such as "3-7"."""
    is_rendered: bool = False


@dataclass(frozen=True, slots=True)
class ParsedPage:
    """A page as text or as a picture."""

    text: str = ""
    is_cut: bool = False
    title: str = ""
    extent: str = "all"
    """How much of a page the text is: `Extent` in `page_text.py`."""
    sends_on_to: str = ""
    """Where browsers go by themselves, as the page wrote it."""
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
        raise ToolError(f"what came cannot be made text: {why}")
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
