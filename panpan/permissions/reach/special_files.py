"""Pipes and devices among what a command would read: it may wait there, or read, without an end.

The rule: only commands that open what they name are meant; `ls` and `stat` ask the file system, and wait for nobody.
"""

import os
import stat
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import anyio.to_thread

from panpan.permissions.reach.folder_walk import walk_folders
from panpan.permissions.reach.live_patterns import names_filter
from panpan.permissions.subject import Subject
from panpan.shell_analysis.facts import Effect, LineFacts
from panpan.types.permission import Reason

_MOST_FILES = 200_000
_KINDS = {stat.S_IFIFO: "a named pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


async def waiting_file(subject: Subject) -> Reason | None:
    """Return why a command line that only looks might not come to an end, or None."""
    if subject.facts is None or not subject.seems_to_look:
        return None
    if reason := _first_special(_named_files(subject, subject.facts)):
        return reason
    searches = [effect for effect in subject.effects if effect.follows_links and not effect.opens_nothing]
    if not searches:
        return None

    def look() -> Reason | None:
        return _first_special(chain.from_iterable(_found_files(effect, subject.cwd) for effect in searches))

    return await anyio.to_thread.run_sync(look, abandon_on_cancel=True)


def _named_files(subject: Subject, facts: LineFacts) -> Iterator[Path]:
    """Yield what is opened of what the line names; with patterns in it, of all that any pattern in the line matches."""
    opening = [effect for effect in facts.effects if not effect.opens_nothing or effect.command.redirects]
    opened = {path for effect in opening for path in effect.assumed_reads}
    has_patterns = any(effect.globs or effect.follows_links for effect in opening)
    for use in subject.uses:
        if use.use.path in opened or (use.is_shallow and has_patterns):
            yield use.path


def _found_files(search: Effect, cwd: Path) -> Iterator[Path]:
    """Yield what is neither a folder nor a file nor a link in the folders whose files a search hands on."""
    count = 0
    is_meant = names_filter(search.only_names)
    folders = [cwd / path for path in search.placed_searches]
    for _, _, others in walk_folders(
        folders, leaves_out_hidden=search.leaves_out_hidden, only_tracked=search.only_tracked
    ):
        count += len(others)
        if count > _MOST_FILES:
            return
        for entry in others:
            if not (_is_file(entry) or entry.is_symlink()) and is_meant(entry.name):
                yield Path(entry.path)


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file(follow_symlinks=False)
    except OSError:
        return True


def _first_special(files: Iterator[Path]) -> Reason | None:
    for file in files:
        try:
            kind = _KINDS.get(stat.S_IFMT(os.stat(file).st_mode))  # noqa: PTH116 - Path.stat costs as much again
        except OSError:
            continue
        if kind:
            text = f"{file} is {kind}, and a command that reads it may wait, or go on, without an end"
            return Reason(text, "unknown", path=str(file), assumption=text)
    return None
