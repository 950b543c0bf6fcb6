"""Unpacking of an untrusted archive: files and folders only, inside one new folder, and no more than fits.

The rule: nothing of it is in place before all of it is unpacked. Links, devices, other places, protected names and what
grows beyond its limits are refused whole, not left out. No link is followed that came into being meanwhile.
Synchronous; `is_wanted` is asked between pieces.
"""

import bz2
import fnmatch
import gzip
import lzma
import os
import struct
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, cast

from panpan.errors import ToolError
from panpan.system.files.folder_tree import remove_tree
from panpan.system.files.protected import protections
from panpan.system.files.read_file import listed_folder, open_below, open_regular_file, opened_folder, status_of
from panpan.system.text.terminal_text import size_text
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class UnpackLimits:
    """Limits on the content of an archive."""

    max_bytes: int
    max_ratio: float
    max_places: int = 2_000_000
    """Files and folders; of those folders that several lie in some are counted more than once."""
    takes_protected: bool = False
    """True if names may be there that are protected elsewhere, since nothing acts on them where they go."""


# Bound an archive's declared sizes before reading it. The standard library reads a member's header, or the list of all
# members, into as much memory as the archive declares.


class BoundedStream:
    """A file to be read, with as much of the interface of one as `tarfile` and `zipfile` use.

    Args:
        stream: What is read.
        left: Bytes that may be read at first; None: any number.
        is_counted_when_skipped: True if skipped bytes count as read, since a compressed stream has to unpack them, too.
    """

    def __init__(self, stream: IO[bytes], left: int | None, *, is_counted_when_skipped: bool = False) -> None:
        self._stream = stream
        self.left = left
        self._is_counted_when_skipped = is_counted_when_skipped

    def read(self, size: int = -1) -> bytes:
        """Read as a file does; raise `ToolError` if it is more than is left."""
        if size < 0 and self.left is not None:
            data = self._stream.read(self.left + 1)
            self._count(len(data))
            return data
        self._count(size)
        return self._stream.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Seek as a file does.

        Raises:
            ToolError: It would skip more than is left.
        """
        if self._is_counted_when_skipped and whence == 0:
            self._count(max(0, offset - self._stream.tell()))
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        """Return the position, as a file does."""
        return self._stream.tell()

    def seekable(self) -> bool:
        """Return True: it can seek."""
        return True

    def close(self) -> None:
        """Leave the stream open; its owner closes it."""

    def _count(self, size: int) -> None:
        if self.left is None:
            return
        if size > self.left:
            raise ToolError("its list of files is too large for memory")
        self.left -= size


_MAX_PATH_CHARS = 1_000
_PIECE_BYTES = 1 << 20
_MAX_LIST_BYTES = 150_000_000
"""Most bytes of the list of a zip's members, which is held in memory."""
_MAX_HEADER_BYTES = 2_000_000
"""Most bytes of a tar's headers for one member: long names, times, the map of a sparse file."""
_MAX_GLOBAL_HEADERS = 100
"""Most global headers of a tar; each applies to all members after it."""
_FREE_RATIO_BYTES = 10_000_000
"""Unpacked to no more than this, an archive may shrink as far as it likes: small texts do."""
_TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_ENCRYPTED = 0x1
_DAMAGE = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, gzip.BadGzipFile, NotImplementedError,
    ValueError, RuntimeError, OverflowError, struct.error,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Member:
    """A file or folder of an archive."""

    name: str
    is_folder: bool
    is_program: bool
    open: Callable[[], IO[bytes] | None]


def is_archive(name: str) -> bool:
    """Return True if a file is one that can be unpacked, by its name."""
    return name.lower().endswith((".zip", *_TAR_SUFFIXES))


def folder_name(name: str) -> str:
    """Return the name of the folder for an archive's content."""
    suffix = next(
        suffix for suffix in sorted((".zip", *_TAR_SUFFIXES), key=len, reverse=True) if name.lower().endswith(suffix)
    )
    bare = name[: -len(suffix)]
    return bare if bare.strip(".") else "unpacked"


