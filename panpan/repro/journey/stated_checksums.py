"""Checksums that a paper or its repository states, so that a model cannot make one up."""

from collections.abc import Callable, Iterator
from pathlib import Path

from anyio import to_thread

from panpan.batch.attempts.project_copy import walked_files
from panpan.errors import ToolError
from panpan.file_trees.listed_files import list_files
from panpan.repro.journey.reproduction_folder import ReproductionFolder
from panpan.system.files.canonical import canonical_path
from panpan.system.files.read_file import read_regular_file

_MAX_FILES = 2_000
_MAX_BYTES = 1_000_000
"""Largest file that is searched."""
_MAX_PAPER_BYTES = 20_000_000


async def stated_in(folder: ReproductionFolder) -> Callable[[str], bool]:
    """Return a function that says if the paper or a small file of the repository has a checksum.

    The function blocks while it reads. The text of a PDF is not searched.
    """
    top = canonical_path(folder.source)
    try:
        listed = await list_files(top) if (top / ".git").exists() else await to_thread.run_sync(walked_files, top)
        names = list(listed.files)[:_MAX_FILES]
    except ToolError:  # more files than can be listed
        names = []
    return lambda checksum: any(checksum.encode() in data.lower() for data in _contents(folder, top, names))


def _contents(folder: ReproductionFolder, top: Path, names: list[str]) -> Iterator[bytes]:
    places = [(top / name, _MAX_BYTES) for name in names]
    if folder.paper is not None:
        places.append((folder.paper, _MAX_PAPER_BYTES))
    for path, max_bytes in places:
        try:
            yield read_regular_file(path, max_bytes=max_bytes)
        except ToolError:  # a link, too large, or gone
            continue
