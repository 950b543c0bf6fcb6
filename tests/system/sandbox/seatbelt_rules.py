"""A reader of Seatbelt's rules, and what they decide: a small copy of what the kernel of macOS does with them.

The rules are a Scheme program for Apple's compiler. Of that language this knows lists, words, numbers, strings,
patterns (`#"…"`) and comments; of the filters those about paths.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Expression: TypeAlias = "str | Text | Pattern | list[Expression]"
"""A word is a plain string."""

_TOKEN = re.compile(
    r'\s+|;[^\n]*|(?P<paren>[()])|#"(?P<pattern>[^"]*)"|"(?P<text>(?:[^"\\]|\\.)*)"|(?P<word>[^\s()";#]+)'
)


@dataclass(frozen=True)
class Text:
    value: str


@dataclass(frozen=True)
class Pattern:
    value: str


def read(text: str) -> list[Expression]:
    """Return the expressions of a profile; raise `ValueError` where it is none."""
    top: list[Expression] = []
    open_lists = [top]
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(f"cannot read {text[at : at + 40]!r}")
        at = token.end()
        if token["paren"] == "(":
            inner: list[Expression] = []
            open_lists[-1].append(inner)
            open_lists.append(inner)
        elif token["paren"] == ")":
            open_lists.pop()
            if not open_lists:
                raise ValueError("a list is closed that was not opened")
        elif token["pattern"] is not None:
            open_lists[-1].append(Pattern(token["pattern"]))
        elif token["text"] is not None:
            open_lists[-1].append(Text(re.sub(r"\\(.)", r"\1", token["text"])))
        elif token["word"] is not None:
            open_lists[-1].append(token["word"])
    if len(open_lists) != 1:
        raise ValueError("a list is not closed")
    return top


@dataclass(frozen=True)
class Rule:
    allows: bool
    operations: tuple[str, ...]
    filters: tuple[list[Expression], ...]


class Rules:
    """Rules as the kernel goes by them.

    Args:
        text: The profile.
        parameters: What `(param "…")` stands for.
    """

    def __init__(self, text: str, parameters: Mapping[str, str]) -> None:
        self._parameters = parameters
        version, *rules = read(text)
        assert version == ["version", "1"]
        self.rules = [_rule(rule) for rule in rules]

    def decides(self, operation: str, path: str) -> bool:
        """Return whether an operation on a path is allowed, which must not rest on the order of groups and members."""
        in_order = self._last(operation, path, _groups(operation))
        by_group = next(
            found for group in _groups(operation) if (found := self._last(operation, path, [group])) is not None
        )
        assert in_order is by_group, f"{operation} of {path} is decided by the order of the rules alone"
        assert in_order is not None
        return in_order

    def _last(self, operation: str, path: str, names: Sequence[str]) -> bool | None:
        found = None
        for rule in self.rules:
            if not set(names).isdisjoint(rule.operations) and self._fits(rule, path):
                found = rule.allows
        return found

    def _fits(self, rule: Rule, path: str) -> bool:
        return not rule.filters or any(self._is_for(one, path) for one in rule.filters)

    def _is_for(self, one: list[Expression], path: str) -> bool:
        match one:
            case ["literal", place]:
                return path == self._text(place)
            case ["subpath", place]:
                return path == self._text(place) or path.startswith(f"{self._text(place)}/")
            case ["regex", Pattern(value)]:
                return re.search(value, path) is not None
            case ["require-all", *parts]:
                return all(isinstance(part, list) and self._is_for(part, path) for part in parts)
        return False  # of an extension, an address, a service

    def _text(self, place: Expression) -> str:
        match place:
            case Text(value):
                return value
            case ["param", Text(name)]:
                return self._parameters[name]
        raise ValueError(f"no path: {place}")


def _rule(rule: Expression) -> Rule:
    match rule:
        case ["allow" | "deny" as action, *parts]:
            operations = tuple(part for part in parts if isinstance(part, str))
            filters = (part for part in parts if isinstance(part, list) and part[0] != "with")
            return Rule(action == "allow", operations, tuple(filters))
    raise ValueError(f"no rule: {rule}")


def _groups(operation: str) -> list[str]:
    """Return an operation and the groups that it belongs to, narrowest first."""
    parts = operation.split("-")
    wider: Iterator[str] = ("-".join(parts[:count]) + "*" for count in range(len(parts) - 1, 0, -1))
    return [operation, *wider, "default"]
