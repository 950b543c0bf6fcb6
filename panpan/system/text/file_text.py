"""Text of files and how their bytes say it: encoding, byte order mark, damaged bytes.

The rule: decoding and encoding again gives back the very same bytes, so that an edit of the text changes no byte
outside the edit. What cannot be decoded that way is not text.
"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import replace

from panpan.errors import ToolError
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

_BOMS: tuple[tuple[bytes, str, str], ...] = (
    (codecs.BOM_UTF8, "utf-8", "UTF-8 with BOM"),
    (codecs.BOM_UTF32_LE, "utf-32-le", "UTF-32 LE with BOM"),  # before UTF-16 LE, whose mark is its first half
    (codecs.BOM_UTF32_BE, "utf-32-be", "UTF-32 BE with BOM"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16 LE with BOM"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16 BE with BOM"),
)
_UNREADABLE = compile_late("[\0\ud800-\udfff]")
_SNIFFED_BYTES = 8192
_CONTROLS = bytes(set(range(0x20)) - set(b"\t\n\v\f\r\b\x1b"))
_MOST_CONTROLS = 0.1
_ASCII = bytes(range(0x80))
_DECLARATIONS = (
    compile_late(rb"\A(?:[^\n]*\n)?[ \t\f]*(?:#|//|;|%|--)[^\n]*?coding[:=][ \t]*([-\w.]+)"),  # PEP 263, Emacs
    compile_late(rb"\A\s*<\?xml\s[^>]*?encoding\s*=\s*[\"']([-\w.]+)"),
    compile_late(rb"\A\s*<(?:[^<]*<){1,30}?meta\s[^>]*?charset\s*=\s*[\"']?([-\w.]+)", re.IGNORECASE),
    compile_late(rb"^[ \t]*\\usepackage\[([-\w]+)\]\{inputenc\}", re.MULTILINE),
)
_LEGACY_CODEC = compile_late(r"(iso8859-|cp\d|koi8-|mac-|euc_|shift_jis$|gb|big5$|tis-620$)")
"""Codecs in which ASCII is ASCII and a text is encoded character by character."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """Translation of the text of one file into its bytes."""

    codec: str
    label: str
    bom: bytes = b""
    is_damaged: bool = False
    """True if bytes that are not valid in the encoding are carried through unchanged."""
    is_guess: bool = False
    """True if nothing in the file says that this is its encoding."""
    addable: frozenset[str] | None = None
    """Characters beyond ASCII that may be added; None for all that the codec has.

    To a guess only those that the file holds already: they are written as the bytes that they were read from, whatever
    encoding that is. In a file of code page 850, the byte that Windows-1252 has for "é" says something else.
    """

    @property
    def is_plain(self) -> bool:
        """True if it is UTF-8 and nothing else, which needs no mention."""
        return self.label == "UTF-8"

    def check(self, addition: str, shown: str) -> None:
        """Raise `ToolError` if `addition` cannot become part of the file `shown` without garbling it."""
        if addition.isascii():
            return
        if self.addable is not None:
            self._check_guess(addition, self.addable, shown)
        try:
            addition.encode(self.codec)
        except UnicodeEncodeError as exc:
            advice = "write it another way"
            if not self.codec.startswith("utf-"):
                advice += ", or convert the file to UTF-8 with Bash (iconv) first"
            character = addition[exc.start]
            raise ToolError(f"{shown} is {self.label}, which cannot hold {character!a}; {advice}") from exc

    def _check_guess(self, addition: str, addable: frozenset[str], shown: str) -> None:
        foreign = next((char for char in addition if not char.isascii() and char not in addable), None)
        if foreign is None:
            return
        safe = "ASCII and the characters that it holds already" if addable else "ASCII"
        raise ToolError(
            f"{shown} is not UTF-8 and only guessed to be {self.label}, where {foreign!a} may be another byte than in "
            f"its true encoding; only {safe} can be added safely",
            advice="find out its encoding and convert it to UTF-8 with Bash (iconv), then Read it again",
        )

    def encode(self, text: str) -> bytes:
        """Return the bytes of a file that says `text`, whose additions have passed `check`."""
        return self.bom + text.encode(self.codec, "surrogateescape" if self.is_damaged else "strict")


UTF_8 = Encoding("utf-8", "UTF-8")


@dataclass(frozen=True, slots=True)
class FileText:
    """The text of a file, line breaks as they are, and its encoding."""

    text: str
    encoding: Encoding

    @property
    def readable(self) -> str:
        return readable(self.text)


def readable(text: str) -> str:
    """Return `text` with NULs and damaged bytes replaced by U+FFFD, so that it can be sent and shown."""
    return _UNREADABLE.sub("\ufffd", text)


def is_binary(data: bytes) -> bool:
    """True if the beginning of `data` is not that of a text."""
    if any(data.startswith(bom) for bom, _, _ in _BOMS):
        return False
    head = data[:_SNIFFED_BYTES]
    return b"\0" in head or len(head) - len(head.translate(None, _CONTROLS)) > len(head) * _MOST_CONTROLS


def decode_file(data: bytes) -> FileText | None:
    """Return what `data` says, or None if it is not text that could be written back byte for byte."""
    if is_binary(data):
        return None
    for encoding in _candidates(data):
        body = data[len(encoding.bom) :]
        try:
            text = body.decode(encoding.codec, "surrogateescape" if encoding.is_damaged else "strict")
        except UnicodeDecodeError:
            continue
        if encoding.is_damaged and not _is_mostly_utf8(text):
            continue
        if encoding.codec.startswith("utf-") or encoding.encode(text) == data:
            return FileText(text, _with_addable(encoding, body) if encoding.is_guess else encoding)
    return None


def _candidates(data: bytes) -> Iterator[Encoding]:
    for bom, codec, label in _BOMS:
        if data.startswith(bom):
            yield Encoding(codec, label, bom)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return
    declared = _declared(data)
    if declared and data.isascii():
        yield declared
    bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    if not bom:
        yield UTF_8
        if declared:
            yield declared
    yield Encoding("utf-8", "UTF-8 with damaged bytes", bom, is_damaged=True)
    yield Encoding("cp1252", "Windows-1252", is_guess=True)
    yield Encoding("latin-1", "Latin-1", is_guess=True)


def _with_addable(guess: Encoding, data: bytes) -> Encoding:
    """Return the guess, a codec of one byte a character, with what may be added to the file that says `data`."""
    letters = data.translate(None, _ASCII) if _has_lone_letters(data) else b""
    return replace(guess, addable=frozenset(letters.decode(guess.codec)))


def _declared(data: bytes) -> Encoding | None:
    """Return the old encoding that the file itself says it has, where it is one that can be kept exactly."""
    for declaration in _DECLARATIONS:
        if match := declaration.search(data[:4096]):
            name = match[1].decode("ascii", "replace")
            name = {"ansinew": "cp1252", "applemac": "mac-roman"}.get(name, name)  # what LaTeX calls them
            try:
                codec = codecs.lookup(name).name
            except LookupError:
                return None
            return Encoding(codec, f"{name} (as it declares)") if _LEGACY_CODEC.match(codec) else None
    return None


def _is_mostly_utf8(text: str) -> bool:
    damaged = len(re.findall("[\udc80-\udcff]", text))
    return len(re.findall("[^\x00-\x7f\udc80-\udcff]", text)) > damaged


def _has_lone_letters(data: bytes) -> bool:
    """True if most bytes beyond ASCII are between ASCII ones, as accented letters are in Western text.

    In Cyrillic, Greek or East Asian encodings they come in rows.
    """
    rows = re.findall(rb"[\x80-\xff]+", data)
    return 2 * sum(len(row) == 1 for row in rows) > sum(len(row) for row in rows)
