"""Files of the repository that changed while a model prepared a reproduction."""

from pathlib import Path

import pytest

from panpan.receipts.receipt import FileDigest
from panpan.repro.checking.results import CheckReport, ClaimRun, Judgement
from panpan.repro.claims.claim import Claim, Claims
from panpan.repro.claims.claims_file import claims_text
from panpan.repro.journey.repository_files import note_files_before, with_changes
from panpan.repro.journey.reproduction_folder import JourneyState, ReproductionFolder
from tests.fakes.campaign import git
from tests.repro.judged_claims import receipt_of
from tests.repro.toy_papers import toy_repository

CLAIM = Claim.model_validate(
    {"id": "votes", "value": "85.0", "command": "python3 votes.py", "extract": {"json": "results/metrics.json"}}
)


@pytest.fixture
def folder(tmp_path: Path) -> ReproductionFolder:
    made = ReproductionFolder(tmp_path / "message-votes-reproduction")
    made.path.mkdir()
    made.source.symlink_to(toy_repository("message-votes", tmp_path))
    made.write_state(JourneyState())
    made.claims_file.write_text(claims_text(Claims(claim=(CLAIM,))))
    return made


def check_with(folder: ReproductionFolder, *inputs: str, inputs_are: str = "opened") -> CheckReport:
    """Return a check with one run that opened some files."""
    receipt = receipt_of(0).model_copy(
        update={"inputs": tuple(FileDigest(path=path) for path in inputs), "inputs_are": inputs_are}
    )
    run = ClaimRun(number="85.0", receipt=receipt, output="campaign/output.txt", files="campaign/files")
    head = git(folder.source, "rev-parse", "HEAD").strip()
    judgement = Judgement(claim=CLAIM, verdict="reproduced", reason="", measured=(85.0,), runs=(run,))
    return CheckReport(title="Votes", commit=head, judgements=(judgement,))


async def test_changes_are_named_if_a_run_opened_them(folder: ReproductionFolder) -> None:
    await note_files_before(folder)
    (folder.source / "votes.py").write_text("print(1)\n")
    (folder.source / "notes.txt").write_text("nobody reads this\n")
    await note_files_before(folder)  # as after a kill

    found = await with_changes(folder, check_with(folder, "votes.py", "data/messages.csv"))

    assert found.written_here == ("votes.py",)


async def test_all_changes_are_named_if_reads_are_not_known(folder: ReproductionFolder) -> None:
    await note_files_before(folder)
    (folder.source / "votes.py").write_text("print(1)\n")
    (folder.source / "notes.txt").write_text("perhaps\n")
    (folder.source / "data" / "messages.csv").unlink()

    found = await with_changes(folder, check_with(folder, inputs_are="unknown"))

    assert found.written_here == ("notes.txt", "votes.py", "data/messages.csv")


async def test_no_file_is_called_changed_without_a_model(folder: ReproductionFolder) -> None:
    (folder.source / "votes.py").write_text("print(1)\n")

    assert (await with_changes(folder, check_with(folder, "votes.py"))).written_here == ()
