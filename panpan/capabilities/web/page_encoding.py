"""From the bytes of a page to its text.

The rule: a byte order mark is believed first, then what the server says, then what the page says of itself, as browsers
do (https://html.spec.whatwg.org/#determining-the-character-encoding); else it is UTF-8, or what was before it.
"""

import codecs
import re

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_META = re.compile(rb"""<meta[^>]{0,500}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE)
_DECLARATION = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE)
_OF_THE_WEB = re.compile(r"ascii|utf-(?:8|16|7)|iso8859-|iso2022_jp|cp|koi8|gb|hz|big5|euc_|shift_jis|mac-|tis-620")
_PRESCAN_BYTES = 4_096
"""The standard says 1,024; pages are found that say it later."""
_WIDER = {
    "ascii": "cp1252", "iso8859-1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932",
    "euc_kr": "cp949", "iso8859-9": "cp1254", "iso8859-11": "cp874", "tis-620": "cp874",
    "utf-16": "utf-16-le", "utf-7": "cp1252",
}  # fmt: skip
"""What a name means on the web (https://encoding.spec.whatwg.org/#names-and-labels), by Python's name for it."""


def decoded(body: bytes, charset: str | None) -> str:
    """Return the text of a page; bytes that stand for nothing become U+FFFD.

    Args:
        body: The page, or the beginning of it.
        charset: What the server says; None: nothing.
    """
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    head = body[:_PRESCAN_BYTES]
    said = _codec(charset or "") or _codec_said(head)
    if said is not None:
        return body.decode(said, "replace")
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(body)  # the last character may be cut
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace")


def _codec_said(head: bytes) -> str | None:
    found = _META.search(head) or _DECLARATION.match(head)
    name = _codec(found[1].decode("ascii")) if found else None
    return "utf-8" if name in ("utf-16-le", "utf-16-be") else name  # or nobody could have read it


def _codec(name: str) -> str | None:
    """Return Python's name of an encoding; None where it is none that pages are written in."""
    try:
        found = codecs.lookup(name.strip().strip("\"'")).name
    except (LookupError, ValueError):
        return None
    return _WIDER.get(found, found) if _OF_THE_WEB.match(found) else None
