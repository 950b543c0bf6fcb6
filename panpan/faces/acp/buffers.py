"""Unsaved changes in the editor, as far as it shows them: the model reads of them, and no file is changed below them.

The rule: files are read and written on the disk, with all checks. The editor is only asked about files that a call is
allowed to read, or about to change. An editor that cannot answer is as if it had nothing unsaved.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import ClassVar

import anyio
from acp.schema import ReadTextFileRequest
from anyio import to_thread

from panpan.core.hooks import Hook, ToolCall
from panpan.editing.planned_edit import ChangeReport
from panpan.errors import PanpanError
from panpan.faces.acp.connection import ClientError, Connection
from panpan.session.agent import Agent
from panpan.session.capability import Capability
from panpan.system.text.terminal_text import clean_line
from panpan.types.events import Output
from panpan.types.permission import Deny, Reason

ANSWER_S = 2.0
"""Seconds that the editor has to answer."""
MAX_FILE_BYTES = 2_000_000
MAX_NOTE_CHARS = 20_000
"""Longest difference that the model gets."""
_MOST_FILES = 5
"""Most files of one call that are asked about."""


def editor_buffers(connection: Connection) -> type[Capability]:
    """Return the capability for an editor that shows its buffers."""

    class EditorBuffers(Capability):
        """Asks the editor for unsaved changes."""

        name: ClassVar[str] = "editor_buffers"

        def hooks(self, agent: Agent) -> Iterable[Hook]:
            session_id = self.session.id

            async def read(path: Path) -> str | None:
                request = ReadTextFileRequest(session_id=session_id, path=str(path))
                try:
                    with anyio.move_on_after(ANSWER_S):
                        answer = await connection.request("fs/read_text_file", request)
                        content = answer.get("content") if isinstance(answer, dict) else None
                        return content if isinstance(content, str) else None
                except ClientError:
                    pass
                return None

            return (UnsavedChanges(read),)

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
                problem = f"the user's editor has unsaved changes in {clean_line(str(path))}"
                advice = "Ask the user to save or discard them, then read the file again."
                return Deny(Reason(problem, path=str(path), advice=advice))
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
        if shown is None or _plain(shown) == _plain(saved):
            return None
        return _plain(saved), _plain(shown)


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


def _plain(text: str) -> str:
    """Return a text without what editors change in it by themselves: line ends, and a mark before."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").rstrip("\n")


def _diff(saved: str, shown: str) -> str:
    if len(shown) > MAX_FILE_BYTES:
        return "(too long to be compared)"
    return ChangeReport("", saved, shown).diff().diff
