"""Files that the runs of a check left: what each printed, and the files in which numbers were looked for."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from panpan.errors import ToolError
from panpan.repro.checking.results import CheckReport, ClaimRun
from panpan.repro.claims.claim import Claim
from panpan.system.files.canonical import canonical_path, is_below

OUTPUT = "output.txt"


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
