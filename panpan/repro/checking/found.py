"""Outcome of a search for a number, and the words for what was found instead."""

from collections.abc import Iterable

from panpan.repro.claims.written_number import read_number
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass

_MAX_CHARS = 80
_MAX_NAMED = 8


@dataclass(frozen=True, slots=True)
class Found:
    """A number as it stands, or the reason that there is none."""

    number: str = ""
    problem: str = ""
    """Sentence; empty if there is a number."""


def number_in(text: str, place: str) -> Found:
    """Return what a text is if a number is expected.

    Args:
        text: The text, of a stranger.
        place: Its place, for the problem.
    """
    if read_number(text) is None:
        return Found(problem=f"{place} is {quoted(text) if text.strip() else 'empty'}, which is no number")
    return Found(number=text.strip())


def quoted(text: str) -> str:
    """Return a text of a stranger on one line, in quotes, and shortened if it is long."""
    line = clean_line(text)
    return f'"{line}"' if len(line) <= _MAX_CHARS else f'"{line[: _MAX_CHARS - 1]}…"'


def named(names: Iterable[str]) -> str:
    """Return the first names of strangers, and the number of others."""
    every = [clean_line(name)[:_MAX_CHARS] for name in names]
    more = len(every) - _MAX_NAMED
    return ", ".join(every[:_MAX_NAMED]) + (f" and {more:,} more" if more > 0 else "")
