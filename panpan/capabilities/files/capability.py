"""Files: reading, writing, editing, renaming, notebooks; and the reminder that a file has changed."""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from anyio import to_thread

from panpan.capabilities.files.read import MAX_BYTES, ReadTool
from panpan.core.conversation import Conversation
from panpan.core.hooks import Round, ToolCall
from panpan.core.late_tool import late_tool
from panpan.core.tool import SeenFiles, Tool, WordSearch, digest_of
from panpan.errors import ToolError
from panpan.session.agent import Agent
from panpan.session.capability import Capability
from panpan.session.reminders import ReminderSource
from panpan.system.files.canonical import is_below
from panpan.system.files.read_file import read_regular_file
from panpan.system.text.terminal_text import printable
from panpan.types.dataclass import dataclass
from panpan.types.events import Output
from panpan.types.messages import SystemReminder, strip_tags

MOST_FILES = 200
"""Most files that are looked at, those that the model read last."""
MOST_NAMES = 20


class Files(Capability):
    """Reads and changes files."""

    name = "files"

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        return (
            ReadTool(),
            late_tool(__package__, "Write", "write:WriteTool"),
            late_tool(__package__, "Edit", "edit:EditTool"),
            late_tool(__package__, "MultiEdit", "edit:MultiEditTool"),
            late_tool(__package__, "Patch", "patch:PatchTool"),
            late_tool(__package__, "Rename", "rename:RenameTool", lambda: self.session.find(WordSearch)),
            late_tool(__package__, "NotebookEdit", "notebook_edit:NotebookEditTool"),
        )

    def reminders(self, agent: Agent) -> Iterable[ReminderSource]:
        return (FileChanged(agent.context.seen_files, agent.context.paths.root),)

    def services(self) -> Iterable[object]:
        return (ReadTool(),)


_CHANGED = "Changed since you read them, by the user, a command or another program: {names}. "
_GONE = "Gone since you read them: {names}. "
_ADVICE = "What you know of them may be wrong: read again what you still need. The changes may be wanted; keep them."


@dataclass(frozen=True, slots=True)
class _State:
    """State of a file that tells, without reading it, whether it was written to."""

    mtime_ns: int
    ctime_ns: int
    size: int
    inode: int


_NOTHING = _State(0, 0, 0, 0)
"""State of a file which is gone, also where something else than a file has its name now."""
_TOO_LARGE = b"too large"
"""Used in place of the digest of a file that is larger than any the model has read."""


@dataclass(frozen=True, slots=True)
class _Change:
    path: Path
    found: bytes
    """Digest of what is there now; empty where nothing is."""


class FileChanged(ReminderSource):
    """Reminds of files that are not any more as the model has read them.

    What the model wrote itself with the tools for files it knows. What its own commands changed it is told, too: which
    files a formatter rewrites, say, the call does not tell.

    Args:
        seen_files: What the model knows.
        root: Canonical root of the workspace; paths in it are told relative to it.
    """

    def __init__(self, seen_files: SeenFiles, root: Path) -> None:
        self._seen_files = seen_files
        self._root = root
        self._known: dict[Path, tuple[int, _State]] = {}
        """State of a file while it was as the model knows it, behind the number of its sight."""
        self._told: dict[Path, int] = {}
        """Sights of which the model was told, once, that they do not hold any more."""
        self._has_run_command = False

    async def after_tool(self, call: ToolCall, output: Output) -> None:
        if call.effects.commands or not call.effects.is_complete:
            self._has_run_command = True

    async def history_replaced(self, conversation: Conversation) -> None:
        self._known.clear()
        self._told.clear()

    async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
        if not self._seen_files.newest(1):
            return ()
        changes = await to_thread.run_sync(lambda: list(self._changes()))
        self._has_run_command = False
        if not changes:
            return ()
        changed = self._names(change.path for change in changes if change.found)
        gone = self._names(change.path for change in changes if not change.found)
        text = _CHANGED.format(names=changed) if changed else ""
        text += (_GONE.format(names=gone) if gone else "") + _ADVICE
        place = len(round_.conversation.messages)  # files may return to an earlier state; that is a new cause
        return (SystemReminder(text=text, cause=f"file:changed:{_digest_of(changes)}:{place}", priority="high"),)

    def _changes(self) -> Iterator[_Change]:
        """Yield each file that differs from what the model knows, once; a growing log is not told for every line."""
        for path, sight in self._seen_files.newest(MOST_FILES):
            if self._told.get(path) == sight.number:
                continue
            state = _state_of(path)
            if state is None or self._known.get(path) == (sight.number, state):
                continue
            found = _found(path, state)
            if found == sight.digest:
                self._known[path] = sight.number, state
            elif found is not None:
                self._told[path] = sight.number
                if found or not self._has_run_command:  # the model knows what its own command removed or moved
                    yield _Change(path, found)

    def _names(self, paths: Iterable[Path]) -> str:
        shown = (path.relative_to(self._root) if is_below(path, self._root) else path for path in paths)
        names = [strip_tags(printable(str(path))) for path in shown]
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        return ", ".join(names[:MOST_NAMES]) + more


def _state_of(path: Path) -> _State | None:
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return _NOTHING
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return _NOTHING
    return _State(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def _found(path: Path, state: _State) -> bytes | None:
    """Return the digest of what is there; empty where nothing is, None where that cannot be told."""
    if state == _NOTHING:
        return b""
    if state.size > MAX_BYTES:
        return _TOO_LARGE
    try:
        return digest_of(read_regular_file(path, max_bytes=MAX_BYTES))
    except ToolError:
        return None


def _digest_of(changes: Iterable[_Change]) -> str:
    digest = blake2b(digest_size=8)
    for change in changes:
        digest.update(os.fsencode(change.path) + b"\0" + change.found + b"\0")
    return digest.hexdigest()
