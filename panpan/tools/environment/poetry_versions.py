"""Versions as Poetry writes them (python-poetry.org, "Dependency specification"), as PEP 440 and PEP 508 have them."""

import re

_NUMBERS = re.compile(r"([~^]?)\s*(\d{1,9}(?:\.\d{1,9}){0,3})")


def poetry_requirement(name: str, said: object) -> str | None:
    """Return a requirement; None where it names a place, or is not understood.

    Args:
        name: The key.
        said: What stands behind it: versions, or a table.
    """
    table = said if isinstance(said, dict) else {"version": said}
    version, markers, extras = table.get("version"), table.get("markers"), table.get("extras")
    spec = poetry_range(version) if isinstance(version, str) else None
    if spec is None:
        return None
    listed = f"[{','.join(map(str, extras))}]" if isinstance(extras, list) and extras else ""
    conditions = [f"({markers})"] if isinstance(markers, str) else []
    return f"{name}{listed}{spec}" + (f"; {' and '.join(conditions)}" if conditions else "")


def poetry_range(said: str) -> str | None:
    """Return a range; empty where any version will do, None where it is not understood."""
    parts = [_range(part.strip()) for part in said.split(",")]
    return None if None in parts or "||" in said else ",".join(filter(None, parts))


def _range(part: str) -> str | None:
    if part in ("", "*"):
        return ""
    if part[0] in "<>=!":
        return part if part.startswith(("<", ">", "==", "!=")) else f"={part}"
    match = _NUMBERS.fullmatch(part)
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
