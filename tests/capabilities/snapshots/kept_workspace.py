"""A workspace whose files are kept by real git, and a log on disk; turns are what a test does to the files."""

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from panpan.capabilities.snapshots.history import SnapshotJournal
from panpan.capabilities.snapshots.rounds import Snapshots
from panpan.capabilities.snapshots.settings import SnapshotSettings
from panpan.capabilities.snapshots.undo import RestorePlan
from panpan.capabilities.snapshots.workspace import SnapshotPlaces
from panpan.core.conversation import Conversation
from panpan.core.effects import Effects
from panpan.core.hooks import ToolCall
from panpan.session.log.records import encode_record, record_of, timestamp
from panpan.types.events import FileChange, Output
from panpan.types.messages import UserMessage
from tests.capabilities.guards.hook_fixtures import call_in, reply, round_of
from tests.fakes.context import context_in
from tests.fakes.tools import FileInput, FileTool

State = Mapping[str, tuple[str, int, bytes]]
"""Each file and link: what it is, its permission bits, its content or target."""


class KeptWorkspace:
    """A folder, a panpan home and a session."""

    def __init__(self, base: Path, *, settings: SnapshotSettings | None = None, session: str = "session-1") -> None:
        self.folder = base / "work"
        self.home = base / "home"
        self.log = base / "logs" / f"{session}.jsonl"
        for folder in (self.folder, self.home, self.log.parent):
            folder.mkdir(exist_ok=True)
        self.roots: Sequence[Path] = (self.folder,)
        self.warnings: list[str] = []
        self.records: list[Mapping[str, Any]] = []
        places = SnapshotPlaces(self.home, session, lambda: self.roots)
        journal = SnapshotJournal(self.log, self._note)
        self.snapshots = Snapshots(settings or SnapshotSettings(), places, journal, self.warnings.append)

    async def turn(self, *changes: Callable[[], object]) -> UserMessage:
        """Run a turn whose rounds do `changes`, and return the message that began it."""
        message = await self.begin_turn()
        for change in changes:
            await self.round(change)
        await self.end_turn()
        return message

    async def round(self, change: Callable[[], object]) -> None:
        """Run a round of a turn, with one call that does `change`."""
        await self.snapshots.rounds.before_effect(call_in(self.folder))
        change()
        await self.snapshots.rounds.after_round(round_of(), reply())

    async def edit(self, change: Callable[[], object], *paths: str, id_: str = "1") -> None:
        """Run a call that says that it changes these files alone."""
        call = self.call(*paths, id_=id_)
        await self.snapshots.rounds.before_effect(call)
        change()
        await self.snapshots.rounds.after_tool(call, Output("done"))

    def call(self, *paths: str, id_: str = "1") -> ToolCall:
        """Return a call that says that it changes these files alone."""
        context = replace(context_in(self.folder), tool_use_id=id_)
        effects = Effects(reads=paths, writes=paths)
        return ToolCall(id_, FileTool("Edit", changes=True), FileInput(), {}, context, effects)

    async def end_round(self) -> None:
        """End the round that runs."""
        await self.snapshots.rounds.after_round(round_of(), reply())

    async def end_turn(self) -> None:
        """End the turn that runs."""
        await self.snapshots.rounds.turn_ended(Conversation())

    async def begin_turn(self) -> UserMessage:
        """Begin a turn, as with a prompt of the user's."""
        message = UserMessage.of("go")
        self._note(record_of(message))
        self.reminders = await self.snapshots.rounds.turn_started(Conversation(messages=[message]))
        return message

    async def undo(self) -> RestorePlan:
        """Undo, and return what it was."""
        plan = await self.snapshots.undo.plan_undo()
        await self.snapshots.undo.restore(plan)
        return plan

    async def redo(self) -> RestorePlan:
        """Redo, and return what it was."""
        plan = await self.snapshots.undo.plan_redo()
        await self.snapshots.undo.restore(plan)
        return plan

    async def rewind(self, message: UserMessage) -> RestorePlan:
        """Bring the files back to before a message, and return what it was."""
        plan = await self.snapshots.undo.plan_rewind(message.uuid)
        await self.snapshots.undo.restore(plan)
        return plan

    def write(self, path: str, data: bytes | str, mode: int | None = None) -> None:
        """Write a file, with the folders above it."""
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data.encode() if isinstance(data, str) else data)
        if mode is not None:
            place.chmod(mode)

    def read(self, path: str) -> str:
        """Return what is in a file."""
        return (self.folder / path).read_text()

    def state(self) -> State:
        """Return all files and links below the folder, those of repositories included."""
        return state_of(self.folder)

    def folders(self) -> Mapping[str, int]:
        """Return all folders below the folder with their permission bits, `.git` and what is in it excepted."""
        below = (path for path in self.folder.rglob("*") if ".git" not in path.parts)
        real = (path for path in below if path.is_dir() and not path.is_symlink())
        return {str(path.relative_to(self.folder)): stat.S_IMODE(path.stat().st_mode) for path in real}

    def _note(self, record: Mapping[str, Any]) -> None:
        self.records.append(record)
        with self.log.open("ab") as file:
            file.write(encode_record({"parentUuid": None, "timestamp": timestamp(), **record}))


def state_of(folder: Path) -> State:
    """Return all files and links below a folder."""
    found = {}
    for here, folders, files in os.walk(os.fsencode(folder)):
        for name in (*folders, *files):
            place = os.path.join(here, name)  # noqa: PTH118 - names that are no text
            status = os.lstat(place)
            path = os.fsdecode(os.path.relpath(place, os.fsencode(folder)))
            if stat.S_ISLNK(status.st_mode):
                found[path] = ("link", 0, os.readlink(place))  # noqa: PTH115
            elif stat.S_ISREG(status.st_mode):
                with open(place, "rb") as file:  # noqa: PTH123
                    found[path] = ("file", stat.S_IMODE(status.st_mode), file.read())
    return found


def kinds(changes: Sequence[FileChange]) -> Mapping[str, str]:
    """Return what became of each file."""
    return {change.path: change.kind for change in changes}


def remove(place: Path) -> None:
    """Remove a file that may be missing."""
    with suppress(FileNotFoundError):
        place.unlink()
