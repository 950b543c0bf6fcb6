"""Reading regular files, and nothing else.

The rule: what is not a regular file is never opened, since opening a FIFO waits and opening a device may act. What was
judged is what is opened: no link is followed unless the caller says so.
"""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from panpan.errors import ToolError
from panpan.system.files.beneath import opened_folder
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


def open_regular_file(path: Path) -> BinaryIO:
    """Open the file for whoever reads parts of it; how much is read is theirs to bound.

    Args:
        path: Where it is; canonical, since no link is followed.

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
        # Non-blocking, since another kind of file may have taken its place, and some of /proc's "regular" files wait.
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
    """Refuse everything but a regular file.

    Raises:
        ToolError: It is something else; the text names what.
    """
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
