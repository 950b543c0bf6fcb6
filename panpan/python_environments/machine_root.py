"""The files of a machine below a root, which is `/` for the machine at hand.

The rule: nothing above the root is ever read, whatever links and `..` say; both lead to places below it, as in a
chroot. What cannot be read is noted and no error, and what is missing is not there. Paths are absolute on that machine.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from panpan.errors import ToolError
from panpan.system.files.canonical import MAX_LINKS, MAX_PATH_BYTES
from panpan.system.files.paths import PathResolver
from panpan.system.files.read_file import open_regular_file

MAX_ENTRIES = 500_000
"""Files and folders that one walk looks at."""
_MAX_NOTED = 200


class MachineRoot:
    """Reads what lies below a root.

    Args:
        root: The folder that is `/` of the machine.
        may_read: Says of a canonical path of this machine whether it may be read, as `PathResolver.may_show` does.
    """

    def __init__(self, root: Path = Path("/"), may_read: Callable[[Path], bool] = lambda _: True) -> None:
        self._prefix = str(root.resolve()).rstrip("/")
        self._may_read = may_read
        self._links: dict[str, str | None] = {}
        self.unread: dict[str, str] = {}
        """Reasons why files could not be read, by path; the first ones if there are very many."""

    def path_here(self, path: str) -> Path | None:
        """Return where `path` really lies on the machine that this runs on; None if links go in a circle."""
        end = self.resolve(path)
        return None if end is None else Path(f"{self._prefix}{end}" or "/")

    def resolve(self, path: str) -> str | None:
        """Return `path` with all links followed, below the root; it may not exist. None if that has no end."""
        if "\0" in path or len(path) > MAX_PATH_BYTES:
            return None
        pending = path.split("/")[::-1]
        here, followed = "", 0
        while pending:
            name = pending.pop()
            if name in ("", "."):
                continue
            if name == "..":
                here = here.rpartition("/")[0]
                continue
            target = self._link_target(f"{here}/{name}")
            if target is None:
                here = f"{here}/{name}"
                continue
            followed += 1
            if followed > MAX_LINKS:
                return None
            here = "" if target.startswith("/") else here
            pending.extend(target.split("/")[::-1])
        return here

    def exists(self, path: str) -> bool:
        """Return whether there is anything, also at the end of links."""
        place = self.path_here(path)
        try:
            return place is not None and os.path.lexists(place)
        except ValueError:
            return False

    def names(self, folder: str) -> Sequence[str]:
        """Return the names in a folder, sorted; none if it is no folder or cannot be listed."""
        place = self.path_here(folder)
        if place is None:
            return ()
        try:
            with os.scandir(place) as scan:
                return sorted(entry.name for entry, _ in zip(scan, range(MAX_ENTRIES), strict=False))
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except (OSError, ValueError) as exc:
            self._note(folder, getattr(exc, "strerror", None) or "no usable path")
            return ()

    def walk(self, folder: str) -> Iterator[tuple[str, str]]:
        """Yield each file below a folder, as the folder it is in and its name; links to folders are not followed."""
        pending, left = [folder], MAX_ENTRIES
        while pending and left > 0:
            here = pending.pop()
            place = self.path_here(here)
            if place is None:
                continue
            try:
                with os.scandir(place) as scan:
                    for entry in scan:
                        left -= 1
                        if left < 0:
                            break
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(f"{here}/{entry.name}")
                        else:
                            yield here, entry.name
            except (FileNotFoundError, NotADirectoryError):
                continue
            except (OSError, ValueError) as exc:
                self._note(here, getattr(exc, "strerror", None) or "no usable path")
        if left <= 0:
            self._note(folder, f"only the first {MAX_ENTRIES:,} files and folders in it were looked at")

    def text(self, path: str, *, max_bytes: int = 1_000_000) -> str | None:
        """Return the beginning of a text file, with what is no UTF-8 replaced; None if it cannot be read."""
        with self.opened(path) as stream:
            if stream is None:
                return None
            try:
                return stream.read(max_bytes).decode(errors="replace")
            except OSError as exc:
                self._note(path, exc.strerror or "it cannot be read")
                return None

    @contextmanager
    def opened(self, path: str) -> Iterator[BinaryIO | None]:
        """Open a regular file for reading; None if there is none, or it may not or cannot be read."""
        place = self.path_here(path)
        if place is None:
            self._note(path, "links go in a circle")
            yield None
            return
        if not self._may_read(place):
            self._note(path, "it may hold secrets, or a rule withholds it")
            yield None
            return
        try:
            stream = open_regular_file(place)
        except (ToolError, ValueError) as exc:
            if not isinstance(exc.__cause__, FileNotFoundError | NotADirectoryError):
                self._note(path, str(exc))
            yield None
            return
        with stream:
            yield stream

    def free_bytes(self, path: str) -> int | None:
        """Return the room for files of users on the disk that `path` is on; None if it cannot be told."""
        place = self.path_here(path)
        try:
            status = os.statvfs(place) if place is not None else None
        except (OSError, ValueError):
            return None
        return status.f_bavail * status.f_frsize if status else None

    def _link_target(self, path: str) -> str | None:
        """Return the target of a link; None if it is none, or cannot be read."""
        if path not in self._links:
            try:
                self._links[path] = os.readlink(f"{self._prefix}{path}")  # noqa: PTH115 - one for each component
            except (OSError, ValueError):
                self._links[path] = None
        return self._links[path]

    def _note(self, path: str, reason: str) -> None:
        if len(self.unread) < _MAX_NOTED:
            self.unread[path] = reason


def machine_for(paths: PathResolver, withholds: Callable[[Path, Path], bool]) -> MachineRoot:
    """Return the machine at hand, as far as a call may read it."""
    return MachineRoot(may_read=lambda path: paths.may_show(path) and not withholds(path, paths.root))


def readable_folder(folder: str, paths: PathResolver) -> str:
    """Return a folder; nothing if only an answer of the user's would open it."""
    try:
        return str(paths.resolve(folder, access="read")) if folder else ""
    except ToolError:
        return ""
