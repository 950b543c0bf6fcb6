"""The head of a rules file, of which only `paths` matters here: a list, or one value, also with commas.

Other keys are ignored, and a head that cannot be read is part of the rules.
"""

import re
from collections.abc import Mapping

from panpan.system.text.front_matter import FrontMatterError, Value, read_front_matter
from panpan.types.dataclass import dataclass

_MOST_ALTERNATIVES = 64


@dataclass(frozen=True, slots=True)
class RulesText:
    """A rules file, taken apart."""

    body: str
    patterns: tuple[str, ...] = ()
    """Files that the rules are for; empty where they always hold."""


def split_front_matter(text: str) -> RulesText:
    """Return the rules and the files that they are for."""
    try:
        parts = read_front_matter(text)
    except FrontMatterError:
        parts = None
    if parts is None:
        return RulesText(text)
    values = _texts(parts.head["paths"].value) if "paths" in parts.head else ()
    patterns = [part for value in values for one in _split(value) for part in _expanded(one)]
    return RulesText(parts.body, tuple(patterns))


def _texts(value: Value) -> tuple[str, ...]:
    if isinstance(value, Mapping):
        return ("{" + ",".join(value) + "}",)  # which is a pattern, if it is written without quotes
    return (value,) if isinstance(value, str) else value


def _split(value: str) -> list[str]:
    """Return the values that commas outside braces set apart, without their quotes."""
    parts, depth = [""], 0
    for char in value:
        depth += (char == "{") - (char == "}")
        if char == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += char
    return [bare for part in parts if (bare := part.strip().strip("'\"").strip())]


def _expanded(pattern: str) -> list[str]:
    """Return the patterns that `{a,b}` stands for."""
    done: list[str] = []
    pending = [pattern]
    while pending and len(done) + len(pending) <= _MOST_ALTERNATIVES:
        one = pending.pop(0)
        match = re.search(r"\{([^{}]*)\}", one)
        if match is None:
            done.append(one)
        else:
            pending += [one[: match.start()] + option + one[match.end() :] for option in match[1].split(",")]
    return done + pending
