"""Reads files of git settings as git reads them: sections, keys, quotes, escapes, comments and joined lines.

The rule: what git would read in another way, or not at all, is refused. The grammar is that of git-config(1) and of
`git_parse_source` in git's config.c.
"""

import re
from collections.abc import Iterator

_SPACE = re.compile(r"(?:[ \t\r\n]|[#;][^\n]*)*")
_HEADER = re.compile(r'\[([A-Za-z0-9.-]*)(?:[ \t\r]+"((?:[^"\\\n]|\\[^\n])*)")?\]')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(=|(?=\n))")
_VALUE = re.compile(r'((?:[^"\\\n#;]|\\["\\btn\n]|"(?:[^"\\\n]|\\["\\btn\n])*")*)(?:[#;][^\n]*)?\n')
_PART = re.compile(r'"((?:[^"\\]|\\.)*)"|((?:\\.)+)|([ \t\r]+)|([^"\\ \t\r]+)', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"b": "\b", "n": "\n", "t": "\t", "\n": ""}


def read_settings(text: str) -> Iterator[tuple[str, str | None, str, str | None]]:
    """Yield each setting in its order: section and key in lower case, subsection and value as git takes them.

    A subsection that is not given is None, and so is a value behind no `=`.

    Args:
        text: All of the file.

    Raises:
        ValueError: Git cannot read the file, or not every version of git reads it alike; the text says which line.
    """
    text = (
        text.removeprefix("\ufeff").replace("\r\n", "\n") + "\n\n"
    )  # the end counts as one of a line, again and again
    section, subsection = "", None
    position = 0
    while (position := _end(_SPACE.match(text, position))) < len(text):
        if header := _HEADER.match(text, position):
            section, subsection = header[1].lower(), header[2] and _ESCAPE.sub(r"\1", header[2])
            position = header.end()
            continue
        key = _KEY.match(text, position)
        value = _VALUE.match(text, key.end()) if key and key[2] else None
        if key is None or (key[2] and value is None) or "\0" in text:
            raise ValueError(f"line {text.count(chr(10), 0, position) + 1} is not one that git reads")
        yield section, subsection, key[1].lower(), _unquoted(value[1]) if value else None
        position = _end(value or key)


def _end(match: re.Match[str] | None) -> int:
    return match.end() if match is not None else 0


def _unquoted(written: str) -> str:
    """Return a value without quotes and escapes, and without the blanks around it.

    Raises:
        ValueError: It has a blank inside that versions of git read in different ways.
    """
    value = blanks = ""
    for quoted, escapes, blank, plain in _PART.findall(written):
        if blank:
            blanks = blank if value else ""
            continue
        if blanks.strip(" "):
            raise ValueError(f"the value {written.strip()!r} has a tab inside; put it in quotes")
        value += blanks + _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), quoted or escapes) + plain
        blanks = ""
    return value
