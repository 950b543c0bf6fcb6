"""Going on with a session: what its log adds up to, and what the user should know of that first."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from panpan.services.sessions.fold import FoldedSession, folded
from panpan.services.sessions.log import read_records


def resumed(path: Path, *, cwd: Path, warn: Callable[[str], None]) -> FoldedSession:
    """Return what the log of an earlier session adds up to.

    Args:
        path: The log.
        cwd: Where the tools work now, canonical.
        warn: Told what of the session is not as it was, one sentence each.

    Raises:
        SessionError: The log cannot be read.
    """
    damaged_lines: list[int] = []
    session = folded(read_records(path, note_damage=damaged_lines.append))
    for note in _notes(session, damaged_lines, path, cwd):
        warn(note)
    return session


def _notes(session: FoldedSession, damaged_lines: Sequence[int], path: Path, cwd: Path) -> Iterator[str]:
    if damaged_lines:
        one, more = f"line {damaged_lines[0]} of the session's log", len(damaged_lines) - 1
        what = f"{one} and {more} further cannot be read and count" if more else f"{one} cannot be read and counts"
        yield f"{what} for nothing: {path}"
    if session.begun_in not in (None, str(cwd)):
        yield f"the session was begun in {session.begun_in}; its tools work in {cwd} now"
    if session.is_from_newer_version:
        yield "the session was written by a newer panpan; what this one does not know is left out"
