"""The head of a Markdown file: between two lines of `---`, in YAML.

    ---
    name: reviewer
    tools: [Read, Grep]
    description: >
      Reads a change.
    ---

Every value stays text; the code that knows the key interprets it. Much of what is written so for other agents is no
valid YAML, as a description with ": " in it, or `tools: *`. Each key of such a head is read by itself, and the text of
those that are no YAML is taken as it is.

YAML is read as a tree of texts, and nothing is ever larger than its file: anchors, aliases and tags are refused, and so
are trees that are very deep.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import dedent
from typing import TYPE_CHECKING, Any, TypeAlias

from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

if TYPE_CHECKING:
    from yaml.events import Event


MAX_DEPTH = 50
"""Lists and mappings inside each other. Parsers take quadratic time for what is deep."""
_OTHER_BREAKS = dict.fromkeys(map(ord, "\r\x85\u2028\u2029"), " ")
"""YAML begins a line after these, editors do not."""


@dataclass(frozen=True, slots=True)
class Node:
    """A value: a text, a list or a mapping."""

    text: str
    """A list or mapping is as it is written."""
    line: int
    items: tuple["Node", ...] | None = None
    pairs: tuple[tuple["Node", "Node"], ...] | None = None
    """Keys and values in their order, with keys that are repeated."""
    is_plain: bool = True
    """False for a text in quotes or in a block, which is no number."""


class YamlError(ValueError):
    """The text, in its `line` from 1 on, is no YAML that is read here; says what is wrong, for the user."""

    def __init__(self, text: str, line: int) -> None:
        super().__init__(text)
        self.line = line


class AliasError(YamlError):
    """The text has an alias for a part of itself."""


def read_yaml(text: str) -> Node:
    """Return the only document of a text; an empty text where it says nothing.

    Raises:
        YamlError: It is no YAML, or uses what is refused.
    """
    import yaml

    text = text.replace("\r\n", "\n").translate(_OTHER_BREAKS)
    try:
        return _tree(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)), text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise YamlError(error.problem or "it is no YAML", mark.line + 1 if mark is not None else 1) from None
    except (yaml.YAMLError, UnicodeError):
        raise YamlError("it has control characters", 1) from None


def _tree(events: "Iterator[Event]", text: str) -> Node:
    from yaml import AliasEvent, CollectionEndEvent, CollectionStartEvent, NodeEvent, ScalarEvent

    open_: list[Event] = []
    inside: list[list[Node]] = [[]]
    refused: YamlError | None = None
    anchors = set[str]()
    for event in events:
        line = event.start_mark.line + 1
        if isinstance(event, AliasEvent) and event.anchor in anchors:
            raise AliasError(f"aliases are not read; write out what *{event.anchor} stands for", line)
        if isinstance(event, NodeEvent) and (event.anchor or getattr(event, "tag", None)):
            refused = refused or YamlError("anchors, aliases and tags are not read", line)
        if isinstance(event, ScalarEvent | CollectionStartEvent) and event.anchor:
            anchors.add(event.anchor)
        if isinstance(event, AliasEvent):
            inside[-1].append(Node("", line))
        elif isinstance(event, ScalarEvent):
            inside[-1].append(Node(event.value, line, is_plain=not event.style))
        elif isinstance(event, CollectionStartEvent):
            open_.append(event)
            inside.append([])
            if len(open_) > MAX_DEPTH:
                raise YamlError(f"more than {MAX_DEPTH} lists and mappings are nested", line)
        elif isinstance(event, CollectionEndEvent):
            within = inside.pop()
            inside[-1].append(_collection(open_.pop(), event, within, text))
    if refused is not None:
        raise refused
    documents = inside[0]
    if len(documents) > 1:
        raise YamlError("it has more than one document", documents[1].line)
    return documents[0] if documents else Node("", 1)


def _collection(start: "Event", end: "Event", within: list[Node], text: str) -> Node:
    from yaml import MappingStartEvent

    written, line = text[start.start_mark.index : end.end_mark.index].strip(), start.start_mark.line + 1
    if isinstance(start, MappingStartEvent):
        return Node(written, line, pairs=tuple(zip(within[::2], within[1::2], strict=True)))
    return Node(written, line, items=tuple(within))


_BEGIN = compile_late(r"\ufeff?---[ \t]*\r?(?:\n|\Z)")
_END = compile_late(r"^(?:---|\.\.\.)[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
_SIMPLE = compile_late(r"(?:[A-Za-z][\w.-]*: [A-Za-z][\w ,.;/()-]*\n)+", re.ASCII)
"""Lines that mean the same to every reader of YAML. So are ours, and the first prompt need not wait for PyYAML."""
_KEY = compile_late(r"""(?P<key>[\w.*/$-]+|"[^"]*"|'[^']*')[ \t]*:(?:[ \t]+(?P<value>.*))?""")
_KEY_BELOW = compile_late(r"(?P<key>\S.*?):(?:[ \t]+(?P<value>.*))?")
"""Key in a mapping that is a value itself, as of commands; it may hold anything."""
_ITEM = compile_late(r"-[ \t]+(?P<value>.*)")
_BLOCK = compile_late(r"[|>][+-]?\d?[+-]?")
_COMMENT = compile_late(r"(?:^|(?<=[ \t]))#.*")
_PARTS = compile_late(r""""[^"]*"|'[^']*'|\{[^{}]*\}|[^,"'{]+|["'{]|,""")
_MOST_LEVELS = 4
"""Mappings in mappings that are read; what lies deeper is no key of a definition."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Value behind a key."""

    value: "Value"
    line: int = 0
    """Line in the file, from 1; 0 if there is no file."""


