"""Reading the answers of engines that answer in JSON, whatever they really hold."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from panpan.errors import ToolError


def rows(answer: bytes, title: str, *path: str) -> Sequence[Mapping[str, Any]]:
    """Return the objects of the list to which `path` leads; none where it leads nowhere.

    Args:
        answer: What came.
        title: The engine, for the message.
        path: Keys, from outside in.

    Raises:
        ToolError: It is no JSON object, or what lies there is no list.
    """
    found = _object(answer, title)
    for key in path:
        if found is None:
            return ()
        if not isinstance(found, dict):
            raise ToolError(f"{title} answered with JSON that holds no results")
        found = found.get(key)
    if found is None:
        return ()
    if not isinstance(found, list):
        raise ToolError(f"{title} answered with JSON that holds no results")
    return [row for row in found if isinstance(row, dict)]


def text_of(row: Mapping[str, Any], key: str) -> str:
    """Return a text of an object; empty where there is none."""
    value = row.get(key)
    return value if isinstance(value, str) else ""


def complaint(answer: bytes) -> str:
    """Return what an engine says is wrong, as far as it says it in one of the usual ways; empty where it does not."""
    try:
        found: Any = json.loads(answer)
    except (ValueError, RecursionError):
        return ""
    for _ in range(2):  # detail.error of Tavily, error.detail of Brave, error of Exa
        if isinstance(found, dict):
            found = next((found[key] for key in ("detail", "error", "message") if found.get(key)), "")
    return found if isinstance(found, str) else ""


def _object(answer: bytes, title: str) -> Any:
    try:
        found = json.loads(answer)
    except (ValueError, RecursionError):
        raise ToolError(f"{title} answered with something that is no JSON") from None
    if not isinstance(found, dict):
        raise ToolError(f"{title} answered with JSON that holds no results")
    return found
