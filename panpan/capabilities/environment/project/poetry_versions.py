"""Versions as Poetry writes them (python-poetry.org, "Dependency specification"), as PEP 440 and PEP 508 have them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

_NUMBERS = re.compile(r"([~^]?)\s*(\d{1,9}(?:\.\d{1,9}){0,3})")
_OPERATOR = re.compile(r"([<>=!~]=?=?)(.+)")
_PLACES = ("git", "url", "path", "file")


def poetry_requirements(name: str, said: object) -> Sequence[str | None]:
    """Return a requirement, or one for each way in which it is asked for; None in place of what is not understood.

    Args:
        name: The key.
        said: What stands behind it: versions, a table, or a list of tables.
    """
    ways = said if isinstance(said, list) else [said]
    return [_requirement(name, way if isinstance(way, dict) else {"version": way}) for way in ways]


def poetry_range(said: object) -> str | None:
    """Return a range; empty where any version will do, None where it is not understood."""
    if not isinstance(said, str) or "|" in said:
        return None
    parts = [_range(part.strip()) for part in said.split(",")]
    return None if None in parts else ",".join(filter(None, parts))


def _requirement(name: str, way: Mapping[str, Any]) -> str | None:
    is_place = any(key in way for key in _PLACES)
    spec, python = poetry_range("" if is_place else way.get("version")), poetry_range(way.get("python", ""))
    if spec is None or python is None:
        return None
    extras, markers, platform = way.get("extras"), way.get("markers"), way.get("platform")
    listed = f"[{','.join(map(str, extras))}]" if isinstance(extras, list) and extras else ""
    conditions = [f"({markers})"] if isinstance(markers, str) else []
    conditions += [f"sys_platform == '{platform}'"] if isinstance(platform, str) else []
    conditions += [
        f"python_full_version {match[1]} '{match[2]}'" for part in python.split(",") if (match := _OPERATOR.match(part))
    ]
    return f"{name}{listed}{spec}" + (f"; {' and '.join(conditions)}" if conditions else "")


def _range(part: str) -> str | None:
    if part in ("", "*"):
        return ""
    if part.startswith(("<", ">", "==", "!=", "~=")):
        return part.replace(" ", "")
    match = _NUMBERS.fullmatch(part.removeprefix("="))
    if match is None:
        return f"=={part}" if part.endswith(".*") else None
    kind, version = match[1], match[2]
    return f">={version},<{_next(version, is_caret=kind == '^')}" if kind else f"=={version}"


def _next(version: str, *, is_caret: bool) -> str:
    """Return the first version that is too new: `^` keeps the first number that is not 0, `~` the first two."""
    numbers = [int(number) for number in version.split(".")]
    if is_caret:
        kept = next((at for at, number in enumerate(numbers) if number), len(numbers) - 1)
    else:
        kept = min(1, len(numbers) - 1)
    return ".".join(map(str, [*numbers[:kept], numbers[kept] + 1]))
