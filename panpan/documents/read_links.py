"""The text of a PDF with its links in it. Synchronous, for the sandboxed worker: pdfium is C code.

A link is written where its words are: in their place if these are a part of the address, else after them.
"""

import ctypes
from collections.abc import Iterator
from typing import Any

from panpan.documents.read_words import MAX_CHARS, MAX_PAGES, opened
from panpan.types.dataclass import dataclass

_MAX_LINKS = 1_000
"""Most links of a page."""
_MAX_BYTES = 2_000
"""Longest address."""
_INSIDE = 1.0
_NEAR = 4.0
"""Points inside of a link's box, and around that place, at which its first and last characters are looked for."""
_HYPHENS = str.maketrans({"\ufffe": "-", "\x02": "-"})
"""Characters that pdfium has for a hyphen at the end of a line."""


@dataclass(frozen=True, slots=True)
class _Link:
    address: str
    begin: int
    """Index of its first character; -1 if it stands at none."""
    end: int


def text_with_links(data: bytes, shown: str) -> str:
    """Return the text of a PDF with the addresses of its links.

    Raises:
        ToolError: It is damaged or encrypted.
    """
    document = opened(data, shown)
    pages = []
    for number in range(min(len(document), MAX_PAGES)):
        try:
            pages.append(_page_text(document, document[number]))
        except Exception:  # a damaged page makes the library raise nearly anything; the others may be fine
            continue
    return "\n".join(pages)


def _page_text(document: Any, page: Any) -> str:
    from pypdfium2 import raw

    text_page = page.get_textpage()
    codes = (raw.FPDFText_GetUnicode(text_page, at) for at in range(min(raw.FPDFText_CountChars(text_page), MAX_CHARS)))
    chars = [chr(code) if 0 < code <= 0x10FFFF and not 0xD800 <= code < 0xE000 else " " for code in codes]
    chars = ["\n" if char == "\r" else "" if char == "\n" and chars[at - 1] == "\r" else char.translate(_HYPHENS)
             for at, char in enumerate(chars)]  # fmt: skip
    further = []
    for link in _links(document, page, text_page):
        if not 0 <= link.begin <= link.end < len(chars):
            further.append(link.address)
            continue
        words = "".join("".join(chars[link.begin : link.end + 1]).split())
        if words and words in link.address:
            chars[link.begin : link.end + 1] = [link.address, *[""] * (link.end - link.begin)]
        else:
            chars[link.end] += f" <{link.address}> "
    return "\n".join(["".join(chars), *(f"<{address}>" for address in further)])


def _links(document: Any, page: Any, text_page: Any) -> Iterator[_Link]:
    """Yield the links of a page that lead to addresses."""
    from pypdfium2 import raw

    place, found, box = ctypes.c_int(0), raw.FPDF_LINK(), raw.FS_RECTF()
    for _ in range(_MAX_LINKS):
        if not raw.FPDFLink_Enumerate(page, place, found):
            return
        address = _address(document, raw.FPDFLink_GetAction(found))
        if not address.startswith(("https://", "http://")) or not raw.FPDFLink_GetAnnotRect(found, box):
            continue
        middle = (box.top + box.bottom) / 2
        first, last = (
            raw.FPDFText_GetCharIndexAtPos(text_page, x, middle, _NEAR, abs(box.top - box.bottom) / 2)
            for x in (box.left + _INSIDE, box.right - _INSIDE)
        )
        yield _Link(address, first, last)


def _address(document: Any, action: Any) -> str:
    from pypdfium2 import raw

    if not action:
        return ""
    data = ctypes.create_string_buffer(_MAX_BYTES)
    size = raw.FPDFAction_GetURIPath(document, action, data, _MAX_BYTES)
    return data.value.decode(errors="replace") if size <= _MAX_BYTES else ""