Value: TypeAlias = str | tuple[str, ...] | Mapping[str, Entry]
"""A list or mapping in a list is a text, as it is written."""


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """A file as its head and body."""

    head: Mapping[str, Entry]
    body: str
    repeated: Mapping[str, int]
    """Keys that are in it twice, with the line of the second; the last one is in the head."""


class FrontMatterError(YamlError):
    """The head cannot be read."""


_Pairs: TypeAlias = Iterable[tuple[str, Entry]]


def read_front_matter(text: str, *, is_strict: bool = False) -> FrontMatter | None:
    """Take a file apart; None if it has no head.

    Args:
        text: Text of the file.
        is_strict: True to refuse a head that is no YAML, or has lists or mappings in brackets.

    Raises:
        FrontMatterError: The head has no end, or a line of it means nothing.
    """
    if (begin := _BEGIN.match(text)) is None:
        return None
    if (end := _END.search(text, begin.end())) is None:
        raise FrontMatterError("the head that begins here has no end, which is a line of ---", 1)
    head: dict[str, Entry] = {}
    repeated: dict[str, int] = {}
    for key, entry in _pairs(text[begin.end() : end.start()], is_strict=is_strict):
        if key in head:
            repeated[key] = entry.line
        head[key] = entry
    return FrontMatter(head, text[end.end() :].replace("\r\n", "\n").strip(), repeated)


