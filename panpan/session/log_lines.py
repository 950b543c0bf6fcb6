"""Lines of a log as they are read, whatever the file and the line are.

The rule: only a regular file is read, since a FIFO would wait for its other end; and no record is taken that is nested
so deeply that whoever walks through it could fail, or so large that it could only be meant to fill the memory.
"""

import errno
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

MAX_DEPTH = 100
"""Of lists and objects within each other; arguments of tools come nowhere near."""

MAX_LINE_BYTES = 100_000_000
"""No provider takes a request of a third of that, so no message has it."""

_BEGINNING_BYTES = 100
"""Of a line that is too large, which is no record."""


def open_to_read(path: Path) -> BinaryIO:
    """Open a log, or what stands in its place.

    Raises:
        OSError: It cannot be read, or is no regular file.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        return os.fdopen(fd, "rb")
    except BaseException:
        os.close(fd)
        raise


def lines_of(file: BinaryIO, *, most_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[bytes, int]]:
    """Yield the lines from where a file stands, each with its size; of one that is too large, its beginning.

    Args:
        file: A log.
        most_bytes: Of a line that can be a record.
    """
    while line := file.readline(most_bytes):
        size = len(line)
        rest = line
        while len(rest) == most_bytes and not rest.endswith(b"\n"):
            rest = file.readline(most_bytes)
            size += len(rest)
        yield (line, size) if rest is line else (line[:_BEGINNING_BYTES] + rest[-1:], size)


def parsed(line: bytes) -> dict[str, Any] | None:
    """Return the object that a line holds; None where it holds none, or one that is nested too deeply."""
    has_no_number = b"NaN" in line or b"Infinity" in line  # which Python reads, and no provider
    try:
        value = json.loads(line, parse_constant=lambda _: None) if has_no_number else json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    is_surely_flat = line.count(b"{") + line.count(b"[") <= MAX_DEPTH  # almost every line, and quickly told
    return value if is_surely_flat or _is_flat(value) else None


def _is_flat(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [item for one in level for item in _items(one)]
        if not level:
            return True
    return False


def _items(value: Any) -> list[Any]:
    """Return the lists and objects within one."""
    items = value.values() if isinstance(value, dict) else value
    return [item for item in items if isinstance(item, dict | list)]
