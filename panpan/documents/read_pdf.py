"""The text of a PDF, page by page. Synchronous: a page may take a second."""

import logging
from io import BytesIO
from typing import TYPE_CHECKING, Any

from panpan.documents.read_page import MAX_PAGE_CHARS
from panpan.errors import ToolError
from panpan.system.text.file_text import is_binary, readable
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

if TYPE_CHECKING:
    from pypdf import PdfReader

_DEFAULT_PAGES = 10
_MAX_PAGES = 20
_RANGE = compile_late(r"\s*(\d{1,6})\s*(?:(-)\s*(\d{1,6})?\s*)?")


def is_pdf(data: bytes) -> bool:
    """Return whether `data` says that it is a PDF; some programs write a few bytes before that."""
    return data.startswith(b"%PDF-") or (b"%PDF-" in data[:1024] and is_binary(data))


@dataclass(frozen=True, slots=True)
class PdfText:
    """The text of some pages."""

    text: str
    first: int
    last: int
    """Numbers of the first and the last page, from 1 on."""
    total: int
    """Number of pages in the file."""
    scans: tuple[int, ...]
    """Pages that hold pictures and no text."""


def read_pdf(data: bytes, pages: str | None, shown: str) -> PdfText:
    """Return the text of some pages, with a note where there are more.

    `pages`: such as "3", "1-5" or "7-"; the first ten pages if not given. At most 20 are read.

    Raises:
        ToolError: It is damaged or encrypted, or has no such pages.
    """
    reader = _opened(data, shown)
    total = len(reader.pages)
    first, last = _wanted(pages, total, shown)
    parts: list[str] = []
    scans: list[int] = []
    size = 0
    for number in range(first, last + 1):
        text = _page_text(reader, number)
        if not text:
            is_scan = _has_pictures(reader, number)
            scans += [number] * is_scan
            text = "(no text but a picture)" if is_scan else "(no text)"
        room = MAX_PAGE_CHARS - size
        if len(text) > room and parts:
            last = number - 1
            break
        if len(text) > room:
            text = f"{text[:room]}\n… (page cut; {len(text) - room:,} more characters)"
        parts.append(f"── page {number} of {total} ──\n{text}")
        size += len(parts[-1])
    if last < total:
        parts.append(f'(pages {first}-{last} of {total}; go on with pages="{last + 1}-{min(last + 10, total)}")')
    return PdfText("\n".join(parts), first, last, total, tuple(scans))


def _wanted(pages: str | None, total: int, shown: str) -> tuple[int, int]:
    if pages is None:
        return 1, min(total, _DEFAULT_PAGES)
    match = _RANGE.fullmatch(pages)
    if not match:
        raise ToolError(f'pages is {pages!r}; write it as "3", "1-5" or "7-"')
    first = int(match[1])
    last = int(match[3]) if match[3] else min(total, first + _MAX_PAGES - 1) if match[2] else first
    if first < 1 or first > total or last < first:
        raise ToolError(f"{shown} has {total} page{'s' * (total != 1)}; {pages!r} is none of them")
    last = min(last, total)
    if last - first >= _MAX_PAGES:
        raise ToolError(f"pages {pages!r} are more than the {_MAX_PAGES} that are read at once")
    return first, last


def _opened(data: bytes, shown: str) -> "PdfReader":
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # pypdf logs every oddity to stderr
    try:
        reader = PdfReader(BytesIO(data))
        is_open = not reader.is_encrypted or bool(reader.decrypt(""))
        total = len(reader.pages) if is_open else 0
    except Exception as exc:  # a damaged file makes pypdf raise nearly anything
        raise ToolError(f"{shown} is a PDF that cannot be read: {str(exc) or type(exc).__name__}") from exc
    if not is_open:
        raise ToolError(f"{shown} is encrypted; a copy without a password can be read")
    if total == 0:
        raise ToolError(f"{shown} is a PDF without pages")
    return reader


def _page_text(reader: "PdfReader", number: int) -> str:
    try:
        text = reader.pages[number - 1].extract_text()
    except Exception as exc:  # as above; the other pages may be fine
        return f"(this page cannot be read: {str(exc) or type(exc).__name__})"
    return readable(text).strip()


def _has_pictures(reader: "PdfReader", number: int) -> bool:
    """Return whether a page without text shows something else, such as a scan."""
    try:
        resources: Any = reader.pages[number - 1]["/Resources"]
        return "/XObject" in resources
    except Exception:  # as above; nothing is there, or nothing can be found
        return False
