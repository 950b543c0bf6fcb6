"""Writing files so that the old or the new content is there whole at every instant.

The rule: nothing in panpan writes over a user's file in another way. The new content goes to a file of its own beside
the target, reaches the disk, and takes the target's place by a rename; whatever fails before or after leaves the old
file. A hard link to the old file keeps the old content, since a rename replaces a name. All of it happens in one folder
that is held open (`read_file.py`), so that nothing is written elsewhere when that folder's name becomes a link.
"""

import errno
import hashlib
import os
import secrets
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from panpan.errors import ToolError
from panpan.system.files.canonical import canonical_path
from panpan.system.files.read_file import listed_folder, open_below, open_folder, require_regular
from panpan.types.pattern import compile_late

NO_LINKS_HERE = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES})
"""Errors of link(2) on file systems without hard links, such as exFAT and some of other machines."""
_IS_LINK = frozenset({errno.ELOOP, errno.EMLINK})
"""Errors of opening a link that must not be followed; EMLINK on BSD."""
_NO_FOLDER_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF})


_TEMPORARY = compile_late(r"\.panpan-(?P<machine>[0-9a-f]{6})-(?P<pid>[0-9]{1,10})-[0-9a-f]{24}\.tmp")


class FileChangedError(ToolError):
    """The file is not what the writer took it to be; it was left alone."""


class DiskOperations:
    """The steps at which a disk can fail: renames and links within an open folder."""

    def write(self, fd: int, data: memoryview) -> int:
        return os.write(fd, data)

    def fsync(self, fd: int) -> None:
        os.fsync(fd)

    def replace(self, source: str, target: str, folder: int) -> None:
        os.replace(source, target, src_dir_fd=folder, dst_dir_fd=folder)

    def link(self, source: str, target: str, folder: int) -> None:
        os.link(source, target, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)


def write_atomic(
    path: Path,
    data: bytes,
    *,
    mode: int | None = None,
    expected_digest: bytes | None = None,
    must_not_exist: bool = False,
    follow_symlinks: bool = False,
    operations: DiskOperations | None = None,
) -> None:
    """Make `data` the content of the file at `path`.

    Mode, group, extended attributes and, where the process may, the owner of an existing file are kept; missing folders
    are made.

        path: Where to write; canonical, unless links are followed.
        data: The whole new content.
        mode: Permission bits; those of the old file, or what the umask leaves of 0666, if not given.
        expected_digest: BLAKE2b of 16 bytes over the content that is to be replaced; compared right before the rename.
        must_not_exist: Whether to refuse when there is a file already.
        follow_symlinks: Whether to write through links; for places of panpan's own, never for one that was judged.
        operations: How the disk is reached; a seam for tests.

    Raises:
        FileChangedError: The content differs from `expected_digest`, the file is gone, or it exists and must not.
        ToolError: It could not be written, as where a link is in the way; the old file is as it was.
    """
    target = canonical_path(path) if follow_symlinks else path
    disk = operations or DiskOperations()
    try:
        with _opened(target.parent, disk) as folder:
            writer = _Writer(target, folder, disk)
            writer.write(data, mode=mode, expected_digest=expected_digest, must_not_exist=must_not_exist)
    except OSError as exc:
        raise ToolError(f"could not write {path}: {exc.strerror}; nothing was changed") from exc


def temporary_name() -> str:
    """Return a free, unpredictable name for what is in a folder for a moment; `remove_leftovers` knows it."""
    return f".panpan-{_machine()}-{os.getpid()}-{secrets.token_hex(12)}.tmp"


def is_temporary_name(path: str) -> bool:
    """True if a path ends in a name that `temporary_name` gives."""
    return bool(_TEMPORARY.fullmatch(path.rpartition("/")[2]))


def remove_leftovers(folder: Path) -> None:
    """Remove what writers of this machine have left in a folder that were killed at work; what cannot be stays."""
    with suppress(OSError), listed_folder(folder) as opened:
        for name in [entry.name for entry in os.scandir(opened)]:
            leaving = _TEMPORARY.fullmatch(name)
            if leaving and leaving["machine"] == _machine() and not _is_running(int(leaving["pid"])):
                with suppress(OSError):
                    os.unlink(name, dir_fd=opened)


def _machine() -> str:
    """Return a short name of this machine: on a disk that several share, a number alone does not tell a process."""
    return hashlib.blake2b(socket.gethostname().encode(), digest_size=3).hexdigest()


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def sync_folder(folder: int, operations: DiskOperations | None = None) -> None:
    """See the names in an open folder onto the disk, where the file system can."""
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        (operations or DiskOperations()).fsync(fd)
    except OSError as exc:
        if exc.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        os.close(fd)


