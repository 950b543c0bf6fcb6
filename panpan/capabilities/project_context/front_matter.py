"""The head of a rules file: between two lines of `---`, of which only `paths` matters here.

    ---
    paths:
      - "src/**/*.py"
    ---

A list in brackets and a single value, also with commas, are understood, too. Other keys are ignored.
"""

import re

from panpan.types.dataclass import dataclass

_KEY = re.compile(r"paths\s*:\s*(?P<value>.*)")
_ITEM = re.compile(r"\s*-\s+(?P<value>.+)")
_MOST_ALTERNATIVES = 64


@dataclass(frozen=True, slots=True)
class RulesText:
    """A rules file, taken apart."""

    body: str
    patterns: tuple[str, ...] = ()
    """Files that the rules are for; empty where they always hold."""


def split_front_matter(text: str) -> RulesText:
    """Return the rules and the files that they are for; a head without an end is no head."""
    lines = text.splitlines()
    if not lines or lines[0].strip() != "---":
        return RulesText(text)
    end = next((number for number, line in enumerate(lines[1:], 1) if line.strip() == "---"), None)
    if end is None:
        return RulesText(text)
    patterns = [part for value in _values(lines[1:end]) for part in _expanded(value)]
    return RulesText("\n".join(lines[end + 1 :]).strip(), tuple(patterns))


def _values(head: list[str]) -> list[str]:
    for number, line in enumerate(head):
        match = _KEY.fullmatch(line.rstrip())
        if match is None:
            continue
        value = match["value"].strip()
        if value and not value.startswith("#"):
            return _split(value.removeprefix("[").removesuffix("]"))
        values = []
        for item in head[number + 1 :]:
            if (found := _ITEM.fullmatch(item)) is None:
                break
            values += _split(found["value"])
        return values
    return []


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
