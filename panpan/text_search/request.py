"""One question to a search program, and what it printed: records of a path and what belongs to it."""

import os
import re
from collections.abc import Callable
from typing import Literal, TypeAlias

from panpan.types.dataclass import dataclass

# One question to a search program: which folder, what to look for, and how to answer.
#
# The rule: ripgrep and the search that stands in for it get the same request and print the same form, so that nothing
# outside of `engine.py` knows which of them ran.

Answer: TypeAlias = Literal["lines", "files", "counts", "listing"]
"""Lines that match, files that hold a match, numbers of matching lines, or names of files whatever is in them."""

HIDDEN_FOLDERS = (".git", ".hg", ".svn", ".jj")
"""Never searched: what version control keeps for itself."""

MAX_COLUMNS = 2000
"""Bytes of a line that are printed; what the model is shown of it is cut further."""

_NAMES_TYPE = "panpannames"


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What to search for."""

    folder: str
    """Absolute; the search starts here, and the paths in the answer are relative to it."""
    answer: Answer
    file: str | None = None
    """The name of the one file in the folder to search; None for all of them."""
    pattern: str = ""
    ignore_case: bool = False
    is_multiline: bool = False
    before: int = 0
    after: int = 0
    file_type: str | None = None
    name_globs: tuple[str, ...] = ()
    """A file's name must match one of these, where there are any; not used together with `file_type`."""
    excluded: tuple[str, ...] = ()
    """Globs of files and folders to leave out."""
    is_in_repository: bool = True
    """Whether a git repository is around the folder; see `ignore_rules.py`."""
    has_parent_rules: bool = True
    """Whether the .gitignore files above the folder count."""
    is_sorted: bool = False
    """Whether the answer comes in the order of paths, which costs time; a listing comes newest first in any case."""

    def ripgrep_arguments(self) -> list[str]:
        """Return the request as ripgrep takes it."""
        arguments = ["--no-config", "--no-messages", "--color=never", "--null", *self._selection_arguments()]
        if self.answer == "listing":
            return [*arguments, "--files", "--sortr=modified", "--", "./"]
        arguments += ["--no-heading", "--with-filename", "--crlf", "--engine=auto"]
        arguments += {
            "lines": ["--line-number", f"--max-columns={MAX_COLUMNS}", "--max-columns-preview"],
            "files": ["--files-with-matches"],
            "counts": ["--count"],
        }[self.answer]
        if self.answer == "lines" and (self.before or self.after):
            arguments += [f"--before-context={self.before}", f"--after-context={self.after}"]
        if self.ignore_case:
            arguments.append("--ignore-case")
        if self.is_multiline:
            arguments += ["--multiline", "--multiline-dotall"]
        if self.is_sorted:
            arguments.append("--sort=path")
        return [*arguments, f"--regexp={self.pattern}", "--", f"./{self.file or ''}"]

    def _selection_arguments(self) -> list[str]:
        """Say which files count. A glob that includes beats .gitignore and a type does not, so names come as a type."""
        arguments = ["--hidden", "--no-ignore-global", "--no-ignore-dot"]
        arguments += [f"--glob=!{name}" for name in (*HIDDEN_FOLDERS, *self.excluded)]
        if not self.is_in_repository:
            arguments.append("--no-require-git")
        if not self.has_parent_rules:
            arguments.append("--no-ignore-parent")
        if self.file_type is not None:
            arguments.append(f"--type={self.file_type}")
        elif self.name_globs:
            arguments += [f"--type-add={_NAMES_TYPE}:{glob}" for glob in self.name_globs]
            arguments.append(f"--type={_NAMES_TYPE}")
        return arguments


# Reading what a search program printed: records of a path and what belongs to it, in the order of paths.
#
# The rule: a path ends at a NUL, so that no name of a file can be taken for the text of a line.

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
