"""The head of a definition: between two lines of `---`, in the part of YAML that such files use.

    ---
    name: reviewer
    tools: [Read, Grep]
    description: >
      Reads a change.
    ---

Every value stays text; whoever knows the key says what it means. Much of what is written so for other agents is no
valid YAML, as a description with ": " in it: it is read line by line, as it was meant. There are no anchors, aliases or
tags, so that a head is never larger than its file.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from panpan.types.dataclass import dataclass

_BEGIN = re.compile(r"\ufeff?---[ \t]*\r?(?:\n|\Z)")
_END = re.compile(r"^(?:---|\.\.\.)[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
_KEY = re.compile(r"""(?P<key>[\w.*/$-]+|"[^"]*"|'[^']*')[ \t]*:(?:[ \t]+(?P<value>.*))?""")
_KEY_BELOW = re.compile(r"(?P<key>.+?):(?:[ \t]+(?P<value>.*))?")
"""In a mapping that is a value itself, as of commands, a key may hold anything."""
_ITEM = re.compile(r"-(?:[ \t]+(?P<value>.*))?")
_BLOCK = re.compile(r"(?P<style>[|>])[+-]?\d?[+-]?(?:[ \t]+#.*)?")
_COMMENT = re.compile(r"(?:^|(?<=[ \t]))#.*")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "e": "\x1b", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_PARTS = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,"']+|["']|,""")
_MOST_LEVELS = 4
"""Mappings in mappings that are read; what lies deeper is no key of a definition."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands behind a key."""

    value: "Value"
    line: int = 0
    """Of the file, from 1; 0 where there is no file."""


Value: TypeAlias = str | tuple[str, ...] | Mapping[str, Entry]


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """A file, taken apart."""

    head: Mapping[str, Entry]
    body: str
    repeated: Mapping[str, int]
    """Keys that stand there twice, and in which line again; the last one is in the head."""


class FrontMatterError(ValueError):
    """The head cannot be read.

    Args:
        text: What is wrong, for the user.
        line: Where, from 1.
    """

    def __init__(self, text: str, line: int) -> None:
        super().__init__(text)
        self.line = line


def read_front_matter(text: str) -> FrontMatter | None:
    """Take a file apart; None: it has no head.

    Raises:
        FrontMatterError: The head has no end, or a line of it means nothing.
    """
    if (begin := _BEGIN.match(text)) is None:
        return None
    if (end := _END.search(text, begin.end())) is None:
        raise FrontMatterError("the head that begins here has no end, which is a line of ---", 1)
    lines = text[begin.end() : end.start()].split("\n")
    reader = _Reader([line.rstrip().expandtabs(4) for line in lines])
    head = reader.mapping(0, 1)
    return FrontMatter(head, text[end.end() :].replace("\r\n", "\n").strip(), reader.repeated)


