"""Logs of servers: what their programs print beside the protocol, and how they start and end.

The rule: a log is private and bounded, and holds no value that may be a secret. Each line says who wrote it, so that no
server speaks as panpan.
"""

import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Literal

from panpan.capabilities.mcp.entries import ServerEntry
from panpan.errors import ConfigError, ToolError
from panpan.system.files.canonical import canonical_path
from panpan.system.files.folder_tree import make_private_folder, open_private_file
from panpan.system.files.read_file import open_regular_file
from panpan.system.text.terminal_text import clean_for_terminal

MAX_BYTES = 1_000_000
"""Most bytes of a server's log, in two files; when the newer one has half of them, it takes the place of the older."""
_MAX_LINE_BYTES = 20_000
"""Most bytes that are kept of a line until its end comes."""
_MAX_LINE_CHARS = 2_000


def log_file(folder: Path, entry: ServerEntry, project: Path) -> Path:
    """Return the newer file of a server's log."""
    return folder / f"{entry.name}{entry.mark_of(project)}.log"


def _older(file: Path) -> Path:
    return file.with_name(f"{file.name}.1")


class ServerLog:
    """The log of a server, for one run of it.

    Args:
        file: Its newer file; None keeps nothing.
        entry: The server.
    """

    def __init__(self, file: Path | None, entry: ServerEntry) -> None:
        self._file = file
        self._entry = entry
        self._line = b""
        """Line that the server has not ended yet."""

    def note(self, text: str) -> None:
        """Add a line of panpan's own."""
        self._add("panpan", text)

    def take(self, printed: bytes) -> None:
        """Add what the server has printed; a line counts once it is whole, so that no value in it is torn."""
        whole, _, self._line = (self._line[:_MAX_LINE_BYTES] + printed).rpartition(b"\n")
        self._add("stderr", whole.decode("utf-8", "replace"))

    def end(self, why: str) -> None:
        """Add the line that the server has not ended, and why it runs no more."""
        self.take(b"\n")
        self.note(why)

    def _add(self, writer: Literal["panpan", "stderr"], text: str) -> None:
        begin = f"{datetime.now().astimezone().isoformat(timespec='seconds')} {writer}: "
        whole = self._entry.without_values(clean_for_terminal(text)).expandtabs().split("\n")
        lines = [f"{begin}{line[:_MAX_LINE_CHARS].rstrip()}\n" for line in whole if line.strip()]
        if self._file is not None and lines:
            with suppress(OSError, ConfigError):  # a log that cannot be kept costs no server
                _append(self._file, "".join(lines).encode()[-MAX_BYTES // 2 :])


def _append(file: Path, data: bytes) -> None:
    make_private_folder(file.parent)
    if file.exists() and file.stat().st_size + len(data) > MAX_BYTES // 2:
        file.replace(_older(file))
    fd = open_private_file(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


class LogReader:
    """Reads a log from its beginning, and goes on with what is added later."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._line = b""
        self._inode, self._offset = 0, 0
        """The place up to which it has read."""

    def new_lines(self) -> Sequence[str]:
        """Return the whole lines since the last call."""
        with ExitStack() as stack:
            files: dict[int, BinaryIO] = {}
            for file in (self._file, _older(self._file)):  # the newer first: it may take the other's place meanwhile
                with suppress(ToolError):
                    opened = stack.enter_context(open_regular_file(canonical_path(file)))
                    files.setdefault(os.fstat(opened.fileno()).st_ino, opened)
            unread = list(reversed(files))
            for inode in unread[unread.index(self._inode) if self._inode in files else 0 :]:
                files[inode].seek(self._offset if inode == self._inode else 0)
                self._line += files[inode].read(MAX_BYTES)
                self._inode, self._offset = inode, files[inode].tell()
        *whole, self._line = self._line.split(b"\n")
        return [line.decode("utf-8", "replace") for line in whole]
