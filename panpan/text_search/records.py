"""Reading what a search program printed: records of a path and what belongs to it, in the order of paths.

The rule: a path ends at a NUL, so that no name of a file can be taken for the text of a line.
"""

import os
import re
from collections.abc import Callable
from typing import TypeAlias

from panpan.text_search.request import Answer

Record: TypeAlias = tuple[bytes, bytes]
"""A path relative to the folder of the search, and a numbered line, a count, or nothing."""

_NUMBERED = re.compile(rb"(\d+)([:-])")
_BINARY_MARKS = (b": binary file matches", b": WARNING: stopped searching binary file")
"""What ripgrep prints behind a path without a NUL, and in place of lines: of a file that was named itself, and of one
that turned out to be binary after it matched."""


def parse_records(stdout: bytes, answer: Answer, is_kept: Callable[[str], bool] | None = None) -> list[Record]:
    """Return the records of an answer that is no listing, sorted by path.

    Args:
        stdout: What was printed, whole records only.
        answer: What was asked for.
        is_kept: Says by its path whether a file counts; None for all.
    """
    groups = [(path, [b""]) for path in _paths(stdout)] if answer == "files" else _grouped(stdout)
    if is_kept is not None:
        groups = [group for group in groups if is_kept(os.fsdecode(group[0]))]
    # With NUL for the slash, which sorts before all else, whole names are compared one after the other.
    groups.sort(key=lambda group: group[0].replace(b"/", b"\0"))
    return [(path, rest) for path, rests in groups for rest in rests]


def parse_listing(stdout: bytes) -> list[str]:
    """Return the paths of a listing, in its own order."""
    return os.fsdecode(b"\0".join(_paths(stdout))).split("\0") if stdout else []


def _paths(stdout: bytes) -> list[bytes]:
    """Return paths that each end at a NUL and start with `./`."""
    return stdout.removesuffix(b"\0").removeprefix(b"./").split(b"\0./") if stdout else []


def _grouped(stdout: bytes) -> list[tuple[bytes, list[bytes]]]:
    """Gather the lines by file; a program prints all lines of a file together."""
    groups: list[tuple[bytes, list[bytes]]] = []
    current = None
    for line in stdout.split(b"\n"):
        path, nul, rest = line.partition(b"\0")
        if not nul:
            groups += [(line[2 : line.rindex(mark)], [b""]) for mark in _BINARY_MARKS if mark in line]
            continue
        if path != current:
            current = path
            groups.append((path[2:], []))
        groups[-1][1].append(rest.removesuffix(b"\r"))  # every line ends so under --crlf
    return groups


def numbered_line(rest: bytes) -> tuple[int, str, str]:
    """Return number, mark and text of a record's line; the mark is `:` for a match and `-` for its context."""
    found = _NUMBERED.match(rest)
    if found is None:
        return 0, ":", " binary from here on, so not shown"
    return int(found[1]), found[2].decode(), rest[found.end() :].decode(errors="replace")
