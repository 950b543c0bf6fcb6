"""The Python packages that the runs of a check had, each environment once."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from panpan.errors import ToolError
from panpan.repro.checking.results import ClaimRun, InstalledPackages
from panpan.system.files.read_file import read_regular_file

_MAX_BYTES = 10_000_000


def packages_of_runs(runs: Iterable[ClaimRun], folders: Sequence[Path]) -> tuple[InstalledPackages, ...]:
    """Return the packages of the environments of runs that are known, those of most runs first.

    Args:
        runs: The runs; several claims may share one.
        folders: Folders in which campaigns keep the packages that commands had.
    """
    return tuple(_environments(runs, folders))


def _environments(runs: Iterable[ClaimRun], folders: Sequence[Path]) -> Iterator[InstalledPackages]:
    receipts = {run.receipt.id: run.receipt for run in runs if run.receipt is not None}
    used = Counter(one.environment.packages_sha256 for one in receipts.values())
    for digest, _ in used.most_common():
        if digest and (packages := _kept(digest, folders)) is not None:
            yield InstalledPackages(sha256=digest, packages=packages)


def _kept(digest: str, folders: Sequence[Path]) -> tuple[str, ...] | None:
    """Return the packages with a digest; None if no campaign has kept them."""
    for folder in folders:
        with suppress(OSError, ToolError):
            data = read_regular_file(folder / f"{digest}.txt", max_bytes=_MAX_BYTES)
            if sha256(data).hexdigest() == digest:
                return tuple(data.decode().splitlines())
    return None
