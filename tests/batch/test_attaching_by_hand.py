"""The session of an attempt on a terminal: one writer, the right home, and the campaign's files as they were."""

import os
from pathlib import Path

import anyio
import pytest

from panpan.batch.attempts.protection import protecting_flags
from panpan.batch.definition.begun_here import note_begun
from panpan.batch.faces.attaching import open_by_hand
from panpan.batch.store.folder import AttemptFolder, CampaignFolder
from panpan.batch.store.lease import Lease, LeaseHeldError, holder_of
from panpan.batch.store.records import AttemptState, Needs
from panpan.errors import ConfigError
from tests.batch.campaign_files import begun_campaign, result_of, task_of

TASK = task_of("table", seed=1).model_copy(update={"model": "a/b"})
STATE = AttemptState(session_id="0b54a4d3")
WITNESS = ("/bin/sh", "-c", 'printf "%s\\n" "$PANPAN_HOME" "$@" > ../witness; exit 7', "panpan")
"""Stands for panpan: writes down its home and its arguments."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CampaignFolder:
    monkeypatch.setenv("PANPAN_HOME", str(tmp_path / "users-home"))
    folder = begun_campaign(tmp_path / "camp", [TASK])
    note_begun(folder, folder.frozen().id, tmp_path / "users-home")
    return folder


@pytest.fixture
def attempt(folder: CampaignFolder) -> AttemptFolder:
    attempt = folder.attempt(TASK.id, 1)
    attempt.workspace.mkdir(parents=True)
    attempt.write_state(STATE)
    return attempt


async def test_session_opens_in_its_workspace_and_home(
    folder: CampaignFolder, attempt: AttemptFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    attempt.write_needs(Needs(kind="question", text="?"))
    monkeypatch.chdir(attempt.workspace)

    assert await open_by_hand(folder, TASK, attempt, STATE, WITNESS) == 7

    told = (attempt.path / "witness").read_text().splitlines()
    home = folder.frozen().home
    protected = protecting_flags(folder.path)
    assert told == [home, "-r", "0b54a4d3", "--cwd", str(attempt.workspace), *protected, "--model", "a/b"]
    assert f"panpan batch answer {folder.path} {TASK.id}/1" in capsys.readouterr().out
    assert await holder_of(attempt.lease) is None


async def test_worker_waits_while_the_session_is_open(folder: CampaignFolder, attempt: AttemptFolder) -> None:
    attempt.write_result(result_of(TASK))
    gate = attempt.path / "gate"
    os.mkfifo(gate)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(open_by_hand, folder, TASK, attempt, STATE, ("/bin/sh", "-c", f'read line < "{gate}"'))
        while (holder := await holder_of(attempt.lease)) is None:  # noqa: ASYNC110
            await anyio.sleep(0.01)
        assert holder.pid == os.getpid()
        await anyio.to_thread.run_sync(gate.write_text, "end\n")


async def test_attempt_of_a_running_campaign_is_not_opened(folder: CampaignFolder, attempt: AttemptFolder) -> None:
    async with Lease(folder.lease):
        with pytest.raises(ConfigError, match="the campaign runs and may begin table/seed=1/1 now"):
            await open_by_hand(folder, TASK, attempt, STATE, WITNESS)


async def test_attempt_that_a_worker_holds_is_not_opened(folder: CampaignFolder, attempt: AttemptFolder) -> None:
    async with Lease(attempt.lease):
        with pytest.raises(LeaseHeldError):
            await open_by_hand(folder, TASK, attempt, STATE, WITNESS)


async def test_attempt_without_files_is_not_opened(folder: CampaignFolder, attempt: AttemptFolder) -> None:
    attempt.workspace.rmdir()

    with pytest.raises(ConfigError, match="the files of table/seed=1/1 are gone"):
        await open_by_hand(folder, TASK, attempt, STATE, WITNESS)
