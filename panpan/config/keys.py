"""How a setting is named: a path of keys, written with dots as in TOML, `providers.deepseek.base_url`.

Text that came out of a file or variable goes through `shown` before it is put into a message: a file of the project may
hold anything, also what drives a terminal.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from pydantic import BaseModel

KeyPath: TypeAlias = tuple[str, ...]
"""A setting's name, part by part."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def shown(text: object) -> str:
    """Return the text on one line, with every character that does not print written as an escape."""
    return "".join(character if character.isprintable() else _escaped(character) for character in str(text))


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def quoted(text: str) -> str:
    """Return the text as a TOML basic string without any character that does not print."""
    return shown(json.dumps(text, ensure_ascii=False))


def dotted(path: Sequence[str]) -> str:
    """Return the path as TOML writes it: parts that are not plain words in quotes."""
    return ".".join(part if _BARE.fullmatch(part) else quoted(part) for part in path)


def leaves(values: Mapping[str, Any], prefix: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield every value below nested tables with its path, in the order of writing; of tables only the empty ones."""
    for name, value in values.items():
        path = (*prefix, name)
        if isinstance(value, Mapping) and value:
            yield from leaves(value, path)
        else:
            yield path, value


def put(values: dict[str, Any], path: KeyPath, value: Any) -> None:
    """Set the value in nested tables, making those that are missing; an empty table takes nothing away."""
    for part in path[:-1]:
        values = values.setdefault(part, {})
    if value == {}:
        values.setdefault(path[-1], {})
    else:
        values[path[-1]] = value


def flatten(model: BaseModel, prefix: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield every value of a settings model with its path, in the order of declaration."""
    for name in type(model).model_fields:
        yield from _flatten_value((*prefix, name), getattr(model, name))


def _flatten_value(path: KeyPath, value: Any) -> Iterator[tuple[KeyPath, Any]]:
    if isinstance(value, BaseModel):
        yield from flatten(value, path)
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _flatten_value((*path, name), item)
    else:
        yield path, value


def is_secret(path: KeyPath) -> bool:
    """Return True if the value of this key must never be shown."""
    if path[0] == "providers":
        return path[2:] == ("api_key",) or (len(path) == 4 and path[2] == "headers")
    return path in (("api_key",), ("web", "proxy"))