class _Reader:
    """Reads lines from the first to the last; each is looked at a few times at most."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._next = 0
        self.repeated: dict[str, int] = {}

    def mapping(self, indent: int, level: int) -> Mapping[str, Entry]:
        """Read keys that stand at `indent`, up to a line further left."""
        head: dict[str, Entry] = {}
        key = ""
        while (line := self._line_from(indent)) is not None:
            found = (_KEY if level == 1 else _KEY_BELOW).fullmatch(line, indent)
            number = self._next + 2  # the fence is line 1
            self._next += 1
            if found is not None:
                key = found["key"].strip().strip("\"'")
                if key in head and level == 1:
                    self.repeated[key] = number
                head[key] = Entry(self._value((found["value"] or "").strip(), indent, level, number), number)
            elif key and isinstance(before := head[key].value, str):  # a text that its author did not indent
                head[key] = Entry(f"{before} {line.strip()}".strip(), head[key].line)
            elif not key:
                raise FrontMatterError("this line is no `key: value`", number)
        return head

    def _line_from(self, indent: int) -> str | None:
        """Return the next line that says something, if it stands at `indent` or further right."""
        while self._next < len(self._lines):
            line = self._lines[self._next]
            if line and not line.lstrip().startswith("#"):
                return line if _indent(line) >= indent else None
            self._next += 1
        return None

    def _value(self, text: str, indent: int, level: int, number: int) -> Value:
        if (block := _BLOCK.fullmatch(text)) is not None:
            return self._block(indent, is_folded=block["style"] == ">")
        if text[:1] in ("[", "{"):
            text += "".join(f" {_COMMENT.sub('', line).strip()}" for line in self._deeper(indent, closes=True))
            return _flow(_COMMENT.sub("", text).strip(), number)
        if text[:1] in ('"', "'"):
            return self._quoted(text, indent, number)
        text = _COMMENT.sub("", text).strip()
        return " ".join([text, *self._plain(indent)]) if text else self._below(indent, level)

    def _below(self, indent: int, level: int) -> Value:
        """Read what stands in the lines below a key."""
        line = self._line_from(indent)
        if line is not None and _ITEM.fullmatch(line.strip()):
            return self._items(_indent(line))
        if line is None or _indent(line) <= indent:
            return ""
        if _KEY_BELOW.fullmatch(line.strip()) and level < _MOST_LEVELS:
            return self.mapping(_indent(line), level + 1)
        return " ".join(self._plain(indent))

    def _items(self, indent: int) -> tuple[str, ...]:
        items: list[str] = []
        while (line := self._line_from(indent)) is not None:
            if (found := _ITEM.fullmatch(line, indent)) is None:
                break
            self._next += 1
            item = self._value((found["value"] or "").strip(), indent, _MOST_LEVELS, self._next + 1)
            items += [item] if isinstance(item, str) else []
        return tuple(items)

    def _deeper(self, indent: int, *, closes: bool = False) -> list[str]:
        """Take the lines that stand further right, with the blank ones between them."""
        first = self._next
        while self._next < len(self._lines):
            line = self._lines[self._next]
            is_closing = closes and line.strip() in ("]", "}")
            if line and _indent(line) <= indent and not is_closing:
                break
            self._next += 1
        return list(self._lines[first : self._next])

    def _plain(self, indent: int) -> list[str]:
        return [text for line in self._deeper(indent) if (text := _COMMENT.sub("", line).strip())]

    def _block(self, indent: int, *, is_folded: bool) -> str:
        lines = self._deeper(indent)
        margin = min((_indent(line) for line in lines if line), default=0)
        lines = [line[margin:] for line in lines]
        return (_folded(lines) if is_folded else "\n".join(lines)).rstrip("\n")

    def _quoted(self, text: str, indent: int, number: int) -> str:
        whole = _scalar_of_lines([text, *self._deeper(indent)]).rstrip()
        closed = _PARTS.match(whole)
        if closed is None or len(closed[0]) < 2:
            raise FrontMatterError(f"the quotation mark {text[0]} is not closed", number)
        rest = whole[closed.end() :]
        return _unquoted(closed[0]) if not _COMMENT.sub("", rest).strip() else whole


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _folded(lines: Sequence[str]) -> str:
    """Join lines as `>` does: with a blank, an empty line for a new line, and what is indented further as it is."""
    text, was_text = "", False
    for line in lines:
        is_text = bool(line) and not line.startswith(" ")
        if is_text and was_text:
            text += f" {line}"
        else:
            text += line if is_text and (not text or text.endswith("\n")) else f"\n{line}" if text else line
        was_text = is_text
    return text


def _scalar_of_lines(lines: Sequence[str]) -> str:
    """Join the lines of a quoted text: with a blank, an empty line for a new line."""
    text = lines[0]
    for line in lines[1:]:
        line = line.strip()
        if text.startswith('"') and (len(text) - len(text.rstrip("\\"))) % 2:
            text = text[:-1] + line  # the end of the line is escaped
        else:
            text += (" " if not text.endswith("\n") else "") + line if line else "\n"
    return text


def _scalar(text: str) -> str:
    text = text.strip()
    part = _PARTS.match(text) if text[:1] in ('"', "'") else None
    if part is not None and not _COMMENT.sub("", text[part.end() :]).strip() and len(part[0]) > 1:
        return _unquoted(part[0])
    return _COMMENT.sub("", text).strip()


def _unquoted(text: str) -> str:
    if text[0] == "'":
        return text[1:-1].replace("''", "'")
    return _ESCAPE.sub(_meaning, text[1:-1])


def _meaning(match: re.Match[str]) -> str:
    number = match[1] or match[2] or match[3]
    if number is None:
        return _ESCAPED.get(match[4], match[4])
    code = int(number, 16)
    return chr(code) if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else "\ufffd"


def _flow(text: str, number: int) -> Value:
    """Read `[a, b]` or `{a: b}`; lists in lists are not read."""
    closing = {"[": "]", "{": "}"}[text[0]]
    if not text.endswith(closing) or len(text) < 2:
        raise FrontMatterError(f"the bracket {text[0]} is not closed", number)
    parts = [""]
    for piece in _PARTS.findall(text[1:-1]):
        if piece == ",":
            parts.append("")
        else:
            parts[-1] += piece
    items = [part.strip() for part in parts if part.strip()]
    if closing == "]":
        return tuple(map(_scalar, items))
    pairs = [_KEY.fullmatch(item) for item in items]
    return {pair["key"].strip("\"'"): Entry(_scalar(pair["value"] or ""), number) for pair in pairs if pair is not None}
