"""TOML in bounded time: tomllib takes time by the square of a dotted key's length, and tables in tables for a stack."""

from typing import Any

_MAX_DOT_WORK = 1_000_000
"""20,000 dots keep tomllib busy for seconds, this for 30 ms."""


class TooDeepError(ValueError):
    """Tables are nested more deeply than any settings are."""


def parse_toml(text: str) -> dict[str, Any]:
    """Return the tables of a text.

    Raises:
        TooDeepError: They are nested too deeply.
        ValueError: It is no TOML.
    """
    import tomllib

    if sum(part.count(".") ** 2 for line in text.split("\n") for part in line.split("=")) > _MAX_DOT_WORK:
        raise TooDeepError("is nested too deeply")
    try:
        return tomllib.loads(text)
    except RecursionError as exc:
        raise TooDeepError("is nested too deeply") from exc