def unpack(archive: Path, folder: Path, limits: UnpackLimits, is_wanted: Callable[[], bool] = lambda: True) -> int:
    """Unpack an archive into a new folder, and return how many files that are.

    Raises:
        ToolError: It is damaged, holds what is refused, is too large, is not wanted any more, or the disk fails;
            nothing is left of it.
    """
    if os.path.lexists(folder):
        raise ToolError(f"{folder} exists; nothing was unpacked into it")
    growing = f".{folder.name}.unpacking-{os.getpid()}"
    try:
        with opened_folder(folder.parent, is_made=True) as parent:
            try:
                _remove(growing, parent)
                os.mkdir(growing, dir_fd=parent)
                top = open_below(parent, [growing])
                try:
                    count = _Unpacking(archive, folder, top, limits, is_wanted).run()
                finally:
                    os.close(top)
                os.rename(growing, folder.name, src_dir_fd=parent, dst_dir_fd=parent)
            finally:
                _remove(growing, parent)
    except OSError as exc:
        raise ToolError(f"cannot unpack {archive.name}: {exc.strerror or exc}") from exc
    except _DAMAGE as exc:
        raise ToolError(
            f"{archive.name} is damaged or has an unknown format: {str(exc)[:200] or type(exc).__name__}"
        ) from exc
    return count


