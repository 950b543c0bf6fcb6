"""Inputs and outputs of a command, by the files that were opened and changed while it ran."""

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from panpan.receipts.digests import GONE, RECEIPT_BYTES, Content, FileDigests
from panpan.receipts.receipt import FileDigest
from panpan.receipts.watched_files import FileEvents, FilesSeen
from panpan.receipts.workspace_tree import walk_folders
from panpan.types.dataclass import dataclass

MOST_NAMED = 2_000
"""Most inputs that a receipt names, and most outputs."""
MOST_LISTED = 20_000
"""Most files of a workspace that are listed where reads cannot be seen."""
_CLOCK_TICK_NS = 20_000_000
"""Time by which the clock of a file system may be behind."""


@dataclass(frozen=True, slots=True)
class TouchedFiles:
    """Files that a command read and wrote."""

    inputs: tuple[FileDigest, ...]
    outputs: tuple[FileDigest, ...]
    contents: Mapping[str, Content]
    """Contents of the outputs that are named, by canonical path."""
    inputs_are: Literal["opened", "all", "unknown"]
    more_inputs: int = 0
    more_outputs: int = 0


def touched_files(
    seen: FilesSeen, roots: Sequence[Path], hidden: Collection[Path], digests: FileDigests, since_ns: int
) -> TouchedFiles:
    """Return what a command read and wrote, digested as it is now.

    Args:
        seen: Files that were opened and changed meanwhile.
        roots: Folders of the workspace, the main one first.
        hidden: Folders that are left out.
        digests: Digests of files.
        since_ns: Start of the command, nanoseconds since 1970.
    """
    files = dict(_regular(seen.files))
    inputs_are: Literal["opened", "all", "unknown"] = "opened"
    if not seen.is_complete:
        inputs_are = "all" if _add_all(files, roots, hidden, since_ns) else "unknown"
    inputs = sorted(path for path, events in files.items() if _is_input(events, inputs_are))
    outputs = sorted(path for path, events in files.items() if events.is_written)
    named = [*inputs[:MOST_NAMED], *outputs[:MOST_NAMED]]
    contents = digests.read_all(named, most_bytes=RECEIPT_BYTES)
    top = str(roots[0])
    return TouchedFiles(
        tuple(_digest(path, contents[path], top, is_changed=_is_changed(files[path])) for path in inputs[:MOST_NAMED]),
        tuple(_digest(path, contents[path], top) for path in outputs[:MOST_NAMED]),
        {path: contents[path] for path in outputs[:MOST_NAMED]},
        inputs_are,
        max(len(inputs) - MOST_NAMED, 0),
        max(len(outputs) - MOST_NAMED, 0),
    )


def _is_input(events: FileEvents, inputs_are: str) -> bool:
    if inputs_are == "all" or _is_changed(events):
        return True
    return events.is_read or (events.is_open and not events.is_written)


def _is_changed(events: FileEvents) -> bool:
    """True if the command may have read another content than the file has now."""
    return events.was_read_before and not events.is_read


def _regular(files: Mapping[str, FileEvents]) -> Iterator[tuple[str, FileEvents]]:
    """Yield the files that are regular ones or gone, but for those that came and went."""
    for path, events in list(files.items()):
        try:
            is_regular = stat.S_ISREG(os.lstat(path).st_mode)
        except OSError:
            is_regular = not events.is_new
        if is_regular:
            yield path, events


def _add_all(files: dict[str, FileEvents], roots: Iterable[Path], hidden: Collection[Path], since_ns: int) -> bool:
    """Add all files of the workspace; return False if they are too many."""
    for root in roots:
        for folder in walk_folders(str(root), {str(one) for one in hidden}, is_root=True):
            for name in folder.files:
                path = f"{folder.path.rstrip('/')}/{name}"
                with suppress(OSError):
                    status = os.lstat(path)
                    if stat.S_ISREG(status.st_mode):
                        is_written = max(status.st_mtime_ns, status.st_ctime_ns) >= since_ns - _CLOCK_TICK_NS
                        files.setdefault(path, FileEvents(is_written=is_written))
            if len(files) > MOST_LISTED:
                return False
    return True


def _digest(path: str, content: Content, top: str, *, is_changed: bool = False) -> FileDigest:
    how = "changed" if is_changed and content is not GONE else content.how
    relative = path[len(top.rstrip("/")) + 1 :] if path.startswith(f"{top.rstrip('/')}/") else path
    return FileDigest(
        path=os.fsencode(relative).decode("utf-8", "backslashreplace"),
        size=content.size,
        sha256=content.sha256,
        how=how,
        changed_ns=content.changed_ns if how == "parts" else 0,
    )
