"""Files of a workspace that are opened and changed while commands run.

The rule: it may name a file that another program opened or changed at that time, and never leaves one out without
saying so: `FilesSeen.is_complete`.
"""

import errno
import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from threading import Lock
from typing import TypeAlias

from panpan.receipts.inotify import (
    CLOSED_UNWRITTEN,
    CLOSED_WRITTEN,
    CREATED,
    IGNORED,
    IS_FOLDER,
    MOVED_AWAY,
    MOVED_HERE,
    OPENED,
    OVERFLOW,
    EventThread,
    Inotify,
    watches_of_user,
)
from panpan.receipts.touched_files import FilesSeen
from panpan.receipts.workspace_files import (
    ENVIRONMENT_MARK,
    ENVIRONMENT_MARKS,
    FolderKind,
    is_left_out,
    kind_of_folder,
    source_of_bytecode,
    walk_folders,
)

_MOST_WATCHES = 50_000
"""Most folders that are watched; each takes about a kilobyte of the kernel's memory."""
_OF_FOLDERS = CREATED | IGNORED | MOVED_AWAY | MOVED_HERE
_MOST_ENTRIES = 1_000_000
"""Most files and folders that are looked through for folders, about two seconds."""

_FileId: TypeAlias = tuple[int, int] | None
"""Device and inode; None if there is no file."""


