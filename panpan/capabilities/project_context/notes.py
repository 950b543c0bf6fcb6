"""Notes: a line of the user's that goes into a file of rules, and to the model at once."""

import os
from collections.abc import Sequence
from pathlib import Path

from anyio import to_thread

from panpan.core.hooks import Round
from panpan.core.tool import digest_of
from panpan.errors import ConfigError, ToolError
from panpan.session.reminders import ReminderSource
from panpan.system.files.atomic_write import FileChangedError, write_atomic
from panpan.system.files.canonical import canonical_path, is_below
from panpan.system.files.protected import protections
from panpan.system.files.read_file import read_regular_file
from panpan.types.messages import SystemReminder, new_id

AGENTS_FILE = "AGENTS.md"
_TAKING = ("AGENTS.override.md", AGENTS_FILE, "CLAUDE.md")
MAX_BYTES = 1_000_000
MAX_CHARS = 10_000
"""Most characters of a note."""


class TakenNotes(ReminderSource):
    """Tells the model what the user has noted since the session began."""

    def __init__(self) -> None:
        self._taken: list[SystemReminder] = []

    def add(self, note: str, file: Path) -> None:
        text = f"The user has just noted in {file}, to hold from now on: {note}"
        self._taken.append(SystemReminder(text=text, cause=f"memory:note:{new_id()}"))

    async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
        return self._taken


def file_for_notes(folder: Path) -> Path:
    """Return the file of a folder that takes notes: the one that the model gets, else `AGENTS.md`."""
    return next((folder / name for name in _TAKING if os.path.lexists(folder / name)), folder / AGENTS_FILE)


async def append_note(note: str, file: Path, within: Path | None) -> None:
    """Write a note as a list item at the end of a file, which is made if there is none.

    Args:
        note: Its words; line breaks become blanks.
        file: The file.
        within: Folder that no link may lead out of; None for a file of the user.

    Raises:
        ConfigError: It cannot be written; the file is as it was.
    """
    line = " ".join(note.split())
    if not line or len(line) > MAX_CHARS or any("\ud800" <= letter <= "\udfff" for letter in line):
        raise ConfigError(f"a note has from 1 to {MAX_CHARS:,} characters of text")
    try:
        await to_thread.run_sync(_append, line, file, within)
    except FileChangedError:
        raise ConfigError(f"{file} was changed at this moment; note it again") from None
    except ToolError as error:
        raise ConfigError(f"the note was not kept: {error}") from error


def _append(line: str, file: Path, within: Path | None) -> None:
    place = canonical_path(file)
    if within is not None and place != file:
        if not is_below(place, within):
            raise ToolError(f"{file} is a link that leads out of {within}")
        if place.suffix != ".md" or any(protections(place)):
            raise ToolError(f"{file} is a link to {place}, which takes no notes")
    if not place.exists():
        write_atomic(place, f"- {line}\n".encode(), must_not_exist=True)
        return
    before = read_regular_file(place, max_bytes=MAX_BYTES)
    try:
        before.decode()
    except UnicodeDecodeError:
        raise ToolError(f"{file} is not UTF-8 text") from None
    end = b"\r\n" if b"\r\n" in before else b"\n"
    gap = b"" if before.endswith(b"\n") or not before else end
    write_atomic(place, before + gap + f"- {line}".encode() + end, expected_digest=digest_of(before))
