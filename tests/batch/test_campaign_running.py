"""`panpan batch run`: progress, signals, the summary and the exit code, with attempts that a fake makes."""

import json
import os
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest

from panpan.batch.coordination.place import Place
from panpan.batch.coordination.progress import Progress, Summary
from panpan.batch.faces.overview import Looker
from panpan.batch.faces.progress_screen import ProgressScreen, short_line
from panpan.batch.faces.run_command import exit_code, run
from panpan.batch.store.folder import CampaignFolder
from panpan.batch.store.lease import Holder, Lease, LeaseHeldError
from panpan.batch.store.records import AttemptEnd, Finished, FrozenCampaign, Job, Needs, Running, Stopped, Waiting
from panpan.errors import ConfigError
from tests.batch.campaign_files import begun_campaign, result_of, task_of, write_running
from tests.batch.fake_place import Act, FakePlace, passes, write_result
from tests.batch.test_campaign_status import Screen
from tests.fakes.campaign import make_campaign

TEXT = """
attempts = 2

[[task]]
id = "first"
prompt = "go {seed}"

[axes]
seed = [1, 2]

[workspace]
source = "../project"
isolation = "copy"
"""
OPTIONS = {"on": None, "at_once": None, "model": None, "trusts": True, "retries_errors": False}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CampaignFolder:
    monkeypatch.setenv("PANPAN_HOME", str(tmp_path / "home"))
    return make_campaign(tmp_path, TEXT, is_repository=False)


def at(act: Act, seen: list[FrozenCampaign] | None = None) -> Callable[..., Any]:
    """Return what makes a place that does `act`."""

    async def place_for(folder: CampaignFolder, frozen: FrozenCampaign) -> AbstractAsyncContextManager[Place]:
        if seen is not None:
            seen.append(frozen)
        return FakePlace(act)

    return place_for


async def test_run_ends_with_a_summary_and_the_report(
    folder: CampaignFolder, capfd: pytest.CaptureFixture[str]
) -> None:
    assert await run(folder.path, "text", OPTIONS, at(passes)) == 0

    said = capfd.readouterr().out
    assert "4 of 4 attempts (100 %): 4 passed" in said
    assert "4 attempts have a result" in said
    assert f"report: {folder.path / 'report.html'}" in said
    assert all((folder.path / name).exists() for name in ("results.csv", "report.md", "report.html"))


async def test_errors_are_named_and_tried_again_on_demand(
    folder: CampaignFolder, capfd: pytest.CaptureFixture[str]
) -> None:
    async def fails(job: Job) -> AttemptEnd:
        await anyio.lowlevel.checkpoint()
        return Finished(result=write_result(job, status="error", message="no such host"))

    assert await run(folder.path, "text", OPTIONS, at(fails)) == 1
    said = capfd.readouterr().out
    assert "  t/1  no such host" in said
    assert f"4 of them an error; try again with panpan batch run {folder.path} --retry-errors" in said

    assert await run(folder.path, "text", OPTIONS, at(passes)) == 1
    assert await run(folder.path, "text", {**OPTIONS, "retries_errors": True}, at(passes)) == 0
    assert "4 of 4 attempts (100 %): 4 passed" in capfd.readouterr().out
    assert [result.status for result in folder.results()] == ["passed"] * 4


async def test_run_prints_one_json_object_where_asked(
    folder: CampaignFolder, capfd: pytest.CaptureFixture[str]
) -> None:
    await run(folder.path, "json", OPTIONS, at(passes))

    told = json.loads(capfd.readouterr().out)
    assert (told["ended_because"], told["exit_code"], told["by_status"]) == ("done", 0, {"passed": 4})


async def test_options_of_the_command_come_before_the_file(folder: CampaignFolder) -> None:
    seen: list[FrozenCampaign] = []

    await run(folder.path, "text", {**OPTIONS, "at_once": 7, "on": "local:3", "model": "a/b"}, at(passes, seen))

    assert (seen[0].campaign.where.at_once, seen[0].campaign.where.on) == (7, "local:3")
    assert {task.model for task in folder.tasks()} == {"a/b"}


async def test_run_without_trust_or_terminal_is_refused(folder: CampaignFolder) -> None:
    with pytest.raises(ConfigError, match="add --trust"):
        await run(folder.path, "text", {**OPTIONS, "trusts": False}, at(passes))


async def test_second_run_on_a_folder_is_refused(folder: CampaignFolder) -> None:
    folder.state.mkdir()
    async with Lease(folder.lease):
        with pytest.raises(LeaseHeldError, match=f"process {os.getpid()}"):
            await run(folder.path, "text", OPTIONS, at(passes))


async def test_interrupt_before_the_lease_stops_no_other_process(folder: CampaignFolder) -> None:
    other = Holder(token="t", host="elsewhere", machine="another", pid=1, started="")
    folder.lease.mkdir(parents=True)
    (folder.lease / "1").write_text(other.model_dump_json())

    async def interrupted(folder: CampaignFolder, frozen: FrozenCampaign) -> AbstractAsyncContextManager[Place]:
        await anyio.wait_all_tasks_blocked()  # signals are waited for
        os.kill(os.getpid(), signal.SIGINT)
        return FakePlace(passes)

    assert await run(folder.path, "text", OPTIONS, interrupted) == 130
    assert not folder.stop.exists()
    assert not folder.results_file.exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=str)
