"""Tables of TOML whose form nobody warrants: what is of another kind than expected is not there."""

from collections.abc import Mapping, Sequence
from typing import Any


def table_of(said: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """Return the table below these keys; an empty one where there is none."""
    found: Any = said
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def word_in(said: Mapping[str, Any], key: str) -> str:
    """Return the text behind a key; empty where there is none."""
    value = said.get(key)
    return value if isinstance(value, str) else ""


def texts_in(value: object) -> Sequence[str]:
    """Return the texts in a list; none where it is no list."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
