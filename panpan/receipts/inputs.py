"""Inputs and outputs of a command, with the files that it depends on without opening them.

The rule: a link counts as read if what it leads to was read, or if that is a file which is not watched, since nobody
sees a program follow it.
"""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from anyio import to_thread

from panpan.receipts.derived_files import DerivedFiles
from panpan.receipts.digests import Content, FileDigests, read_link
from panpan.receipts.touched_files import MOST_NAMED, FileEvents, FilesSeen, TouchedFiles, is_changed, read_touched
from panpan.receipts.workspace_files import AllFiles, GitFiles, read_all_files, walk_folders
from panpan.types.dataclass import dataclass

_CLOCK_TICK_NS = 20_000_000
"""Time by which the clock of a file system may be behind."""
_MOST_SCANNED = 50_000
MOST_LINKS = 500
"""Most links that are followed for a receipt."""


@dataclass(frozen=True, slots=True)
class InputsAndOutputs:
    """Files of a command, by canonical path."""

    inputs: Mapping[str, Content]
    outputs: Mapping[str, Content]
    only_read: Sequence[Content]
    """Inputs that it did not write."""
    inputs_are: Literal["opened", "all", "unknown"]
    all_sha256: str = ""
    more_inputs: int = 0
    more_outputs: int = 0


class InputFinder:
    """Finds the inputs and outputs of the commands of one workspace.

    Args:
        roots: Folders of the workspace, the main one first; canonical.
        hidden: Folders of the workspace that no receipt names.
        digests: Digests of files.
    """

    def __init__(self, roots: Sequence[Path], hidden: Sequence[Path], digests: FileDigests) -> None:
        self._roots = tuple(roots)
        self._hidden = tuple(hidden)
        self._digests = digests
        self.git = GitFiles(roots)
        self._derived = DerivedFiles(self.git)

    def look(self, seen: FilesSeen, since_ns: int) -> TouchedFiles:
        """Digest the files that were seen since the start of a command; it blocks."""
        touched = read_touched(seen.files, self._digests, since_ns)
        links = links_to(touched.inputs, seen.links, self._roots)
        for path in links.keys() & seen.files.keys():
            if not seen.files[path].is_new:  # nobody can say if it was followed before it was changed
                links[path] = replace(links[path], how="changed")
        return replace(touched, inputs={**touched.inputs, **links}) if links else touched

    async def find(self, seen: FilesSeen, touched: TouchedFiles, since_ns: int) -> InputsAndOutputs:
        """Return inputs and outputs of a command.

        Args:
            seen: What was seen while it ran, and no more is added to.
            touched: These files, as `look` returned them.
            since_ns: Start of the command, nanoseconds since 1970.
        """
        if await self._correct(seen, since_ns):
            touched = await to_thread.run_sync(self.look, seen, since_ns)
        sources = await self._derived.sources_of(touched.inputs, touched.outputs)
        inputs = {**sources.contents, **touched.inputs} if sources.contents else touched.inputs
        knows_all = seen.is_complete and not seen.uses_cache and sources.knows_all and len(seen.links) <= MOST_LINKS
        self._derived.remember(touched.outputs, inputs, knows_all=knows_all)
        is_named = knows_all and len(inputs) + touched.more_inputs <= MOST_NAMED
        everything = None if is_named else await read_all_files(self._roots, self._hidden, self._digests)
        return _found(touched, inputs, everything, knows_all=knows_all)

    async def _correct(self, seen: FilesSeen, since_ns: int) -> bool:
        """Correct what was seen where git knows better, and return True if there was anything to correct."""
        if not seen.is_complete:
            await self._add_unseen(seen.files, since_ns)
        changed = [path for path, events in seen.files.items() if is_changed(events)]
        own = await self.git.ignored(changed)  # programs read and write these anew for themselves
        for path in own:
            seen.files[path].keep()
        return bool(own) or not seen.is_complete

    async def _add_unseen(self, files: dict[str, FileEvents], since_ns: int) -> None:
        """Add files that were changed while nobody saw it. Those that git tracks may have been read before."""
        written = await to_thread.run_sync(_written_since, self._roots, self._hidden, since_ns - _CLOCK_TICK_NS)
        new = [path for path in written if path not in files]
        for path in new:
            files[path] = FileEvents(is_written=True, is_new=True)
        for path in await self.git.tracked(new):
            files[path] = FileEvents(is_written=True, was_read_before=True)


def only_touched(touched: TouchedFiles, *, is_complete: bool) -> InputsAndOutputs:
    """Return the files that a command touched, for one that only looks: nobody asks for what is behind them."""
    return InputsAndOutputs(
        touched.inputs,
        touched.outputs,
        touched.only_read,
        "opened" if is_complete else "unknown",
        more_inputs=touched.more_inputs,
        more_outputs=touched.more_outputs,
    )


def _found(
    touched: TouchedFiles, inputs: Mapping[str, Content], everything: AllFiles | None, *, knows_all: bool
) -> InputsAndOutputs:
    more = touched.more_inputs
    if everything is not None:
        more = 0
        others = {path: one for path, one in everything.contents.items() if path not in inputs}
        inputs = {**inputs, **others}
    named = dict(sorted(list(inputs.items())[:MOST_NAMED]))
    return InputsAndOutputs(
        named,
        touched.outputs,
        touched.only_read,
        "all" if everything is not None else "opened" if knows_all else "unknown",
        everything.sha256 if everything is not None else "",
        more + len(inputs) - len(named),
        touched.more_outputs,
    )


def _written_since(roots: Sequence[Path], hidden: Sequence[Path], since_ns: int) -> Sequence[str]:
    left_out = {str(folder) for folder in hidden}
    found: list[str] = []
    scanned = 0
    for root in roots:
        for folder in walk_folders(str(root), left_out, is_root=True):
            for name in folder.files:
                path = f"{folder.path.rstrip('/')}/{name}"
                scanned += 1
                if scanned > _MOST_SCANNED:
                    return found
                try:
                    status = os.lstat(path)
                except OSError:
                    continue
                if max(status.st_mtime_ns, status.st_ctime_ns) >= since_ns:
                    found.append(path)
    return found


def links_to(read: Collection[str], links: Collection[str], roots: Sequence[Path]) -> dict[str, Content]:
    """Return the links that count as read, by path.

    Args:
        read: Canonical paths of the files that were read.
        links: Paths of links of the workspace.
        roots: Folders of the workspace; canonical.
    """
    if not read or not links:
        return {}
    named = _with_folders(read)
    tops = tuple(f"{str(root).rstrip('/')}/" for root in roots)
    found: dict[str, Content] = {}
    for link in sorted(links)[:MOST_LINKS]:
        content = read_link(link)
        target = os.path.realpath(link)
        if content.how == "link" and target in named:
            found[link] = replace(content, changed_ns=0)  # the file is digested by itself
        elif content.how == "link" and not target.startswith(tops) and os.path.isfile(target):  # noqa: PTH113
            found[link] = content
    return found


def _with_folders(paths: Collection[str]) -> set[str]:
    found: set[str] = set()
    for path in paths:
        while path not in found and path:
            found.add(path)
            path = path.rpartition("/")[0]
    return found
