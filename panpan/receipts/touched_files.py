"""Files that a command read and wrote: their history while it ran, by the events of inotify, and their digests."""

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field, replace

from panpan.receipts.digests import RECEIPT_BYTES, Content, FileDigests
from panpan.receipts.inotify import CLOSED_UNWRITTEN, CLOSED_WRITTEN, CREATED, DELETED, MOVED_AWAY, MOVED_HERE, OPENED
from panpan.types.dataclass import dataclass

MOST_NAMED = 2_000
"""Most inputs that a receipt names, and most outputs."""
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

    def note_links(self, links: Collection[str]) -> None:
        """Note the links that the workspace has at the end."""
        self.links = links


@dataclass(frozen=True, slots=True)
class TouchedFiles:
    """Files that a command read and wrote, by canonical path, sorted."""

    inputs: Mapping[str, Content]
    outputs: Mapping[str, Content]
    more_inputs: int = 0
    """Inputs beyond the most that are digested."""
    more_outputs: int = 0

    @property
    def only_read(self) -> list[Content]:
        """Inputs that it did not write."""
        return [content for path, content in self.inputs.items() if path not in self.outputs]


def read_touched(files: Mapping[str, FileEvents], digests: FileDigests, since_ns: int) -> TouchedFiles:
    """Return what a command read and wrote, digested as it is now.

    Args:
        files: What was seen of files meanwhile, by canonical path.
        digests: Digests of files.
        since_ns: Start of the command, nanoseconds since 1970.
    """
    regular = dict(_regular(files, since_ns))
    inputs = sorted(path for path, events in regular.items() if _is_input(events))
    outputs = sorted(path for path, events in regular.items() if events.is_written)
    named = [*inputs[:MOST_NAMED], *outputs[:MOST_NAMED]]
    contents = digests.read_all(named, most_bytes=RECEIPT_BYTES)

    def read(path: str) -> Content:
        content = contents[path]
        return replace(content, how="changed") if is_changed(regular[path]) and content.how != "gone" else content

    return TouchedFiles(
        {path: read(path) for path in inputs[:MOST_NAMED]},
        {path: contents[path] for path in outputs[:MOST_NAMED]},
        max(len(inputs) - MOST_NAMED, 0),
        max(len(outputs) - MOST_NAMED, 0),
    )


def is_changed(events: FileEvents) -> bool:
    """Return True if the command may have read another content than the file has now."""
    return events.was_read_before and not events.is_read


def _is_input(events: FileEvents) -> bool:
    return events.is_read or is_changed(events) or (events.is_open and not events.is_written)


def _regular(files: Mapping[str, FileEvents], since_ns: int) -> Iterator[tuple[str, FileEvents]]:
    """Yield the files that are regular ones or gone, but for those that came and went."""
    for path, events in files.items():
        try:
            status = os.lstat(path)
            is_regular = stat.S_ISREG(status.st_mode)
        except OSError:
            is_regular = not events.is_new
        else:
            if not events.is_written and min(status.st_mtime_ns, status.st_ctime_ns) >= since_ns:
                events.add_unseen_change()
        if is_regular:
            yield path, events
