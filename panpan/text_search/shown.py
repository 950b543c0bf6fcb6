"""How search results are shown to the model: paths that read back as paths, short lines, one page at a time.

The rule: whatever is left out is said, with what to ask for to see it; and a file's name cannot forge a line.
"""

import os
from collections.abc import Callable
from pathlib import Path

from panpan.system.text.terminal_text import printable
from panpan.types.dataclass import dataclass

MAX_RESULT_CHARS = 30_000
MAX_LINE_CHARS = 500


def cut_line(text: str) -> str:
    """Return a line of a file, shortened where it is very long."""
    return text if len(text) <= MAX_LINE_CHARS else f"{text[:MAX_LINE_CHARS]} [line cut]"


@dataclass(frozen=True, slots=True)
class PathPrefix:
    """Makes paths that are relative to the folder of a search relative to the working directory."""

    prefix: str

    @classmethod
    def of(cls, folder: Path, cwd: Path) -> "PathPrefix":
        """Return the prefix for `folder`; the absolute one where it is not below `cwd`."""
        if folder == cwd:
            return cls("")
        text = str(folder.relative_to(cwd)) if folder.is_relative_to(cwd) else str(folder)
        return cls(f"{text.rstrip('/')}/")

    def shown(self, relative: str | bytes) -> str:
        """Return `relative` as the model can hand it to another tool."""
        return printable(f"{self.prefix}{os.fsdecode(relative)}")


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list of lines."""

    lines: tuple[str, ...]
    note: str
    """What is left out, and how to see it; empty where nothing is."""


def page_of(total: int, line: Callable[[int], str], *, offset: int, limit: int, is_partial: bool, noun: str) -> Page:
    """Return the lines from `offset` on, as many as fit.

    Args:
        total: How many lines there are to choose from.
        line: Returns the line with a number; called for those only that are shown.
        offset: The first to show, from 0.
        limit: Most lines to show; 0 for as many as fit.
        is_partial: Whether there are more than `total`.
        noun: What a line is, in the plural.
    """
    end = total if limit == 0 else min(total, offset + limit)
    lines: list[str] = []
    room = MAX_RESULT_CHARS
    for number in range(offset, end):
        text = line(number)
        room -= len(text) + 1
        if room < 0 and lines:
            break
        lines.append(text)
    shown_end = offset + len(lines)
    if not lines:
        return Page((), f"there are {total:,} {noun}, so none from offset {offset:,} on" if total else "")
    of_all = f"more than {total:,}" if is_partial else f"{total:,}"
    if shown_end < total or is_partial:
        return Page(
            tuple(lines),
            f"{noun} {offset + 1:,}-{shown_end:,} of {of_all}; offset={shown_end} shows more, or search for less",
        )
    return Page(tuple(lines), f"{noun} {offset + 1:,}-{shown_end:,} of {of_all}" if offset else "")


def with_notes(lines: tuple[str, ...], notes: tuple[str, ...]) -> str:
    """Return a result: its lines, and each note in brackets on a line of its own."""
    return "\n".join([*lines, *(f"[{note}]" for note in notes if note)])
