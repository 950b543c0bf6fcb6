"""Files of the repository in which a model works: their list, what they state, and those that change.

The rule: what is there before the model begins is on the disk before it begins, so that a kill hides no change.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from anyio import to_thread

from panpan.batch.attempts.project_copy import walked_files
from panpan.batch.store.folder import write_whole
from panpan.errors import ToolError
from panpan.file_trees.listed_files import list_files
from panpan.repro.checking.results import CheckReport
from panpan.repro.journey.reproduction_folder import ReproductionFolder
from panpan.system.files.canonical import canonical_path
from panpan.system.files.read_file import read_regular_file

_FILE = "files-before.json"
_MAX_BYTES = 100_000_000
_MAX_STATING_FILES = 2_000
_MAX_STATING_BYTES = 1_000_000
"""Largest file that is searched for a checksum."""
_MAX_PAPER_BYTES = 20_000_000

_Seen: TypeAlias = Mapping[str, Sequence[int]]
"""Size and times of each file, by its path."""


async def names_in(top: Path) -> Sequence[str] | None:
    """Return the files of a repository or folder, relative to it; None if they are more than can be listed."""
    try:
        listed = await list_files(top) if (top / ".git").exists() else await to_thread.run_sync(walked_files, top)
    except ToolError:
        return None
    return listed.files


async def note_files_before(folder: ReproductionFolder) -> None:
    """Write down the files of the repository, unless that was done before.

    Raises:
        OutputError: It cannot be written.
    """
    target = folder.path / _FILE
    if not target.exists():
        seen = await _seen(canonical_path(folder.source))
        if seen is None:
            return
        await to_thread.run_sync(write_whole, target, json.dumps(seen).encode())


async def with_changes(folder: ReproductionFolder, check: CheckReport) -> CheckReport:
    """Return a check that names the files that differ from before the model began, as far as runs may read them."""
    try:
        before = json.loads(read_regular_file(folder.path / _FILE, max_bytes=_MAX_BYTES))
    except (ToolError, ValueError):  # no model was asked
        return check
    now = await _seen(canonical_path(folder.source)) or {}
    changed = sorted(path for path, seen in now.items() if list(seen) != before.get(path))
    gone = sorted(before.keys() - now.keys())
    return check.model_copy(update={"written_here": (*_read_by_runs(check, changed), *gone)})


def _read_by_runs(check: CheckReport, changed: Sequence[str]) -> Sequence[str]:
    """Leave out files that no run has opened, if it is known what each has opened."""
    if any(one.inputs_are != "opened" or one.more_files for one in check.receipts):
        return changed
    opened = {digest.path for one in check.receipts for digest in one.inputs}
    return [path for path in changed if path in opened]


async def _seen(top: Path) -> _Seen | None:
    names = await names_in(top)
    return None if names is None else await to_thread.run_sync(_stats, top, names)


def _stats(top: Path, files: Sequence[str]) -> _Seen:
    seen = {}
    for path in files:
        try:
            status = os.lstat(top / path)
        except OSError:  # a file that git knows and that is gone
            continue
        seen[path] = (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return seen


async def stated_in(folder: ReproductionFolder) -> Callable[[str], bool]:
    """Return a function that says if the paper or a small file of the repository has a checksum.

    The function blocks while it reads. The text of a PDF is not searched.
    """
    top = canonical_path(folder.source)
    names = (await names_in(top) or ())[:_MAX_STATING_FILES]
    return lambda checksum: any(checksum.encode() in data.lower() for data in _contents(folder, top, names))


def _contents(folder: ReproductionFolder, top: Path, names: Sequence[str]) -> Iterator[bytes]:
    places = [(top / name, _MAX_STATING_BYTES) for name in names]
    if folder.paper is not None:
        places.append((folder.paper, _MAX_PAPER_BYTES))
    for path, max_bytes in places:
        try:
            yield read_regular_file(path, max_bytes=max_bytes)
        except ToolError:  # a link, too large, or gone
            continue
