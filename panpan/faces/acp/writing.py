"""Changes of files through the editor, so that its buffers show what is on the disk.

The rule: nothing is lost, and nothing is written that was not allowed. Only whole, plain, existing text files of the
workspace go through the editor, after all checks of the disk writer, and what it saved is read again. If the editor
cannot do it, the disk writer does.
"""

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from anyio import CancelScope, from_thread

from panpan.core.file_writer import DiskWriter, OtherContentError
from panpan.core.tool import digest_of
from panpan.errors import ToolError
from panpan.faces.acp.buffers import MAX_FILE_BYTES, SAVE_FIRST, UNSAVED, Buffers, plain_text
from panpan.faces.acp.connection import ClientError
from panpan.system.files.read_file import read_regular_file, set_mode, status_of
from panpan.system.processes.process_table import ProcessTree


class EditorWriter:
    """Lets the editor write.

    Args:
        buffers: The editor's buffers.
        folder: The workspace, canonical.
        processes: The trees of processes that commands of the session have started.
    """

    def __init__(self, buffers: Buffers, folder: Path, processes: Sequence[ProcessTree]) -> None:
        self._buffers = buffers
        self._folder = folder
        self._processes = processes
        self._disk = DiskWriter()
        self._is_off = False
        """True once the editor was too slow, or saved something else; then the disk writer does all."""

    def write(self, path: Path, data: bytes, *, mode: int | None, expected_digest: bytes | None) -> None:
        """Write as the disk writer does, through the editor where that is safe."""
        text, old = _plain_text_of(data), None
        if expected_digest is not None and mode in (None, _mode_of(path)):
            old = self._old_text(path, expected_digest)
        if text is None or old is None or not self._save(path, old, text, data):
            self._disk.write(path, data, mode=mode, expected_digest=expected_digest)

    def _save(self, path: Path, old: str, text: str, data: bytes) -> bool:
        """Return True if the editor has saved exactly the new text, False if the file is as it was.

        Raises:
            ToolError: The editor has unsaved changes.
            OtherContentError: It saved something else.
        """
        mode = _mode_of(path)
        if mode is None or not from_thread.run(self._ask, path, old, text):
            return False
        now = _content_of(path)
        if now == data:
            if _mode_of(path) != mode:  # some editors put a new file in the place of the old one
                with suppress(OSError):
                    set_mode(path, mode)
            return True
        if now == old.encode():
            return False
        self._is_off = True
        raise OtherContentError(
            f"the user's editor saved something else in {path} than this call was to write, such as a text that it has "
            "formatted; the file is as the editor saved it",
            advice="Read it again. Further changes are written without the editor.",
        )

    def _old_text(self, path: Path, expected_digest: bytes) -> str | None:
        """Return the present text of a file if the editor may write it; if not, the disk writer says what is wrong.

        The editor opens the file by its name. A command that still runs could make a folder of that name a link which
        leads out of the workspace, and so write where its sandbox does not let it.
        """
        if self._is_off or not path.is_relative_to(self._folder) or not os.access(path, os.W_OK):
            return None
        content = _content_of(path)
        if content is None or digest_of(content) != expected_digest:
            return None
        if any(tree.has_processes and tree.members() for tree in self._processes):
            return None
        return _plain_text_of(content)

    async def _ask(self, path: Path, old: str, text: str) -> bool:
        """Let the editor write, and return False if it surely has not.

        It is waited for even when the turn is cancelled, so that what happened is known.

        Raises:
            ToolError: The user has typed into the file since the call was judged.
        """
        with CancelScope(shield=True):
            shown = await self._buffers.read(path)
            if shown is None:
                return False
            if plain_text(shown) != plain_text(old):
                raise ToolError(f"{UNSAVED} {path}", advice=SAVE_FIRST)
            with suppress(ClientError):  # what is on the disk tells how far it came
                self._is_off = not await self._buffers.write(path, text)
        return True


def _mode_of(path: Path) -> int | None:
    try:
        return stat.S_IMODE(status_of(path).st_mode)
    except OSError:
        return None


def _content_of(path: Path) -> bytes | None:
    try:
        return read_regular_file(path, max_bytes=MAX_FILE_BYTES)
    except ToolError:
        return None


def _plain_text_of(data: bytes) -> str | None:
    """Return a text that every editor saves as it is; None for another encoding, other line ends, or a long file."""
    if len(data) > MAX_FILE_BYTES or b"\r" in data or b"\0" in data or data.startswith(b"\xef\xbb\xbf"):
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
