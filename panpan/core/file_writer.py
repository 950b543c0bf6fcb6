"""The way in which the file tools of a session put a content into a file: on the disk, or through the user's editor."""

from pathlib import Path
from typing import Protocol

from panpan.errors import ToolError
from panpan.system.files.atomic_write import write_atomic


class OtherContentError(ToolError):
    """The file now holds something else than was to be written."""


class FileWriter(Protocol):
    """Puts contents into files."""

    def write(self, path: Path, data: bytes, *, mode: int | None, expected_digest: bytes | None) -> None:
        """Make `data` the content of a file; blocks, in a worker thread of anyio.

        Args:
            path: The file, canonical.
            data: The whole new content.
            mode: Permission bits; None keeps those there are.
            expected_digest: Digest of the content that is replaced (`digest_of`); None if there must be no file.

        Raises:
            FileChangedError: The file is not as expected; it was left alone.
            OtherContentError: Something else was written.
            ToolError: It could not be written; the file is as it was.
        """
        ...


class DiskWriter:
    """Writes on the disk, so that the old or the new content is there whole."""

    def write(self, path: Path, data: bytes, *, mode: int | None, expected_digest: bytes | None) -> None:
        write_atomic(path, data, mode=mode, expected_digest=expected_digest, must_not_exist=expected_digest is None)


class SessionWriter:
    """The writer of a session and all its agents: that of the disk until a feature brings another one."""

    def __init__(self) -> None:
        self._writer: FileWriter = DiskWriter()

    def use(self, writer: FileWriter) -> None:
        self._writer = writer

    def write(self, path: Path, data: bytes, *, mode: int | None, expected_digest: bytes | None) -> None:
        self._writer.write(path, data, mode=mode, expected_digest=expected_digest)
