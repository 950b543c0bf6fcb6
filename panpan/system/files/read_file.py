"""Opening the place that was judged, and no other: regular files, and folders that are reached through no link.

The rule: what is not a regular file is never opened, since opening a FIFO waits and opening a device may act. What was
judged is what is opened: no link is followed unless the caller says so, on the way there neither.
"""

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from errno import EINTR, ENOSYS
from functools import cache
from pathlib import Path
from typing import BinaryIO

from panpan.errors import ToolError
from panpan.system.files.canonical import canonical_path

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_CHUNK_BYTES = 1 << 20


def read_regular_file(path: Path, *, max_bytes: int, follow_symlinks: bool = False) -> bytes:
    """Return what is in the file.

    Args:
        path: Where it is; canonical, unless links are followed.
        max_bytes: The largest size that is read.
        follow_symlinks: Whether to follow links; for places of panpan's own or the user's, never for one that was
            judged.

    Raises:
        ToolError: It is missing, not a regular file, too large, may not be read, or a link is in the way.
    """
    try:
        fd = _open(path, follow_symlinks=follow_symlinks)
        try:
            size = os.fstat(fd).st_size
            if size > max_bytes:
                raise _too_large(path, f"{size:,} bytes", max_bytes)
            return _read_bounded(fd, path, max_bytes)
        finally:
            os.close(fd)
    except OSError as exc:
        raise _unreadable(path, exc) from exc


def read_users_file(path: str, *, max_bytes: int) -> bytes:
    """Return what is in a file of the user, wherever links lead; as above, in a fifth of the time.

    Raises:
        ToolError: It is missing, not a regular file, too large, or may not be read.
    """
    place = Path(path)
    try:
        require_regular(place, place.stat())
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            return _read_bounded(fd, place, max_bytes)
        finally:
            os.close(fd)
    except OSError as exc:
        raise _unreadable(place, exc) from exc


def open_regular_file(path: Path) -> BinaryIO:
    """Open the file at a canonical path to read parts of it; the caller bounds how much.

    Raises:
        ToolError: It is missing, not a regular file, may not be read, or a link is in the way.
    """
    try:
        return os.fdopen(_open(path), "rb")
    except OSError as exc:
        raise _unreadable(path, exc) from exc


def _open(path: Path, *, follow_symlinks: bool = False) -> int:
    place = canonical_path(path) if follow_symlinks else path
    with opened_folder(place.parent) as folder:
        name = place.name or "."
        require_regular(path, os.stat(name, dir_fd=folder, follow_symlinks=False))
        # O_NONBLOCK: another kind of file may have replaced it, and some "regular" files in /proc block.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
        fd = os.open(name, flags, dir_fd=folder)
    try:
        require_regular(path, os.fstat(fd))
    except BaseException:
        os.close(fd)
        raise
    return fd


def _unreadable(path: Path, exc: OSError) -> ToolError:
    if isinstance(exc, FileNotFoundError):
        return ToolError(f"{path} does not exist")
    if isinstance(exc, BlockingIOError):
        return ToolError(f"{path} has nothing to read now and would wait for more")
    return ToolError(f"cannot read {path}: {exc.strerror}")


def require_regular(path: Path, status: os.stat_result) -> None:
    """Raise `ToolError` for everything but a regular file; the text names what it is."""
    if stat.S_ISREG(status.st_mode):
        return
    kind = next((kind for is_kind, kind in _KINDS if is_kind(status.st_mode)), "something else")
    raise ToolError(f"{path} is {kind}, not a regular file")


def _read_bounded(fd: int, path: Path, max_bytes: int) -> bytes:
    """Read to the end, whatever size the file claimed; it may grow meanwhile."""
    chunks: list[bytes] = []
    total = 0
    while chunk := os.read(fd, min(_CHUNK_BYTES, max_bytes + 1 - total)):
        chunks.append(chunk)
        total += len(chunk)
        if total > max_bytes:
            raise _too_large(path, f"more than {max_bytes:,} bytes", max_bytes)
    return b"".join(chunks)


def _too_large(path: Path, size: str, max_bytes: int) -> ToolError:
    return ToolError(f"{path} is too large: {size}, and at most {max_bytes:,} are read; look at it in parts")


_NUMBER = 437  # the same on every architecture
_NO_SYMLINKS = 0x04
_BENEATH = 0x08


def openat2(folder: int, path: str, flags: int) -> int:
    """Return a descriptor of what lies at `path` beneath an open folder and is reached through no link.

    No part of the relative `path` is `..`; the flags are those of `os.open`.

    Raises:
        OSError: It cannot be opened; ELOOP where a part of the path is a link, ENOSYS where there is no such call.
        ValueError: The path holds a NUL.
    """
    if "\0" in path:
        raise ValueError("embedded null byte")  # like `os.open`; C would cut the path at the NUL
    call = _loaded()
    if call is None:
        raise OSError(ENOSYS, os.strerror(ENOSYS))
    how = b"".join(part.to_bytes(8, sys.byteorder) for part in (flags, 0, _NO_SYMLINKS | _BENEATH))
    while (fd := call(folder, os.fsencode(path), how)) < 0:
        if fd != -EINTR:
            raise OSError(-fd, os.strerror(-fd), path)
    return fd