def parts_of_file(data: bytes) -> FrontMatter:
    """Take a Markdown file apart; without a head, all of it is the body.

    Raises:
        FrontMatterError: It is not UTF-8 text, or its head cannot be read.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FrontMatterError("it is not UTF-8 text", 1) from None
    return read_front_matter(text) or FrontMatter({}, text.replace("\r\n", "\n").strip(), {})


def _pairs(text: str, *, is_strict: bool) -> _Pairs:
    lines = text.split("\n")
    if _SIMPLE.fullmatch(text):
        words = (line.partition(": ") for line in lines[:-1])
        return [(key, Entry(value.rstrip(), number)) for number, (key, _, value) in enumerate(words, 2)]
    try:
        node = read_yaml(text)
        for _, value in node.pairs or () if is_strict else ():
            if value.text.startswith(("[", "{")) and (value.items, value.pairs) != (None, None):
                raise YamlError("write the items in lines of their own, without brackets", value.line)
        return list(_entries(node, before=1))
    except YamlError as error:
        if is_strict or isinstance(error, AliasError):
            raise FrontMatterError(str(error), error.line + 1) from None
        return list(_by_keys([line.rstrip().expandtabs(4) for line in lines], 2, _KEY))


def _entries(node: Node, before: int, level: int = 1) -> Iterator[tuple[str, Entry]]:
    """Yield the keys of a mapping, or of what says nothing.

    Args:
        node: The mapping.
        before: Lines of the file above the text.
        level: 1 for the head, one more for each mapping further inside.

    Raises:
        YamlError: It is something else, or a key is no text.
    """
    if node.pairs is None and (node.items is not None or node.text):
        raise YamlError("it is not a mapping", node.line)
    for key, value in node.pairs or ():
        if key.items is not None or key.pairs is not None:
            raise YamlError("a key has to be a text", key.line)
        yield key.text, Entry(_value(value, before, level), key.line + before)


def _value(node: Node, before: int, level: int) -> Value:
    if node.items is not None:
        return tuple(item.text.rstrip("\n") for item in node.items)
    if node.pairs is not None and level < _MOST_LEVELS:
        return dict(_entries(node, before, level + 1))
    return node.text.rstrip("\n")  # a block's final newline means nothing for any key


def _by_keys(lines: Sequence[str], first: int, key: re.Pattern[str], level: int = 1) -> Iterator[tuple[str, Entry]]:
    """Yield the keys of what is no YAML, each with what can be made of the lines up to the next one."""
    begins = [number for number, line in enumerate(lines) if key.fullmatch(line)]
    for number, line in enumerate(lines[: begins[0]] if begins else lines):
        if _bare(line):
            raise FrontMatterError("this line is not `key: value`", first + number)
    for begin, end in zip(begins, [*begins[1:], len(lines)], strict=True):
        try:
            ((name, entry),) = _entries(read_yaml("\n".join(lines[begin:end])), first + begin - 1, level)
        except AliasError as error:
            raise FrontMatterError(str(error), first + begin + error.line - 1) from None
        except ValueError:
            found = key.fullmatch(lines[begin])
            assert found is not None
            name, text = found["key"].strip().strip("\"'"), _bare(found["value"] or "")
            entry = Entry(_as_meant(text, lines[begin + 1 : end], first + begin, level), first + begin)
        yield name, entry


def _as_meant(text: str, below: Sequence[str], line: int, level: int) -> Value:
    says = [bare for one in below if (bare := _bare(one))]
    if _BLOCK.fullmatch(text):
        return dedent("\n".join(below)).strip() if text.startswith("|") else " ".join(says)
    if not text and says:
        items = [_ITEM.fullmatch(one) for one in says]
        if all(items):
            return tuple(_unquoted(item["value"]) for item in items if item)
        if level < _MOST_LEVELS and _KEY_BELOW.fullmatch(says[0]):
            inner = [one if _bare(one) else "" for one in below]
            return dict(_by_keys(dedent("\n".join(inner)).split("\n"), line + 1, _KEY_BELOW, level + 1))
    text = " ".join([text, *says]).strip()
    if text.startswith("["):
        if not text.endswith("]") or len(text) < 2:
            raise FrontMatterError("the bracket [ is not closed", line)
        return tuple(one for part in _split(text[1:-1]) if (one := _unquoted(part)))
    if text.startswith("{") and re.fullmatch(r"\{[^{}]*\}?", text):
        raise FrontMatterError("the bracket { is not closed, or its content is not `key: value`", line)
    if text[:1] in ('"', "'") and text.count(text[0]) < 2:
        raise FrontMatterError(f"the quotation mark {text[0]} is not closed", line)
    return _unquoted(text)


def _bare(line: str) -> str:
    return _COMMENT.sub("", line).strip()


def _unquoted(text: str) -> str:
    text = text.strip()
    is_quoted = text[:1] in ('"', "'") and len(text) > 1 and text.find(text[0], 1) == len(text) - 1
    return text[1:-1] if is_quoted else text


def _split(text: str) -> list[str]:
    """Return the parts of a list that commas outside quotes and braces set apart."""
    parts = [""]
    for piece in _PARTS.findall(text):
        if piece == ",":
            parts.append("")
        else:
            parts[-1] += piece
    return parts


_NUMBER = compile_late(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")


def structure_of(data: bytes, key: str) -> Any:
    """Return the value of one key of a head as JSON has it, with lists and mappings in each other; None without it.

    Raises:
        YamlError: The head is no YAML; the line is that of the file.
    """
    text = data.decode("utf-8-sig", errors="replace")
    if (begin := _BEGIN.match(text)) is None or (end := _END.search(text, begin.end())) is None:
        return None
    try:
        node = read_yaml(text[begin.end() : end.start()])
    except YamlError as error:
        raise YamlError(str(error), error.line + 1) from None
    return next((_plain(value) for name, value in node.pairs or () if name.text == key), None)


def _plain(node: Node) -> Any:
    if node.pairs is not None:
        return {key.text: _plain(value) for key, value in node.pairs}
    if node.items is not None:
        return [_plain(item) for item in node.items]
    if not node.is_plain:
        return node.text
    if node.text in ("true", "false"):
        return node.text == "true"
    return float(node.text) if _NUMBER.fullmatch(node.text) else node.text
