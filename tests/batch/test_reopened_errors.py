"""Attempts that ended with an error and are to go on."""

from pathlib import Path

import pytest

from panpan.batch.coordination.reconciling import known_results, reopen_errors, standing_of
from panpan.batch.store.folder import CampaignFolder
from panpan.batch.store.records import AttemptState
from tests.batch.campaign_files import begun_campaign, result_of, task_of

TASK = task_of("table")
STATE = AttemptState(
    session_id="s", base="b", tries=2, failures=4, flags=("--yes",), ended_by="error", message="no host"
)


@pytest.fixture
def folder(tmp_path: Path) -> CampaignFolder:
    """Return a campaign with an error, a failed attempt, and an error whose files were removed."""
    results = [result_of(TASK, status, number) for number, status in enumerate(("error", "failed", "error"), 1)]
    campaign = begun_campaign(tmp_path, [TASK], results, {"attempts": 3})
    for result in results:
        attempt = campaign.attempt(TASK.id, result.attempt)
        attempt.path.mkdir(parents=True)
        attempt.write_state(STATE)
        attempt.write_result(result)
    campaign.attempt(TASK.id, 1).workspace.mkdir()
    return campaign


def test_only_errors_with_their_files_go_on(folder: CampaignFolder) -> None:
    reopen_errors(folder)

    standing = standing_of(folder, 3)
    assert [one.key for one in standing.begun] == [(TASK.id, 1)]
    assert {key: one.status for key, one in standing.results.items()} == {(TASK.id, 2): "failed", (TASK.id, 3): "error"}
    assert folder.attempt(TASK.id, 1).state() == STATE.model_copy(
        update={"failures": 0, "ended_by": None, "message": ""}
    )


def test_kill_while_errors_are_reopened_loses_no_result(
    folder: CampaignFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("panpan.batch.store.folder.AttemptFolder.forget_result", killed)
    with pytest.raises(KeyboardInterrupt):
        reopen_errors(folder)

    assert len(known_results(folder)) == len(standing_of(folder, 3).results) == 3
