r"""Words in `$'…'`, in which bash reads escapes such as `\x2e` ("ANSI-C Quoting" of its manual).

The rule: a text is certain where every bash reads it so, in every locale; where that is not so, it is what a bash of
today makes of it, for those who only want to know what it may be.
"""

import re

ANSI_C = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)

_ESCAPE = re.compile(
    r"\\(?:(?P<letter>[abefnrtvE\\'\"?])|(?P<octal>[0-7]{1,3})|x(?P<hex>[0-9a-fA-F]{1,2})|x\{(?P<braced>[0-9a-fA-F]*)\}"
    r"|[uU](?P<point>(?<=u)[0-9a-fA-F]{1,4}|(?<=U)[0-9a-fA-F]{1,8})|c(?P<control>[@-_a-z?])|(?P<other>.))",
    re.DOTALL,
)
_LETTERS = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def decoded(body: str) -> tuple[str, bool]:
    """Return what stands for `body` between `$'` and `'`, and whether that is certain."""
    text = b""
    position, is_certain = 0, True
    for found in _ESCAPE.finditer(body):
        text += _bytes_of(body[position : found.start()])
        position = found.end()
        meaning = _meaning(found)
        is_certain = is_certain and found.lastgroup in ("letter", "octal", "hex")
        if meaning == b"\0":  # the end of a string in C
            return _text_of(text, is_certain)
        text += meaning
    return _text_of(text + _bytes_of(body[position:]), is_certain)


def with_ansi_c_decoded(source: str) -> str:
    """Return a word, as it stands in a line, with each `$'…'` in it replaced by what it may stand for."""
    return ANSI_C.sub(lambda found: decoded(found[1])[0], source)


def _meaning(found: re.Match[str]) -> bytes:
    kind, value = found.lastgroup, found[found.lastgroup or 0]
    match kind:
        case "letter":
            return _bytes_of(_LETTERS.get(value, value))
        case "octal":
            return bytes([int(value, 8) & 0xFF])
        case "hex" | "braced":
            return bytes([int(value or "0", 16) & 0xFF])
        case "control":
            return b"\x7f" if value == "?" else bytes([ord(value.upper()) & 0x1F])
        case "point" if int(value, 16) <= 0x10FFFF:
            return _bytes_of(chr(int(value, 16)))
        case _:
            return _bytes_of(found[0])


def _bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text_of(encoded: bytes, is_certain: bool) -> tuple[str, bool]:
    text = encoded.decode("utf-8", "replace")
    return text, is_certain and text.encode("utf-8", "replace") == encoded
