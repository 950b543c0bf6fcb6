"""TOML in bounded time: tomllib is quadratic in the length of a dotted key, and recursive in nested tables."""

from typing import Any

_MAX_DOT_WORK = 1_000_000
"""Sum of the squared numbers of dots; 20,000 dots keep tomllib busy for seconds, this sum for 30 ms."""


class TooDeepError(ValueError):
    """Tables are nested more deeply than any settings are."""


def parse_toml(text: str) -> dict[str, Any]:
    """Return the tables of a text.

    Raises:
        TooDeepError: They are nested too deeply.
        ValueError: It is not TOML.
    """
    import tomllib

    if sum(part.count(".") ** 2 for line in text.split("\n") for part in line.split("=")) > _MAX_DOT_WORK:
        raise TooDeepError("is nested too deeply")
    try:
        return tomllib.loads(text)
    except RecursionError as exc:
        raise TooDeepError("is nested too deeply") from exc
