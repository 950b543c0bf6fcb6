"""The kit of a reproduction: what the folder has for it."""

from collections.abc import Mapping
from pathlib import Path

from anyio import to_thread

from panpan.repro.checking.results import CheckReport, ClaimRun
from panpan.repro.claims.claim import Claim
from panpan.repro.claims.claims_file import load_claims
from panpan.repro.journey.reproduction_folder import ReproductionFolder
from panpan.repro.kit.write_kit import Reproduction, write_kit
from panpan.system.files.canonical import canonical_path


async def make_kit(check: CheckReport, folder: ReproductionFolder, address: str, environ: Mapping[str, str]) -> Path:
    """Write the kit of a folder, and return its place.

    Args:
        check: The result of the check.
        folder: The folder, with the reports.
        address: Address of the repository; a folder of the user is none.
        environ: The user's environment.

    Raises:
        ConfigError: Something private would get into the kit.
        ToolError: It cannot be written.
    """
    loaded = await to_thread.run_sync(load_claims, folder.path)
    reproduction = Reproduction(
        claims_file=loaded.path,
        claims=loaded.claims,
        source=canonical_path(folder.source),
        address=address.partition("#")[0],
        reports=[folder.path / "report.md", folder.path / "report.html"],
        outputs=_outputs(check, folder.path),
        environ=environ,
    )
    return await write_kit(check, reproduction, folder.kit)


def _outputs(check: CheckReport, folder: Path) -> Mapping[str, Mapping[str, Path]]:
    """Return what each run printed and the file with its number, by the receipt's id and by name."""
    found: dict[str, dict[str, Path]] = {}
    for judgement in check.judgements:
        for run in judgement.runs:
            if run.receipt is not None:
                found.setdefault(run.receipt.id, {}).update(_files_of(judgement.claim, run, folder))
    return found


def _files_of(claim: Claim, run: ClaimRun, folder: Path) -> Mapping[str, Path]:
    files = {"output.txt": folder / run.output} if run.output else {}
    if run.files and claim.extract is not None and claim.extract.path:
        files[claim.extract.path] = folder / run.files / claim.extract.path
    return {name: path for name, path in files.items() if path.is_file()}
