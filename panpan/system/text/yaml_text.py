"""YAML as a tree of texts: no value becomes anything but text, and each knows its line.

The rule: nothing is ever larger than its file. Anchors, aliases and tags are refused, so are trees that are very deep.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from panpan.types.dataclass import dataclass

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
    """A list or mapping as it is written."""
    line: int
    """From 1."""
    items: tuple["Node", ...] | None = None
    pairs: tuple[tuple["Node", "Node"], ...] | None = None
    """In their order, with keys that are repeated."""


class YamlError(ValueError):
    """The text is no YAML that is read here.

    Args:
        text: What is wrong, for the user.
        line: Where, from 1.
    """

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
            inside[-1].append(Node(event.value, line))
        elif isinstance(event, CollectionStartEvent):
            open_.append(event)
            inside.append([])
            if len(open_) > MAX_DEPTH:
                raise YamlError(f"more than {MAX_DEPTH} lists and mappings lie inside each other", line)
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
