"""Digests of files, quick the second time, and names of files in receipts, which are text although bytes may be none.

The rule: only regular files are opened, none by a link, and none blocks. A large file is digested by parts or not at
all, and its digest says so. A file that has not changed since is not read again.
"""

import errno
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TypeAlias

from panpan.receipts.receipt import FileDigest, HowDigested
from panpan.system.files.read_file import FOLDER_FLAGS, openat2, opened_folder
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

MB = 1_000_000
WHOLE_BYTES = 256 * MB
"""Largest file that is digested whole where nobody asks for another limit."""
RECEIPT_BYTES = 1_000 * MB
"""Most bytes that are read for one receipt."""
_HEAD_BYTES = 16
_CHUNK_BYTES = 1 << 20
_SAMPLES = 16
_SAMPLE_BYTES = 1 << 16
PARTS_BYTES = _SAMPLES * _SAMPLE_BYTES
"""Bytes that are read of a file which is digested by parts."""
_MOST_REMEMBERED = 100_000
_SETTLED_NS = 100_000_000
"""Age of a change from which on a further one gets another time; the clocks of file systems tick slowly."""
_SETTLED_SECONDS_NS = 2_000_000_000
"""The same where times are whole seconds."""
_ESCAPED = compile_late(rb"\\x([89a-f][0-9a-f])")
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY

_Key: TypeAlias = tuple[int, int, int, int, int]
"""Device, inode, size, and times of the last changes of content and status."""


@dataclass(frozen=True, slots=True)
class Content:
    """Content of a file at a moment."""

    size: int = 0
    """Bytes."""
    sha256: str = ""
    """Hex; empty if it was not digested."""
    how: HowDigested = "whole"
    head: bytes = b""
    """First bytes."""
    changed_ns: int = 0
    """Time of its last change, nanoseconds since 1970."""


GONE = Content(how="gone")


class FileDigests:
    """Digests files, and remembers the digests as long as the files stay as they are. Threads may share it.

    Args:
        now_ns: Returns the time, nanoseconds since 1970.
    """

    def __init__(self, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._now_ns = now_ns
        self._known: dict[tuple[_Key, bool], Content] = {}
        self._lock = Lock()
        self.bytes_read = 0
        """Bytes of files that were read so far."""

    def read(self, path: Path, *, whole_bytes: int = WHOLE_BYTES) -> Content:
        """Return the digest of the file at a canonical path.

        Args:
            path: A file; anything else, and a file that cannot be read, is "left out".
            whole_bytes: Larger files are digested by parts.
        """
        return self.read_all([str(path)], whole_bytes=whole_bytes)[str(path)]

    def read_all(
        self, paths: Iterable[str], *, whole_bytes: int = WHOLE_BYTES, most_bytes: int | None = None
    ) -> Mapping[str, Content]:
        """Return the digests of files by their canonical paths.

        Args:
            paths: Files.
            whole_bytes: Larger files are digested by parts.
            most_bytes: Most bytes that are read. Files that would need more are digested by parts, and left out once
                so many have been read; None for no limit.
        """
        left = _Allowance(whole_bytes, most_bytes)
        return {path: self._read(path, left) for path in paths}

    def read_again(self, path: Path, how: HowDigested) -> Content:
        """Return the digest of a file in the way in which it was digested before, so that both compare."""
        whole_bytes = 0 if how == "parts" else WHOLE_BYTES if how == "left out" else 1 << 62
        return self.read(path, whole_bytes=whole_bytes)

    def _read(self, path: str, left: "_Allowance") -> Content:
        try:
            status = os.lstat(path)
            # No link on the way is a danger here: if one leads elsewhere, the file there is the one that is known.
            known = self._known.get((_key(status), status.st_size <= left.whole_bytes))
            if known is not None:
                return known
            return self._digest(path, left) if stat.S_ISREG(status.st_mode) else Content(how="left out")
        except (FileNotFoundError, NotADirectoryError):
            return GONE
        except OSError as error:  # a folder that has become a link holds no file of the workspace
            return GONE if error.errno in (errno.ELOOP, errno.EXDEV) else Content(how="left out")
        except ValueError:
            return Content(how="left out")

    def _digest(self, path: str, left: "_Allowance") -> Content:
        fd = _opened(path)
        try:
            for _ in range(2):
                status = os.fstat(fd)
                if not stat.S_ISREG(status.st_mode):
                    return Content(how="left out")
                content = _content(fd, status, left)
                self.bytes_read += status.st_size if content.how == "whole" else PARTS_BYTES
                if content.how == "left out":
                    return content
                if _key(os.fstat(fd)) == _key(status):
                    self._remember(status, content)
                    return content
            return Content(size=status.st_size, how="changed", head=content.head, changed_ns=status.st_mtime_ns)
        finally:
            os.close(fd)

    def _remember(self, status: os.stat_result, content: Content) -> None:
        if not _is_settled(status, self._now_ns()):
            return
        with self._lock:
            while len(self._known) >= _MOST_REMEMBERED:
                del self._known[next(iter(self._known))]
            self._known[_key(status), content.how == "whole"] = content


class _Allowance:
    """Bytes that may still be read."""

    def __init__(self, whole_bytes: int, most_bytes: int | None) -> None:
        self.whole_bytes = whole_bytes
        self._left = most_bytes

    def take(self, size: int) -> HowDigested:
        """Return the way to digest a file of this size, and take what it needs."""
        if size <= self.whole_bytes and (self._left is None or size <= self._left):
            self._spend(size)
            return "whole"
        if self._left is None or self._left >= PARTS_BYTES:
            self._spend(PARTS_BYTES)
            return "parts"
        return "left out"

    def _spend(self, size: int) -> None:
        if self._left is not None:
            self._left -= size


def _content(fd: int, status: os.stat_result, left: _Allowance) -> Content:
    how = left.take(status.st_size)
    size = status.st_size
    if how == "left out":
        return Content(size, how=how, changed_ns=status.st_mtime_ns)
    digest = sha256() if how == "whole" else sha256(b"%d\n" % size)
    head = b""
    for start, length in ((0, size),) if how == "whole" else _samples(size):
        for piece in _pieces(fd, start, length):
            head = head or piece[:_HEAD_BYTES]
            digest.update(piece)
    return Content(size, digest.hexdigest(), how, head, status.st_mtime_ns)


def _samples(size: int) -> Iterator[tuple[int, int]]:
    """Yield starts and lengths of parts of a file, from its beginning to its end, at equal distances."""
    last = max(size - _SAMPLE_BYTES, 0)
    for number in range(_SAMPLES):
        yield last * number // (_SAMPLES - 1), min(_SAMPLE_BYTES, size)


def _pieces(fd: int, start: int, length: int) -> Iterator[bytes]:
    """Yield a stretch of a file; it ends early if the file has become shorter, and never grows with it."""
    end = start + length
    while start < end and (piece := os.pread(fd, min(_CHUNK_BYTES, end - start), start)):
        yield piece
        start += len(piece)


def _opened(path: str) -> int:
    """Return a descriptor of the file at a canonical path, which is reached through no link."""
    root = os.open("/", FOLDER_FLAGS)
    try:
        return openat2(root, path.lstrip("/"), _FLAGS)
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EPERM):
            raise
    finally:
        os.close(root)
    folder, _, name = path.rpartition("/")
    with opened_folder(Path(folder or "/")) as fd:
        return os.open(name, _FLAGS, dir_fd=fd)


