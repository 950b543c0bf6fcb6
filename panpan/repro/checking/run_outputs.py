"""Files that the runs of a check left: their output, the files with numbers, and the packages that they had."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from panpan.errors import ToolError
from panpan.repro.checking.results import CheckReport, ClaimRun, InstalledPackages
from panpan.repro.claims.claim import Claim
from panpan.system.files.canonical import canonical_path, is_below
from panpan.system.files.read_file import read_regular_file

OUTPUT = "output.txt"
_MAX_BYTES = 10_000_000


def outputs_of(report: CheckReport, results: Path) -> Mapping[str, Mapping[str, Path]]:
    """Return files of runs by the receipt's id and by name: `output.txt`, and paths relative to the folder of the run.

    Only regular files in the folders of runs are among them.

    Args:
        report: The check.
        results: Folder of the results; canonical.
    """
    found: dict[str, dict[str, Path]] = {}
    for judgement in report.judgements:
        for run in judgement.runs:
            if run.receipt is not None:
                found.setdefault(run.receipt.id, {}).update(_files(judgement.claim, run, results))
    return found


def _files(claim: Claim, run: ClaimRun, results: Path) -> Iterator[tuple[str, Path]]:
    if run.output and (path := _regular(results / run.output, results)):
        yield OUTPUT, path
    name = claim.extract.path if claim.extract is not None else ""
    folder = results / run.files  # of a check.json that may have come with a repository
    if run.files and name and is_below(canonical_path(folder), results) and (path := _regular(folder / name, folder)):
        yield name, path


def _regular(path: Path, folder: Path) -> Path | None:
    try:
        canonical = canonical_path(path)
    except ToolError:
        return None
    return canonical if canonical.is_file() and is_below(canonical, folder) else None


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
