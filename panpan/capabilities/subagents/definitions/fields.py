"""Values of a head, as what they have to be. What is wrong is noted, with its line, and nothing is raised."""

import math
from collections.abc import Mapping

from panpan.capabilities.subagents.definitions.problem import Problem
from panpan.system.text.front_matter import Entry, Value

_YES = frozenset({"true", "yes", "on"})
_NO = frozenset({"false", "no", "off", ""})


class Fields:
    """Reads the values of one head.

    Args:
        head: The values, by key.
    """

    def __init__(self, head: Mapping[str, Entry]) -> None:
        self.problems: list[Problem] = []
        self._head = head

    def __contains__(self, key: str) -> bool:
        return key in self._head

    def line(self, key: str) -> int:
        """Return the line of a key."""
        return self._head[key].line if key in self._head else 0

    def value(self, key: str) -> Value:
        """Return what stands behind a key; nothing where there is no such key."""
        return self._head[key].value if key in self._head else ""

    def text(self, key: str) -> str:
        """Return a text, without blanks around it."""
        value = self._head[key].value if key in self._head else ""
        if isinstance(value, str):
            return value.strip()
        self.fail(key, f"{key} has to be a text")
        return ""

    def is_on(self, key: str) -> bool:
        """Return a yes or no; no where nothing is said."""
        text = self.text(key).lower()
        if text not in _YES | _NO:
            self.fail(key, f"{key} has to be true or false, and not {text[:40]!r}")
        return text in _YES

    def whole_number(self, key: str) -> int | None:
        """Return a whole number of 1 or more; None where nothing is said."""
        number = self.number(key, kind="a whole number of 1 or more")
        if number is None:
            return None
        if number != int(number) or number < 1:
            self.fail(key, f"{key} has to be a whole number of 1 or more")
        return int(number)

    def number(self, key: str, *, kind: str = "", least: float | None = None, most: float = math.inf) -> float | None:
        """Return a number; None where nothing is said.

        Args:
            key: What it stands behind.
            kind: What it has to be, for messages; empty: as the bounds say.
            least: The least that it may be; None: it has to be above 0.
            most: The most that it may be.
        """
        lower = "a number above 0" if least is None else f"a number from {least:g} on"
        kind = kind or (lower if most == math.inf else f"{lower}, {most:g} at most")
        text = self.text(key)
        if not text:
            return None
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if math.isfinite(number) and (number > 0 if least is None else number >= least) and number <= most:
            return number
        self.fail(key, f"{key} has to be {kind}, and not {text[:40]!r}")
        return None

    def fail(self, key: str, text: str) -> None:
        """Note what makes the definition unusable."""
        self.problems.append(Problem(text, self.line(key)))

    def note(self, key: str, text: str) -> None:
        """Note what has no effect."""
        self.problems.append(Problem(text, self.line(key), is_error=False))
