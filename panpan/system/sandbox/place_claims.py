"""Places that several panpans use at the same time: who is in them keeps the others from taking them away.

The rule: a claim is a shared lock on a file of panpan's own, one for each place; who wants to remove the place needs it
alone. The claims of a panpan go with it, however it ends.
"""

import fcntl
import hashlib
import os
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from panpan.errors import PanpanError, ToolError
from panpan.system.files.folder_tree import make_private_folder, open_private_file

WAIT_S = 5.0
"""Seconds for whoever removes a place, which takes milliseconds."""
_POLL_S = 0.002


class PlaceClaims:
    """The claims of one session, on lock files in a private folder, which is made when it is first needed."""

    def __init__(self, folder: Path | None, *, wait_s: float = WAIT_S) -> None:
        self._folder = folder
        self._wait_s = wait_s
        self._held: dict[Path, tuple[int | None, int]] = {}
        """By place: the descriptor of its lock file, and how many of the session's boxes use it."""

    def hold(self, places: Collection[Path]) -> set[Path]:
        """Claim places, and return those of which another panpan had a claim already. Blocks while one is removed.

        Raises:
            ToolError: Somebody who removes one of them does not end.
        """
        shared, claimed = set[Path](), list[Path]()
        try:
            for place in places:
                if self._hold(place):
                    shared.add(place)
                claimed.append(place)
        except BaseException:
            self.let_go(claimed)
            raise
        return shared

    def _hold(self, place: Path) -> bool:
        if place in self._held:
            fd, count = self._held[place]
            self._held[place] = fd, count + 1
            return False  # what it is to others was seen at the first claim
        fd = self._opened(place)
        try:
            is_shared = not _locked(fd, fcntl.LOCK_EX)
            deadline = time.monotonic() + self._wait_s
            while not _locked(fd, fcntl.LOCK_SH):
                if time.monotonic() > deadline:
                    raise ToolError(
                        f"the sandbox cannot be made: another panpan has kept {place} for {self._wait_s:g} s"
                    )
                time.sleep(_POLL_S)
        except BaseException:
            _close(fd)
            raise
        self._held[place] = fd, 1
        return is_shared

    def let_go(self, places: Collection[Path]) -> None:
        """Take back claims that `hold` has made, as far as `close` has not."""
        for place in self._held.keys() & places:
            fd, count = self._held.pop(place)
            if count > 1:
                self._held[place] = fd, count - 1
            else:
                _close(fd)

    def close(self) -> None:
        """Take all claims back, those for boxes that outlive the session, too: these are seen by what is mounted."""
        for fd, _ in self._held.values():
            _close(fd)
        self._held.clear()

    @contextmanager
    def alone(self, places: Collection[Path]) -> Iterator[set[Path]]:
        """Give those of the places that nobody claims, and that nobody can claim while the block runs."""
        with ExitStack() as opened:
            free = set[Path]()
            for place in places:
                fd = self._opened(place)
                opened.callback(_close, fd)
                if _locked(fd, fcntl.LOCK_EX):
                    free.add(place)
            yield free

    def _opened(self, place: Path) -> int | None:
        if self._folder is None:
            return None
        name = hashlib.blake2b(os.fsencode(place), digest_size=16).hexdigest()
        try:
            make_private_folder(self._folder)
            return open_private_file(self._folder / name, os.O_RDWR | os.O_CREAT)
        except (OSError, PanpanError):  # such as a full disk: a box is worth more than the claim
            return None


def _locked(fd: int | None, how: int) -> bool:
    """Lock without waiting, and return whether that is done; where nothing can be locked, nobody else could, either."""
    if fd is None:
        return True
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _close(fd: int | None) -> None:
    if fd is not None:
        os.close(fd)


def vacant(places: Iterable[Path]) -> set[Path]:
    """Return those of the places where nothing is, or an empty folder."""
    return {place for place in places if not os.path.lexists(place) or is_empty_folder(place)}


def is_empty_folder(place: Path) -> bool:
    """Return whether there is a folder, itself and no link to one, with nothing in it."""
    try:
        return not place.is_symlink() and not any(place.iterdir())
    except OSError:  # it is gone, a file, or closed to us
        return False