class WatchedFiles:
    """Watches the folders of a workspace. All methods may be called from any thread.

    A thread takes the events while anybody watches, so that new folders are watched soon and the queue does not
    overflow.

    Args:
        roots: Folders, canonical.
        hidden: Canonical folders in them that are not watched.
        most_watches: Most folders that are watched; and never more than half of those that the user may watch.
        open_inotify: Opens the interface of the kernel.
    """

    def __init__(
        self,
        roots: Sequence[str],
        hidden: Collection[str] = (),
        *,
        most_watches: int = _MOST_WATCHES,
        open_inotify: Callable[[], Inotify] = Inotify,
    ) -> None:
        self._roots = tuple(roots)
        self._hidden = frozenset(hidden)
        self._most_watches = most_watches
        self._open_inotify = open_inotify
        self._looked_through = 0
        self._lock = Lock()
        self._inotify: Inotify | None = None
        self._is_unavailable = False
        self._folders: dict[int, tuple[str, FolderKind]] = {}
        """Watched folders by the number of their watch."""
        self._tops: Sequence[_FileId] = ()
        """The roots when they began to be watched."""
        self._links: set[str] = set()
        """Paths of links, some of which may be gone."""
        self._reports: dict[int, Callable[[str], None]] = {}
        self._active: list[FilesSeen] = []
        self._thread: EventThread | None = None

    def begin(self) -> FilesSeen:
        """Begin to collect what happens from now on."""
        seen = FilesSeen()
        with self._lock:
            self._prepare()
            self._take_all()  # what happened before
            self._follow_roots()
            if self._is_unavailable:
                seen.note_loss()
            self._active.append(seen)
            if self._inotify is not None and self._thread is None:
                self._thread = EventThread(self._inotify.fileno(), self._take)
        return seen

    def end(self, seen: FilesSeen) -> None:
        """End a collection; it has all that happened until now."""
        with self._lock:
            if all(one is not seen for one in self._active):
                return
            self._take_all()
            self._follow_roots()
            self._active = [one for one in self._active if one is not seen]
            seen.note_links(frozenset(self._links))
            taker = None
            if not self._active:
                taker, self._thread = self._thread, None
        if taker is not None:
            taker.stop()

    def forget_reports(self, folder: str) -> None:
        """Stop watching a folder of reports."""
        with self._lock:
            self._take_all()
            for number in [number for number in self._reports if self._folders[number][0] == folder]:
                self._remove(number)

    def close(self) -> None:
        """Stop watching."""
        with self._lock:
            taker, self._thread = self._thread, None
        if taker is not None:
            taker.stop()
        with self._lock:
            self._active.clear()
            self._is_unavailable = True
            if self._inotify is not None:
                self._inotify.close()
                self._inotify = None

    def watch_reports(self, folder: str, take: Callable[[str], None]) -> bool:
        """Call `take` with the path of each file that is written in a folder of our own, as soon as it is closed.

        It returns False if files cannot be watched here.
        """
        with self._lock:
            self._prepare()
            if self._inotify is None:
                return False
            try:
                number = self._inotify.add(folder)
            except OSError:
                return False
            self._folders[number] = folder, "files"
            self._reports[number] = take
            return True

    # The following methods are called with the lock held.

    def _prepare(self) -> None:
        if self._inotify is not None or self._is_unavailable:
            return
        try:
            self._inotify = self._open_inotify()
            self._most_watches = min(self._most_watches, watches_of_user() // 2)
            self._tops = _ids(self._roots)
            for root in self._roots:
                self._watch(root, is_root=True)
        except OSError:
            self._give_up()

    def _follow_roots(self) -> None:
        """Watch a root again that was moved or removed, and has another folder in its place now."""
        if self._inotify is None or self._is_unavailable or self._tops == (tops := _ids(self._roots)):
            return
        self._note_loss()
        for number in self._folders.keys() - self._reports.keys():
            self._remove(number)
        self._tops = tops
        try:
            for root in self._roots:
                self._watch(root, is_root=True)
        except OSError:
            self._give_up()

    def _note_loss(self) -> None:
        for seen in self._active:
            seen.note_loss()

    def _give_up(self) -> None:
        """Go on without watching, as where the limit is reached."""
        self._is_unavailable = True
        self._note_loss()
        for number in self._folders.keys() - self._reports.keys():
            if self._inotify is not None:
                self._inotify.remove(number)
        self._folders = {number: self._folders[number] for number in self._reports}

    def _watch(self, top: str, *, is_root: bool = False, is_new: bool = False) -> None:
        """Watch a folder and those below it; the files of a new one count as written and read.

        Raises:
            OSError: No more folders can be watched.
        """
        inotify = self._inotify
        if inotify is None:
            return
        self._looked_through = 0
        if is_root and os.path.isfile(top):  # noqa: PTH113 - a root may be a file, too
            self._watch_file(inotify, top)
        for folder in walk_folders(top, self._hidden, is_root=is_root):
            self._looked_through += 1 + len(folder.files)
            if len(self._folders) >= self._most_watches or self._looked_through > _MOST_ENTRIES:
                raise OSError(errno.ENOSPC, "too many folders to watch")
            try:
                number = inotify.add(folder.path)
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.ENOMEM):
                    raise
                continue  # it is gone, or is none of ours to read
            self._folders[number] = folder.path, folder.kind
            self._links.update(f"{folder.path.rstrip('/')}/{name}" for name in folder.links)
            if is_new and folder.kind == "files":
                self._note_new_files(folder.path)
            elif is_new and folder.kind == "environment":
                for seen in self._active:
                    seen.environments.add(folder.path)

    def _watch_file(self, inotify: Inotify, path: str) -> None:
        with suppress(OSError):
            self._folders[inotify.add(path, only_folders=False)] = path, "file"

    def _watch_kept(self, folder: str) -> None:
        if self._inotify is not None:
            with suppress(FileNotFoundError):
                self._folders[self._inotify.add(folder)] = folder, "kept"

    def _note_new_files(self, folder: str) -> None:
        """Note the files of a folder that has just come, now that it is watched: nobody saw what happened in it."""
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if not is_left_out(entry.name) and not entry.is_dir(follow_symlinks=False):
                    for seen in self._active:
                        seen.add_unseen(entry.path)

    def _take(self) -> None:
        with self._lock:
            self._take_all()

    def _take_all(self) -> None:
        inotify = self._inotify
        while inotify is not None and (events := inotify.read()):
            try:
                for number, mask, name in events:
                    if not mask & IS_FOLDER or mask & _OF_FOLDERS:  # opening a folder reads no file
                        self._take_event(number, mask, name)
            except OSError:
                self._give_up()
                return

    def _take_event(self, number: int, mask: int, name: str) -> None:
        if mask & OVERFLOW:
            self._catch_up()
            return
        folder, kind = self._folders.get(number, ("", "files"))
        if not folder:
            pass
        elif mask & IGNORED:
            self._forget(number)
            if folder in self._roots:
                self._tops = ()  # a new one may get the same inode
        elif number in self._reports:
            if mask & (CLOSED_WRITTEN | MOVED_HERE) and not mask & IS_FOLDER:
                self._reports[number](f"{folder}/{name}")
        elif kind == "file":
            for seen in self._active:
                seen.add(folder, mask)
        elif kind == "files":
            self._take_named(number, folder, mask, name)
        elif kind == "cache" and mask & IS_FOLDER and mask & CREATED:
            self._watch_kept(f"{folder}/{name}")
        elif mask & OPENED:
            self._take_opened(folder, kind, name)

    def _take_named(self, number: int, folder: str, mask: int, name: str) -> None:
        path = f"{folder}/{name}" if folder != "/" else f"/{name}"
        if name in ENVIRONMENT_MARKS and mask & (CREATED | MOVED_HERE) and folder not in self._roots:
            self._leave_environment(number, folder)
        elif mask & IS_FOLDER:
            if name and kind_of_folder(name):
                self._take_folder(path, mask)
        elif name and not is_left_out(name):
            if mask & (CREATED | MOVED_HERE) and os.path.islink(path):  # noqa: PTH114 - thousands of files
                self._links.add(path)
            for seen in self._active:
                seen.add(path, mask)

    def _take_opened(self, folder: str, kind: FolderKind, name: str) -> None:
        """Take note that a file was opened which stands for others."""
        for seen in self._active:
            if kind == "bytecode":
                seen.add(source_of_bytecode(folder, name), CLOSED_UNWRITTEN)
            elif kind in ("cache", "kept"):
                seen.note_cache()
            elif name == ENVIRONMENT_MARK:
                seen.environments.add(folder)

    def _leave_environment(self, number: int, folder: str) -> None:
        """Take a folder for an environment from now on, and forget the files in it."""
        self._folders[number] = folder, "environment"
        self._unwatch(folder, with_top=False)
        for seen in self._active:
            seen.environments.add(folder)
            for path in [one for one in seen.files if one.startswith(f"{folder}/")]:
                del seen.files[path]

    def _unwatch(self, top: str, *, with_top: bool = True) -> None:
        for number, (folder, _) in list(self._folders.items()):
            if folder.startswith(f"{top}/") or (with_top and folder == top):
                self._remove(number)

    def _remove(self, number: int) -> None:
        if self._inotify is not None:
            self._inotify.remove(number)
        self._forget(number)

    def _take_folder(self, path: str, mask: int) -> None:
        if mask & MOVED_AWAY:
            self._unwatch(path)
        elif mask & (CREATED | MOVED_HERE):
            self._watch(path, is_new=True)

    def _forget(self, number: int) -> None:
        self._folders.pop(number, None)
        self._reports.pop(number, None)

    def _catch_up(self) -> None:
        """Watch what came while events were lost."""
        self._note_loss()
        for root in self._roots:
            self._watch(root, is_root=True)


def _ids(paths: Sequence[str]) -> Sequence[_FileId]:
    return tuple(map(_id, paths))


def _id(path: str) -> _FileId:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
