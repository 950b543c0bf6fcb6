"""Unsaved changes in the editor, as far as it shows them: the model reads of them, and no file is changed below them.

The rule: files are read on the disk, with all checks. The editor is only asked about files that a call is allowed to
read, or about to change. An editor that cannot answer is as if it had nothing unsaved.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import ClassVar

import anyio
from acp.schema import ReadTextFileRequest, WriteTextFileRequest
from anyio import to_thread

from panpan.core.hooks import Hook, ToolCall
from panpan.editing.planned_edit import ChangeReport
from panpan.errors import PanpanError
from panpan.faces.acp.connection import ClientError, Connection
from panpan.session.agent import Agent
from panpan.session.capability import Capability
from panpan.session.context import SessionContext
from panpan.system.text.terminal_text import clean_line
from panpan.types.events import Output
from panpan.types.permission import Deny, Reason

ANSWER_S = 2.0
"""Seconds that the editor has to answer."""
WRITE_S = 5.0
"""Seconds that it has to write a file."""
UNSAVED = "the user's editor has unsaved changes in"
SAVE_FIRST = "Ask the user to save or discard them, then read the file again."
MAX_FILE_BYTES = 2_000_000
MAX_NOTE_CHARS = 20_000
"""Longest difference that the model gets."""
_MOST_FILES = 5
"""Most files of one call that are asked about."""


class Buffers:
    """The editor's buffers, for one session.

    Args:
        connection: The way to the editor.
        session_id: The session.
    """

    def __init__(self, connection: Connection, session_id: str) -> None:
        self._connection = connection
        self._session_id = session_id

    async def read(self, path: Path) -> str | None:
        """Return what the editor shows of a file; None if it does not say."""
        request = ReadTextFileRequest(session_id=self._session_id, path=str(path))
        try:
            with anyio.move_on_after(ANSWER_S):
                answer = await self._connection.request("fs/read_text_file", request)
                content = answer.get("content") if isinstance(answer, dict) else None
                return content if isinstance(content, str) else None
        except ClientError:
            pass
        return None

    async def write(self, path: Path, text: str) -> bool:
        """Let the editor write a file; return False if it did not answer in time.

        Raises:
            ClientError: The editor refuses.
        """
        request = WriteTextFileRequest(session_id=self._session_id, path=str(path), content=text)
        with anyio.move_on_after(WRITE_S) as scope:
            await self._connection.request("fs/write_text_file", request)
        return not scope.cancelled_caught


def editor_buffers(connection: Connection, *, writes: bool) -> type[Capability]:
    """Return the capability for an editor that shows its buffers.

    Args:
        connection: The way to the editor.
        writes: True if it also writes files.
    """

    class EditorBuffers(Capability):
        """Asks the editor for unsaved changes, and lets it write."""

        name: ClassVar[str] = "editor_buffers"

        def __init__(self, session: SessionContext) -> None:
            super().__init__(session)
            self._buffers = Buffers(connection, session.id)
            if writes:
                from panpan.faces.acp.writing import EditorWriter

                session.tool_context.writer.use(EditorWriter(self._buffers, session.paths.root, session.processes))

        def hooks(self, agent: Agent) -> Iterable[Hook]:
            return (UnsavedChanges(self._buffers.read),)

    return EditorBuffers


class UnsavedChanges(Hook):
    """Compares files with the editor's buffers.

    Args:
        read: Returns what the editor shows of a file; None if it does not say.
    """

    def __init__(self, read: Callable[[Path], Awaitable[str | None]]) -> None:
        self._read = read

    async def before_tool(self, call: ToolCall) -> Deny | None:
        if not call.tool.notes_changes:
            return None
        for path in _paths(call, [*call.effects.writes, *call.effects.deletes]):
            if await self._texts(path):
                return Deny(Reason(f"{UNSAVED} {clean_line(str(path))}", path=str(path), advice=SAVE_FIRST))
        return None

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        if output.is_error or not call.effects.only_reads_files or call.effects.searches:
            return output
        for path in _paths(call, call.effects.reads):
            if texts := await self._texts(path):
                said = await to_thread.run_sync(_diff, *texts)
                left_out = "" if len(said) <= MAX_NOTE_CHARS else "\n… the rest is left out"
                output = output.with_note(
                    f"The user's editor has unsaved changes in {clean_line(str(path))}. Above is what is on the disk. "
                    f"The changes, as a diff:\n{said[:MAX_NOTE_CHARS]}{left_out}"
                )
        return output

    async def _texts(self, path: Path) -> tuple[str, str] | None:
        """Return a file and its buffer; None if they are equal, or if that is not known."""
        saved = await to_thread.run_sync(_saved, path)
        if saved is None:
            return None
        shown = await self._read(path)
        if shown is None or plain_text(shown) == plain_text(saved):
            return None
        return plain_text(saved), plain_text(shown)


def _paths(call: ToolCall, written: Sequence[str]) -> Sequence[Path]:
    found = []
    for name in list(dict.fromkeys(written))[:_MOST_FILES]:
        try:
            found.append(Path(call.context.paths.absolute(name)))
        except PanpanError:
            continue
    return found


def _saved(path: Path) -> str | None:
    """Return the text of a file; None if it is none, or too long. Blocks."""
    try:
        if not path.is_file() or path.stat().st_size > MAX_FILE_BYTES:
            return None
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        return None


def plain_text(text: str) -> str:
    """Return a text without what editors change in it by themselves: line ends, and a mark before."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").rstrip("\n")


def _diff(saved: str, shown: str) -> str:
    if len(shown) > MAX_FILE_BYTES:
        return "(too long to be compared)"
    return ChangeReport("", saved, shown).diff().diff
