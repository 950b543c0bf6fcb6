"""Files that a command read and wrote, digested, by what was seen of them while it ran."""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import replace

from panpan.receipts.digests import RECEIPT_BYTES, Content, FileDigests
from panpan.receipts.file_events import FileEvents
from panpan.types.dataclass import dataclass

MOST_NAMED = 2_000
"""Most inputs that a receipt names, and most outputs."""


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