@cache
def _loaded() -> Callable[[int, bytes, bytes], int] | None:
    """Return the system call, which returns a descriptor or a negative error number."""
    if sys.platform != "linux":
        return None
    try:
        import _ctypes
    except ImportError:
        return None

    class Long(_ctypes._SimpleCData):  # type: ignore[type-arg]
        _type_ = "l"

    class Function(_ctypes.CFuncPtr):
        _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
        _restype_ = Long

    syscall = Function(_ctypes.dlsym(_ctypes.dlopen(None, 0), "syscall"))  # type: ignore[arg-type]
    number = Long(_NUMBER)

    def call(folder: int, path: bytes, how: bytes) -> int:
        fd: int = syscall(number, Long(folder), path, how, Long(len(how)))
        return fd if fd >= 0 else -_ctypes.get_errno()

    return call


FOLDER_FLAGS = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
"""Flags for folders. Where the system can, one is opened without the right to list it, which its names do not need."""
LINK_IN_PATH = "a link is in the way"

_NOT_TO_BE_HAD = frozenset({errno.ENOSYS, errno.EPERM})
"""Errors of openat2 on old kernels, on other systems, and behind filters of system calls."""


@contextmanager
def opened_folder(path: Path, *, is_made: bool = False) -> Iterator[int]:
    """Open a canonical, absolute folder, and yield its descriptor for functions that take `dir_fd`.

    Raises:
        OSError: A part of it is missing (unless `is_made`), is a link or no folder, or cannot be opened.
    """
    fd = open_folder(path, is_made=is_made)
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def listed_folder(path: Path) -> Iterator[int]:
    """Open a folder as `opened_folder` does, so that `os.scandir` can list it."""
    with opened_folder(path) as folder:
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        yield fd
    finally:
        os.close(fd)


def open_folder(path: Path, *, is_made: bool = False) -> int:
    """Return a descriptor of a folder, as `opened_folder` does; the caller closes it."""
    start = os.open(path.anchor, FOLDER_FLAGS)
    try:
        return open_below(start, path.parts[1:], is_made=is_made)
    except OSError as exc:
        exc.filename = str(path)
        raise
    finally:
        os.close(start)


def open_below(folder: int, names: Sequence[str], *, is_made: bool = False) -> int:
    """Return a descriptor of a folder some levels below an open one, which stays open; the caller closes it.

    None of the names is `..`.

    Raises:
        OSError: A part of the way is missing (unless `is_made`), is a link or no folder, or cannot be opened.
    """
    try:
        return _opened(folder, names)
    except FileNotFoundError:
        if not is_made:
            raise
    return walk_beneath(folder, names, is_made=True)


def walk_beneath(folder: int, names: Sequence[str], *, is_made: bool = False) -> int:
    """Return a descriptor as `open_below` does, opening one folder after the other."""
    here = os.dup(folder)
    for name in names:
        try:
            try:
                below = _opened_here(here, name)
            except FileNotFoundError:
                if not is_made:
                    raise
                with suppress(FileExistsError):  # somebody else made it meanwhile; opening it shows what it is
                    os.mkdir(name, dir_fd=here)
                below = _opened_here(here, name)
        finally:
            os.close(here)
        here = below
    return here


def status_of(path: Path) -> os.stat_result:
    """Return the status of what lies at a canonical path; of a link there, its own."""
    with opened_folder(path.parent) as folder:
        return os.stat(path.name or ".", dir_fd=folder, follow_symlinks=False)


def set_mode(path: Path, mode: int) -> None:
    """Set the permission bits of the file or folder at a canonical path."""
    with opened_folder(path.parent) as folder:
        set_mode_in(folder, path.name, mode)


def set_mode_in(folder: int, name: str, mode: int) -> None:
    """Set the permission bits of the file or folder of this name in an open folder; raise `OSError` for a link."""
    if os.chmod in os.supports_follow_symlinks:
        os.chmod(name, mode, dir_fd=folder, follow_symlinks=False)
        return
    fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        if stat.S_ISLNK(os.fstat(fd).st_mode):
            raise _link(name)
        os.chmod(f"/proc/self/fd/{fd}", mode)  # noqa: PTH101 - the file itself, which may not be ours to read
    finally:
        os.close(fd)


def _opened(folder: int, names: Sequence[str]) -> int:
    if not names:
        return os.dup(folder)
    try:
        return openat2(folder, "/".join(names), FOLDER_FLAGS)
    except OSError as exc:
        if exc.errno == errno.ELOOP:
            raise _link(exc.filename) from exc
        if exc.errno not in _NOT_TO_BE_HAD:
            raise
    return walk_beneath(folder, names)


def _opened_here(folder: int, name: str) -> int:
    try:
        return os.open(name, FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as exc:
        if exc.errno in (errno.ENOTDIR, errno.ELOOP, errno.EMLINK) and _is_link(folder, name):
            raise _link(name) from exc
        raise


def _is_link(folder: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _link(name: str) -> OSError:
    return OSError(errno.ELOOP, LINK_IN_PATH, name)
