"""The inotify interface of Linux."""

import os
import select
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from threading import Thread
from typing import Any, Final, TypeAlias

CLOSED_WRITTEN: Final = 0x8
CLOSED_UNWRITTEN: Final = 0x10
OPENED: Final = 0x20
MOVED_AWAY: Final = 0x40
MOVED_HERE: Final = 0x80
CREATED: Final = 0x100
DELETED: Final = 0x200
OVERFLOW: Final = 0x4000
IGNORED: Final = 0x8000
"""The watch is gone, with its folder."""
IS_FOLDER: Final = 0x40000000

EVERYTHING: Final = CLOSED_WRITTEN | CLOSED_UNWRITTEN | OPENED | MOVED_AWAY | MOVED_HERE | CREATED | DELETED
_ONLY_FOLDERS = 0x01000000
_NO_LINKS = 0x02000000
_NO_UNLINKED = 0x04000000
_HEAD = struct.Struct("iIII")
_READ_BYTES = 1 << 18
_MOST_NAMES = 20_000

InotifyEvent: TypeAlias = tuple[int, int, str]
"""Number of a watch, mask, and name in its folder; empty for the folder itself."""


class Inotify:
    """Watches on folders.

    Raises:
        OSError: There is no inotify here, or no more may be had.
    """

    def __init__(self) -> None:
        init, self._add, self._remove = _functions()
        self._fd = init(os.O_NONBLOCK | os.O_CLOEXEC)

    def fileno(self) -> int:
        """Return the descriptor, which is readable while there are events."""
        return self._fd

    def add(self, path: str, *, only_folders: bool = True) -> int:
        """Watch a folder, or also a file, which is no link, and return the number of the watch.

        Raises:
            OSError: There is none; ENOSPC if no more watches may be had.
        """
        mask = EVERYTHING | _NO_LINKS | _NO_UNLINKED | (_ONLY_FOLDERS if only_folders else 0)
        number: int = self._add(self._fd, os.fsencode(path), mask)
        return number

    def remove(self, number: int) -> None:
        """End a watch, if it is still there."""
        with suppress(OSError):
            self._remove(self._fd, number)

    def read(self) -> list[InotifyEvent]:
        """Return events that have come, in their order, up to a part of them; none if there are no more."""
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return []
        events: list[InotifyEvent] = []
        at = 0
        while at < len(data):
            number, mask, _, length = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            events.append((number, mask, _name(data[at : at + length]) if length else ""))
            at += length
        return events

    def close(self) -> None:
        """End all watches."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


@lru_cache(_MOST_NAMES)
def _name(padded: bytes) -> str:
    return os.fsdecode(padded.rstrip(b"\0"))


class EventThread:
    """A thread that takes events as they come.

    Args:
        fd: Descriptor of an `Inotify`.
        take: Takes its events.
    """

    def __init__(self, fd: int, take: Callable[[], None]) -> None:
        self._fd = fd
        self._take = take
        self._ours, self._theirs = os.pipe()
        self._thread = Thread(target=self._run, name="panpan-receipts", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; the caller holds no lock that it takes."""
        os.close(self._theirs)
        self._thread.join()
        os.close(self._ours)

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        poll.register(self._ours, select.POLLIN)
        while all(fd != self._ours for fd, _ in poll.poll()):
            self._take()


def watches_of_user() -> int:
    """Return the number of folders that all programs of the user together may watch."""
    try:
        return int(Path("/proc/sys/fs/inotify/max_user_watches").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 8_192  # the least that Linux has


@cache
def _functions() -> tuple[Callable[..., int], Callable[..., int], Callable[..., int]]:
    if sys.platform != "linux":
        raise OSError("there is no inotify here")
    import ctypes  # not before the first command

    try:
        library: Any = ctypes.CDLL(None, use_errno=True)
        functions = (library.inotify_init1, library.inotify_add_watch, library.inotify_rm_watch)
    except (OSError, AttributeError) as error:
        raise OSError("there is no inotify here") from error

    def checked(function: Any) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            result: int = function(*arguments)
            if result < 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number))
            return result

        return call

    init, add, remove = map(checked, functions)
    return init, add, remove