class _Unpacking:
    def __init__(
        self, archive: Path, folder: Path, top: int, limits: UnpackLimits, is_wanted: Callable[[], bool]
    ) -> None:
        self._archive = archive
        self._folder = folder
        """Folder that gets all of it in the end."""
        self._top = top
        """The open folder that it grows in."""
        by_ratio = max(_FREE_RATIO_BYTES, int(status_of(archive).st_size * limits.max_ratio))
        self._room = self._limit = min(limits.max_bytes, by_ratio)
        self._takes_protected = limits.takes_protected
        self._is_wanted = is_wanted
        self._names: set[str] = set()
        self._places = limits.max_places
        """Files and folders that may still be made."""
        self._parents: set[str] = set()

    def run(self) -> int:
        files = 0
        with self._members() as members:
            for member in members:
                parts = self._parts(member)
                self._count(parts)
                folder = open_below(self._top, parts if member.is_folder else parts[:-1], is_made=True)
                try:
                    if not member.is_folder:
                        self._write(member, folder, parts[-1])
                        files += 1
                finally:
                    os.close(folder)
        return files

    @contextmanager
    def _members(self) -> Iterator[Iterator[_Member]]:
        with open_regular_file(self._archive) as file:
            if self._archive.name.lower().endswith(".zip") and zipfile.is_zipfile(file):
                bounded = BoundedStream(file, _MAX_LIST_BYTES)
                with zipfile.ZipFile(cast("IO[bytes]", bounded)) as packed:
                    bounded.left = None
                    yield self._of_zip(packed)
                return
            file.seek(0)
            with _decompressed(file) as stream:
                bounded = BoundedStream(stream, _MAX_HEADER_BYTES, is_counted_when_skipped=True)
                with tarfile.open(fileobj=cast("IO[bytes]", bounded), mode="r:") as tar:
                    yield self._of_tar(tar, bounded)

    def _of_zip(self, packed: zipfile.ZipFile) -> Iterator[_Member]:
        for info in packed.infolist():
            mode = info.external_attr >> 16
            kind = mode & 0o170000
            if kind not in (0, 0o100000, 0o040000):
                raise self._refused(f"a link or device, {info.filename!r}")
            if info.flag_bits & _ENCRYPTED:
                raise self._refused(f"an encrypted file, {info.filename!r}")
            yield _Member(info.filename, info.is_dir(), bool(mode & 0o100), lambda info=info: packed.open(info))  # type: ignore[misc]

    def _of_tar(self, tar: tarfile.TarFile, bounded: BoundedStream) -> Iterator[_Member]:
        while (info := tar.next()) is not None:
            bounded.left = None
            setattr(tar, "members", [])  # noqa: B010 - it would grow with the archive, and the stubs do not know it
            if len(tar.pax_headers) > _MAX_GLOBAL_HEADERS:
                raise self._refused("too many headers for all of its members")
            if not (info.isreg() or info.isdir()):
                raise self._refused(f"a link or device, {info.name!r}")
            yield _Member(info.name, info.isdir(), bool(info.mode & 0o100), lambda info=info: tar.extractfile(info))  # type: ignore[misc]
            bounded.left = _MAX_HEADER_BYTES

    def _parts(self, member: _Member) -> list[str]:
        """Return the names on the path of a member."""
        name = member.name.removesuffix("/") if member.is_folder else member.name
        parts = [part for part in name.removeprefix("./").split("/") if part != "."]
        if member.is_folder and not any(parts):
            return []
        if len(name) > _MAX_PATH_CHARS:
            raise self._refused(f"a name of more than {_MAX_PATH_CHARS:,} characters, {member.name[:200]!r}")
        if not parts or name.startswith("/") or not all(map(_is_plain, parts)):
            raise self._refused(f"a name that leads elsewhere, {member.name[:200]!r}")
        place = self._folder.joinpath(*parts)
        if not self._takes_protected and any(not group.is_only_as_named for group, _ in protections(place)):
            raise self._refused(f"a name that is protected, {name[:200]!r}")
        # as a case-insensitive file system would compare it
        folded = unicodedata.normalize("NFC", "/".join(parts)).casefold()
        if not member.is_folder and folded in self._names:
            raise self._refused(f"two files of one name, {name[:200]!r}")
        self._names.add(folded)
        return parts

    def _count(self, parts: list[str]) -> None:
        """Count a member, and with the first one of a folder those on the way: they take room of which no size tells.

        Raises:
            ToolError: They are too many.
        """
        parent = "/".join(parts[:-1])
        self._places -= 1 if parent in self._parents else max(1, len(parts))
        self._parents.add(parent)
        if self._places < 0:
            raise self._refused("more files and folders than are unpacked")

    def _write(self, member: _Member, folder: int, name: str) -> None:
        source = member.open()
        if source is None:
            raise self._refused(f"a file without content, {member.name[:200]!r}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        fd = os.open(name, flags, 0o777 if member.is_program else 0o666, dir_fd=folder)
        with source, os.fdopen(fd, "wb") as file:
            while data := source.read(min(_PIECE_BYTES, self._room + 1)):
                if not self._is_wanted():
                    raise ToolError(f"unpacking {self._archive.name} was ended")
                self._room -= len(data)
                if self._room < 0:
                    raise self._refused(f"more than {size_text(self._limit)}, as much as may come of it")
                file.write(data)

    def _refused(self, what: str) -> ToolError:
        return ToolError(f"{self._archive.name} holds {what}; nothing of it was unpacked")


@contextmanager
def _decompressed(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """Yield the decompressed content of a file, or the file itself, by its first bytes."""
    head = file.read(6)
    file.seek(0)
    if head.startswith(b"\x1f\x8b"):
        with gzip.open(file) as stream:
            yield cast("IO[bytes]", stream)
    elif head.startswith(b"BZh"):
        with bz2.open(file) as stream:
            yield cast("IO[bytes]", stream)
    elif head == b"\xfd7zXZ\0":
        with lzma.open(file) as stream:
            yield cast("IO[bytes]", stream)
    else:
        yield file


def _is_plain(part: str) -> bool:
    return bool(part) and part not in (".", "..") and part.isprintable() and not any(mark in part for mark in "\\\0:")


def _remove(folder: str, dir_fd: int) -> None:
    with suppress(OSError):
        remove_tree(folder, dir_fd=dir_fd)


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed unpacking left in a folder."""
    with suppress(OSError), listed_folder(folder) as opened:
        for name in fnmatch.filter([entry.name for entry in os.scandir(opened)], ".*.unpacking-*"):
            with suppress(ValueError, PermissionError, OverflowError):
                try:
                    os.kill(int(name.rpartition("-")[2]), 0)
                except ProcessLookupError:
                    _remove(name, opened)