async def test_signal_stops_the_campaign_so_that_it_can_go_on(
    folder: CampaignFolder, number: signal.Signals, code: int, capfd: pytest.CaptureFixture[str]
) -> None:
    begun, stopped = list[Job](), 0

    async def interrupted(job: Job) -> AttemptEnd:
        nonlocal stopped
        begun.append(job)
        if len(begun) == 2:
            os.kill(os.getpid(), number)
        try:
            await anyio.sleep_forever()
        finally:
            stopped += 1

    assert await run(folder.path, "text", OPTIONS, at(interrupted)) == code
    assert stopped == 2
    said = capfd.readouterr()
    assert "stopping, so that `run` can go on" in said.err
    assert "go on with panpan batch run" in said.out
    assert await run(folder.path, "text", OPTIONS, at(passes)) == 0


async def test_second_interrupt_ends_the_campaign_at_once(
    folder: CampaignFolder, capfd: pytest.CaptureFixture[str]
) -> None:
    begun: list[Job] = []

    async def deaf_to_stops(job: Job) -> AttemptEnd:
        begun.append(job)
        if len(begun) == 2:
            os.kill(os.getpid(), signal.SIGINT)
            while not folder.stop.exists():  # noqa: ASYNC110
                await anyio.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)
        await anyio.sleep_forever()
        return Stopped(reason="never")

    try:
        assert await run(folder.path, "text", OPTIONS, at(deaf_to_stops)) == 130
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    assert "goes on with it" in capfd.readouterr().out


async def test_attempts_that_wait_end_the_run_with_their_question(
    folder: CampaignFolder, capfd: pytest.CaptureFixture[str]
) -> None:
    needs = Needs(kind="question", text="Which split?")

    async def asks(job: Job) -> AttemptEnd:
        attempt = folder.attempt(job.task_id, job.attempt)
        attempt.path.mkdir(parents=True, exist_ok=True)
        attempt.write_needs(needs)
        return Waiting(needs=needs)

    assert await run(folder.path, "text", OPTIONS, at(asks)) == 5
    assert f"answer: panpan batch answer {folder.path} first/seed=1/1" in capfd.readouterr().out


async def test_attempt_that_could_not_be_made_ends_the_run_with_1(folder: CampaignFolder) -> None:
    async def fails(job: Job) -> AttemptEnd:
        return Finished(result=write_result(job, status="error", ended_by="error"))

    assert await run(folder.path, "text", OPTIONS, at(fails)) == 1


def summary(because: Any, **counts: int) -> Summary:
    last = Running(begun_at="", host="", pid=1, seconds=0.0, attempts=4, counts=counts)
    return Summary(because, "", last)


@pytest.mark.parametrize(
    ("end", "by_signal", "code"),
    [
        (summary("done", passed=1, failed=3), None, 0),
        (summary("done", error=1), None, 1),
        (summary("done", passed=4), 130, 0),
        (summary("unfit"), None, 1),
        (summary("budget"), None, 4),
        (summary("waiting"), None, 5),
        (summary("stopped"), None, 130),
        (summary("stopped"), 143, 143),
        (None, 130, 130),
    ],
)
def test_exit_code_tells_how_the_run_ended(end: Summary | None, by_signal: int | None, code: int) -> None:
    assert exit_code(end, by_signal) == code


@pytest.mark.parametrize("is_terminal", [True, False])
def test_screen_tells_news_once_and_changes_as_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    task = task_of("table", seed=1)
    folder = begun_campaign(tmp_path / "camp", [task], [result_of(task)], {"attempts": 3})
    waiting = [
        {"task_id": task.id, "task": "table", "axes": {"seed": 1}, "attempt": 2, "kind": "question", "text": "?"}
    ]
    hosts = [{"name": "gpu-2", "slots": 0, "problem": "no folder"}]
    write_running(folder, waiting=waiting, hosts=hosts, rates={"attempts": 12.0}, seconds_left=600.0)
    out = Screen(is_terminal)
    screen, looker = ProgressScreen(Looker(folder.path), out), Looker(folder.path)

    screen.show(looker.look())
    screen.show(looker.look())
    folder.append_result(result_of(task, "failed", 3))
    screen.show(looker.look())
    screen.clear()

    said = out.getvalue()
    assert said.count("table/seed=1/2 waits for you: question: ?") == 1
    assert said.count(f"answer: panpan batch answer {folder.path} table/seed=1/2") == 1
    assert said.count("gpu-2 is out: no folder") == 1
    if is_terminal:
        assert said.count("\r\x1b[K1/3 · 1 passed · 1 waiting · 0 running · $0.50 · 12/h · 10 min 0 s left") == 1
        assert said.endswith("\r\x1b[K")
    else:
        assert "\x1b" not in said
        assert [line for line in said.splitlines() if "attempts (" in line] == [
            "1 of 3 attempts (33 %): 1 passed, 1 waiting, 1 to do",
            "2 of 3 attempts (67 %): 1 passed, 1 failed, 1 waiting",
        ]


def test_screen_tells_a_note_that_no_record_has(tmp_path: Path) -> None:
    task = task_of("table")
    folder = begun_campaign(tmp_path / "camp", [task])
    out = Screen(False)
    screen = ProgressScreen(Looker(folder.path), out)
    noted = Running(begun_at="", host="h", pid=1, seconds=1.0, attempts=1, note="the disk is full")
    for note in ("", "the disk is full", "the disk is full", ""):
        screen.tell(Progress(noted.model_copy(update={"note": note})))
    write_running(folder, note="the disk is full")  # once there is room
    screen.show(Looker(folder.path).look())

    assert out.getvalue().splitlines().count("the disk is full") == 1


def test_short_line_has_the_budget(tmp_path: Path) -> None:
    task = task_of("table")
    folder = begun_campaign(tmp_path, [task], campaign={"attempts": 2, "budget": {"usd": 40.0}})

    assert short_line(Looker(folder.path).look()) == "0/2 · 0 running · $0.00 of $40.00"
