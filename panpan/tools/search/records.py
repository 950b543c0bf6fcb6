"""Reading what a search program printed: records of a path and what belongs to it, in the order of paths.

The rule: a path ends at a NUL, so that no name of a file can be taken for the text of a line.
"""

import os
import re
from collections.abc import Callable
from typing import TypeAlias

from panpan.tools.search.request import Answer

Record: TypeAlias = tuple[str, bytes]
"""A path relative to the folder of the search, and a numbered line, a count, or nothing."""

_NUMBERED = re.compile(rb"(\d+)([:-])")
_BINARY = b": binary file matches"


def parse_records(stdout: bytes, answer: Answer, is_kept: Callable[[str], bool] | None = None) -> list[Record]:
    """Return the records, sorted by path except in a listing, which has an order of its own.

    Args:
        stdout: What was printed, whole records only.
        answer: What was asked for.
        is_kept: Says by its path whether a file counts; None for all.
    """
    if answer in ("files", "listing"):
        groups = [(path, [b""]) for path in stdout.split(b"\0") if path]
    else:
        groups = _grouped(stdout)
    named = [(os.fsdecode(path.removeprefix(b"./")), rests) for path, rests in groups]
    if is_kept is not None:
        named = [group for group in named if is_kept(group[0])]
    if answer != "listing":
        named.sort(key=lambda group: group[0].split("/"))
    return [(path, rest) for path, rests in named for rest in rests]


def _grouped(stdout: bytes) -> list[tuple[bytes, list[bytes]]]:
    """Gather the lines by file; a program prints all lines of a file together."""
    groups: list[tuple[bytes, list[bytes]]] = []
    current = None
    for line in stdout.split(b"\n"):
        path, nul, rest = line.partition(b"\0")
        if not nul:
            if _BINARY in line:
                groups.append((line[: line.rindex(_BINARY)], [b""]))
            continue
        if path != current:
            current = path
            groups.append((path, []))
        groups[-1][1].append(rest)
    return groups


def numbered_line(rest: bytes) -> tuple[int, str, str]:
    """Return number, mark and text of a record's line; the mark is `:` for a match and `-` for its context."""
    found = _NUMBERED.match(rest)
    if found is None:
        return 0, ":", " binary file matches"
    return int(found[1]), found[2].decode(), rest[found.end() :].decode(errors="replace")
