"""A file while it grows: beside its place, under a name of its own, held by one download at a time.

The rule: it becomes the file only whole and with the right checksum, and never in the place of another one. Its folder
is held open, and reached through no link: who swaps it for one meanwhile leads nothing elsewhere. Synchronous.
"""

import fcntl
import hashlib
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from panpan.capabilities.datasets.download_plan import PlannedFile, RemoteFile
from panpan.errors import ToolError
from panpan.system.files.atomic_write import NO_LINKS_HERE, sync_folder
from panpan.system.files.read_file import open_folder, open_regular_file
from panpan.system.web.download import DownloadError, PartialFile

_READ_BYTES = 1 << 20


class Checksum:
    """The checksums of a content that comes piece by piece."""

    def __init__(self, remote: RemoteFile) -> None:
        self._remote = remote
        self._sha256 = hashlib.sha256()
        # how git names a content: its kind and length before it
        has_git = bool(remote.git_sha1) and remote.size is not None
        self._git = hashlib.sha1(f"blob {remote.size}\0".encode(), usedforsecurity=False) if has_git else None

    def add(self, data: bytes | bytearray) -> None:
        """Take the next piece."""
        self._sha256.update(data)
        if self._git is not None:
            self._git.update(data)

    @property
    def sha256(self) -> str:
        """In hexadecimal."""
        return self._sha256.hexdigest()

    @property
    def is_right(self) -> bool:
        """True if nothing that is known of the content speaks against it."""
        if self._remote.sha256:
            return self.sha256 == self._remote.sha256
        return self._git is None or self._git.hexdigest() == self._remote.git_sha1


def checksum_of(path: Path, remote: RemoteFile) -> Checksum:
    """Return the checksums of a file; raise `ToolError` or `OSError` if it cannot be read."""
    checksum = Checksum(remote)
    with open_regular_file(path) as file:
        while data := file.read(_READ_BYTES):
            checksum.add(data)
    return checksum


class PlannedPart(PartialFile):
    """A part of a planned file. A context manager; leaving it keeps what came, if anything did.

    Raises:
        ToolError: It cannot be written, or another download of it runs.
    """

    def __init__(self, planned: PlannedFile, *, link: Callable[..., None] = os.link) -> None:
        self._planned = planned
        self._link = link
        self.checksum = Checksum(planned.remote)
        try:
            self._folder = open_folder(planned.part.parent, is_made=True)
        except OSError as exc:
            raise ToolError(
                f"cannot write into {planned.part.parent}: {exc.strerror}; is it a link or no folder by now?"
            ) from exc
        try:
            super().__init__(self._opened(), 0)
        except BaseException:
            os.close(self._folder)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            if not os.fstat(self._fd).st_size:
                self._unlink()
        os.close(self._fd)
        os.close(self._folder)

    def load_existing(self) -> bool:
        """Read a piece of what an earlier download left, and return whether that was all; too much cannot be of it.

        Raises:
            ToolError: It cannot be read.
        """
        limit = self._planned.remote.size
        try:
            data = os.pread(self._fd, _READ_BYTES, self.size)
        except OSError as exc:
            raise ToolError(f"cannot read {self._planned.part}: {exc.strerror}") from exc
        self.checksum.add(data)
        self.size += len(data)
        if limit is not None and self.size > limit:
            self.restart()
            return True
        return not data

    def restart(self) -> None:
        super().restart()
        self.checksum = Checksum(self._planned.remote)

    def write(self, data: bytes | bytearray) -> None:
        before = self.size
        try:
            super().write(data)
        finally:
            self.checksum.add(data[: self.size - before])

    def failure(self, exc: OSError) -> DownloadError:
        return DownloadError(
            f"cannot write {self._planned.part}: {exc.strerror}; what came is kept, and the same download goes on "
            "behind it"
        )

    def finish(self) -> str:
        """Make it the file, and return its SHA-256.

        Raises:
            ToolError: It is not what was planned, the place is taken, or the disk fails.
        """
        planned = self._planned
        if not self.checksum.is_right:
            self.restart()
            self._unlink()
            raise ToolError(
                f"{planned.target.name} came with another checksum than it should have, and was thrown away"
            )
        try:
            os.fsync(self._fd)
            self._take_name()
            sync_folder(self._folder)
        except FileExistsError:
            raise ToolError(f"{planned.target} has come into being meanwhile; it was left as it is") from None
        except OSError as exc:
            raise ToolError(f"cannot put {planned.target} in its place: {exc.strerror}") from exc
        return self.checksum.sha256

    def _take_name(self) -> None:
        """Give the part the name of the file. Unlike a rename, a link takes nobody's place."""
        part, target, folder = self._planned.part.name, self._planned.target.name, self._folder
        try:
            self._link(part, target, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as exc:
            if exc.errno not in NO_LINKS_HERE:
                raise
            # a name that was just made is nobody's
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder))
            try:
                os.rename(part, target, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                os.unlink(target, dir_fd=folder)
                raise
        else:
            self._unlink()

    def _opened(self) -> int:
        """Return the part, open and locked: a file of its own that nobody else holds or knows by another name."""
        fd = self._open()
        try:
            if os.fstat(fd).st_nlink > 1:  # it became the file before, and may not be changed any more
                self._unlink()
                os.close(fd)
                fd = self._open()
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            by_name = os.stat(self._planned.part.name, dir_fd=self._folder, follow_symlinks=False)
            if not os.path.samestat(by_name, os.fstat(fd)):  # the one that held it has just made it the file
                raise BlockingIOError
        except (BlockingIOError, FileNotFoundError):
            os.close(fd)
            raise ToolError(f"{self._planned.target.name} is being downloaded already; wait for that") from None
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _open(self) -> int:
        part = self._planned.part
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        try:
            fd = os.open(part.name, flags, 0o644, dir_fd=self._folder)
        except OSError as exc:
            raise ToolError(f"cannot write {part}: {exc.strerror}") from exc
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise ToolError(f"{part} is no regular file; let the user remove it")
        return fd

    def _unlink(self) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._planned.part.name, dir_fd=self._folder)