class _Writer:
    def __init__(self, target: Path, folder: int, operations: DiskOperations) -> None:
        self._target = target
        self._name = target.name
        self._folder = folder
        self._operations = operations

    def write(self, data: bytes, *, mode: int | None, expected_digest: bytes | None, must_not_exist: bool) -> None:
        if (old := self._there()) is not None:
            require_regular(self._target, old)
            if must_not_exist:
                raise _exists(self._target)
            if not os.access(self._name, os.W_OK, dir_fd=self._folder):
                raise ToolError(f"{self._target} is read-only", advice="ask the user before its mode is changed")
        with self._temporary_name() as temporary, self._temporary_name() as backup:
            self._fill(temporary, data, old, mode)
            if expected_digest is not None:
                self._require_unchanged(expected_digest)
            self._put_in_place(temporary, backup, existed=old is not None, must_not_exist=must_not_exist)

    def _there(self) -> os.stat_result | None:
        try:
            return os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            return None

    @contextmanager
    def _temporary_name(self) -> Iterator[str]:
        name = temporary_name()
        try:
            yield name
        finally:
            with suppress(OSError):
                os.unlink(name, dir_fd=self._folder)

    def _fill(self, temporary: str, data: bytes, old: os.stat_result | None, mode: int | None) -> None:
        # The umask applies to a new file; a replacement stays private until it has the mode of the old file.
        first_mode = 0o666 if old is None and mode is None else 0o600
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(temporary, flags, first_mode, dir_fd=self._folder)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[self._operations.write(fd, rest) :]
            if old is not None:
                _keep_owner(fd, old, self._target)
                self._keep_attributes(fd)
            if mode is not None or old is not None:
                os.fchmod(fd, mode if mode is not None else stat.S_IMODE(old.st_mode if old else 0))
            self._operations.fsync(fd)
        finally:
            os.close(fd)

    def _keep_attributes(self, fd: int) -> None:
        """Copy access lists and the user's own extended attributes, where the system has them."""
        if not hasattr(os, "listxattr"):
            return
        old = self._open_old()
        try:
            try:
                names = os.listxattr(old)
            except OSError:
                return
            for name in names:
                if name.startswith("user.") or name == "system.posix_acl_access":
                    os.setxattr(fd, name, os.getxattr(old, name))
        finally:
            os.close(old)

    def _require_unchanged(self, expected_digest: bytes) -> None:
        digest = hashlib.blake2b(digest_size=16)
        with os.fdopen(self._open_old(), "rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
        if digest.digest() != expected_digest:
            raise FileChangedError(f"{self._target} has changed since it was read; read it again, then repeat the edit")

    def _open_old(self) -> int:
        try:
            return os.open(self._name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._folder)
        except FileNotFoundError as exc:
            raise FileChangedError(f"{self._target} has been removed since it was read; nothing was written") from exc
        except OSError as exc:
            if exc.errno not in _IS_LINK:
                raise
            raise FileChangedError(f"{self._target} has become a link since it was read; nothing was written") from exc

    def _put_in_place(self, temporary: str, backup: str, *, existed: bool, must_not_exist: bool) -> None:
        """Rename, and take the rename back if the folder cannot be brought to the disk."""
        has_backup = existed and self._keep_as(backup)
        if must_not_exist:
            self._name_if_free(temporary)
        else:
            self._operations.replace(temporary, self._name, self._folder)
        try:
            sync_folder(self._folder, self._operations)
        except OSError as exc:
            if existed and not has_backup:
                raise ToolError(
                    f"{self._target} holds the new content, but the disk did not confirm it: {exc.strerror}"
                ) from exc
            if has_backup:
                os.replace(backup, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
            else:
                os.unlink(self._name, dir_fd=self._folder)
            raise

    def _name_if_free(self, temporary: str) -> None:
        """Give the new file its name unless another took it meanwhile."""
        try:
            self._operations.link(temporary, self._name, self._folder)
        except FileExistsError as exc:
            raise _exists(self._target) from exc
        except OSError as exc:
            if exc.errno not in NO_LINKS_HERE:
                raise
            if self._there() is not None:
                raise _exists(self._target) from exc
            self._operations.replace(temporary, self._name, self._folder)

    def _keep_as(self, backup: str) -> bool:
        """Give the old file a second name, so that it can be put back; return whether that worked."""
        try:
            self._operations.link(self._name, backup, self._folder)
        except OSError:
            return False  # a file system without links: the rename cannot be undone
        return True


@contextmanager
def _opened(folder: Path, operations: DiskOperations) -> Iterator[int]:
    missing: list[str] = []
    while (here := _descriptor(folder)) is None:
        missing.append(folder.name)
        folder = folder.parent
    made: list[tuple[str, int]] = []
    with ExitStack() as opened:
        opened.callback(os.close, here)
        try:
            for name in reversed(missing):
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=here)
                    made.append((name, here))
                    sync_folder(here, operations)
                here = open_below(here, [name])
                opened.callback(os.close, here)
            yield here
        except BaseException:
            for name, above in reversed(made):
                with suppress(OSError):
                    os.rmdir(name, dir_fd=above)
            raise


def _descriptor(folder: Path) -> int | None:
    try:
        return open_folder(folder)
    except FileNotFoundError:
        return None


def _keep_owner(fd: int, old: os.stat_result, target: Path) -> None:
    new = os.fstat(fd)
    if old.st_uid != new.st_uid:
        with suppress(PermissionError):
            os.fchown(fd, old.st_uid, -1)
    if old.st_gid != new.st_gid:
        try:
            os.fchown(fd, -1, old.st_gid)
        except PermissionError as exc:
            raise ToolError(
                f"cannot keep the group of {target}, which you are not a member of; nothing was written"
            ) from exc


def _exists(target: Path) -> FileChangedError:
    return FileChangedError(f"{target} exists already; nothing was written")
