"""History of files while a command ran, by the events of inotify."""

from collections.abc import Collection
from dataclasses import field

from panpan.receipts.inotify import CLOSED_UNWRITTEN, CLOSED_WRITTEN, CREATED, DELETED, MOVED_AWAY, MOVED_HERE, OPENED
from panpan.types.dataclass import dataclass

_WRITTEN = CLOSED_WRITTEN | CREATED | MOVED_HERE | MOVED_AWAY | DELETED


@dataclass(slots=True)
class FileEvents:
    """History of one file during a command."""

    is_new: bool = False
    """True if it was made meanwhile, as far as is known."""
    is_written: bool = False
    """True if it was made, changed, moved or deleted."""
    is_open: bool = False
    """True if it was opened and not closed since."""
    is_read: bool = False
    """True if it was read, and not changed after that."""
    was_read_before: bool = False
    """True if a content that it had was read, and changed after that."""

    def add(self, mask: int) -> None:
        """Add an event of inotify."""
        if mask & OPENED:
            self.is_open = True
        elif mask & CLOSED_UNWRITTEN:
            self.is_open = False
            self.is_read = True
        elif mask & _WRITTEN:
            self.was_read_before = self.was_read_before or (self.is_read and not self.is_new)
            self.is_open = self.is_open and not mask & CLOSED_WRITTEN
            self.is_written = True
            self.is_read = False

    def keep(self) -> None:
        """Take it for a file that a program keeps for itself, so that it does not matter what it was before."""
        self.was_read_before = False

    def add_unseen_change(self) -> None:
        """Add a change that came without an event, as by a program that has the file open, or mapped into its memory.

        The file is closed later, or was closed before, so that nobody can say which content was read.
        """
        self.was_read_before = self.was_read_before or self.is_read or self.is_open
        self.is_read = False


@dataclass(slots=True)
class FilesSeen:
    """Files that were opened or changed in a stretch of time."""

    files: dict[str, FileEvents] = field(default_factory=dict)
    """By canonical path."""
    environments: set[str] = field(default_factory=set)
    """Python environments in the workspace that were used."""
    uses_cache: bool = False
    """True if something was read that a program had kept of files, so that it may not have opened these."""
    links: Collection[str] = ()
    """Paths of the links of the workspace."""
    is_complete: bool = True
    """False if events were lost, so that other files may have been opened or changed, too."""

    def add(self, path: str, mask: int) -> None:
        """Add an event of a file."""
        known = self.files.get(path)
        if known is None:
            known = self.files[path] = FileEvents(is_new=bool(mask & CREATED))
        known.add(mask)

    def add_unseen(self, path: str) -> None:
        """Add a file of a folder that was made meanwhile. Nobody saw what happened to it, so it may have been read."""
        known = self.files.setdefault(path, FileEvents())
        known.is_new = known.is_written = known.is_read = True

    def note_cache(self) -> None:
        """Note that something stood for files that were not opened."""
        self.uses_cache = True

    def note_loss(self) -> None:
        """Note that events were lost."""
        self.is_complete = False