def _key(status: os.stat_result) -> _Key:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _is_settled(status: os.stat_result, now_ns: int) -> bool:
    """Return True if a change from now on would give the file another time."""
    newest = max(status.st_mtime_ns, status.st_ctime_ns)
    is_coarse = newest % 1_000_000_000 == 0
    return abs(now_ns - newest) > (_SETTLED_SECONDS_NS if is_coarse else _SETTLED_NS)


def storable(text: str) -> str:
    r"""Return a name or word so that it can be stored: a byte that is no UTF-8 is written as `\xff`."""
    if text.isascii():
        return text
    try:
        return os.fsencode(text).decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # no bytes are written so
        return text.encode("utf-8", "backslashreplace").decode()


def named(path: str, top: str) -> str:
    """Return a canonical path as receipts name it: relative to the workspace, absolute if it lies outside."""
    above = f"{top.rstrip('/')}/"
    return storable(path.removeprefix(above) if path != top else ".")


def file_digest(path: str, content: Content, top: str) -> FileDigest:
    """Return the digest of a file for a receipt."""
    return FileDigest(
        path=named(path, top),
        size=content.size,
        sha256=content.sha256,
        how=content.how,
        changed_ns=content.changed_ns if content.how in ("parts", "link") else 0,
    )


def path_of(file: FileDigest, top: Path) -> Path:
    """Return the path of a file that a receipt names."""
    path = top / file.path
    if "\\x" in file.path and not os.path.lexists(path):
        encoded = re.sub(_ESCAPED.pattern, lambda found: bytes([int(found[1], 16)]), file.path.encode())
        return top / os.fsdecode(encoded)
    return path


def read_link(path: str) -> Content:
    """Return the digest of a link: that of the path in it, with the time of the file that it leads to."""
    try:
        target = os.readlink(path)  # noqa: PTH115 - hundreds of links
    except FileNotFoundError:
        return Content(how="gone")
    except (OSError, ValueError):
        return Content(how="left out")
    try:
        changed_ns = os.stat(path).st_mtime_ns  # noqa: PTH116
    except OSError:
        changed_ns = 0
    return Content(sha256=sha256(os.fsencode(target)).hexdigest(), how="link", changed_ns=changed_ns)
