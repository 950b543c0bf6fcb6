"""An attempt that is stopped, cancelled or killed leaves nothing behind, and goes on from where it was."""

import fcntl
import os
import signal
import subprocess
from pathlib import Path
from threading import Event

import anyio
import pytest

from panpan.batch.attempts.attempt import Worker
from panpan.batch.attempts.session_runs import GO_ON
from panpan.batch.store.records import Answer, Finished, Stopped, Waiting
from tests.batch.attempt_runs import SETTINGS, AttemptRuns, prompts_of, until
from tests.model_server import Hold, RecordedRequest, Reply, Text, ToolCall, calls, say, serving
from tests.model_server.script import Step
from tests.prepared_command import PREPARED

SECONDS = f"7{os.getpid()}.25"
"""No other process sleeps as long, also none of tests that run beside these."""
SLEEP = calls(ToolCall("Bash", {"command": f"touch begun; sleep {SECONDS}; touch ended"}))

SLEEP_SHORT = calls(ToolCall("Bash", {"command": "touch begun; sleep 0.5"}))


def is_running(words: str) -> bool:
    """True if a process has these words in its command line."""
    return words in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout


def with_pid(runs: AttemptRuns, script: str = "") -> tuple[Worker, Path]:
    """Return a worker whose panpan writes its process number into a file, and the file."""
    file = runs.root / "pid"
    shell = ["sh", "-c", f'echo $$ >"$0"; {script} exec "$@"', str(file)]
    return runs.worker(panpan=[*shell, *runs.worker().panpan]), file


@pytest.mark.parametrize("word", ["stop", "cancel"])
async def test_stop_and_cancel_end_panpan_and_its_commands(tmp_path: Path, word: str) -> None:
    with serving([SLEEP, say("All done.")]) as server:
        runs = AttemptRuns(tmp_path, server, PREPARED)
        async with runs.running("begun") as ends:
            (runs.campaign.stop if word == "stop" else runs.attempt.cancel).touch()
        assert not await anyio.to_thread.run_sync(is_running, SECONDS)
        assert not (runs.workspace / "ended").exists()
        (end,) = ends
        if word == "cancel":
            assert isinstance(end, Finished)
            assert (end.result.status, end.result.tries) == ("cancelled", 1)
            assert end.result.changes is not None
            assert end.result.changes.files == ("begun",)
            return
        assert end == Stopped(reason="the campaign was stopped")
        assert isinstance(await runs.run(), Stopped), "as long as the file is there"
        runs.campaign.stop.unlink()
        result = await runs.result()

    assert (result.status, result.tries) == ("done", 2)
    assert prompts_of(server.requests[-1]) == [runs.task.prompt, GO_ON]


async def test_cancelled_call_ends_panpan_in_good_order(tmp_path: Path) -> None:
    with serving([SLEEP, say("All done.")]) as server:
        runs = AttemptRuns(tmp_path, server, PREPARED)
        async with anyio.create_task_group() as running:
            running.start_soon(runs.run)
            await until(lambda: (runs.workspace / "begun").exists())
            running.cancel_scope.cancel()
        assert not await anyio.to_thread.run_sync(is_running, SECONDS)
        state = runs.attempt.state()
        assert state is not None
        assert (state.tries, state.ended_by, state.seconds > 0) == (1, None, True)
        result = await runs.result()

    assert (result.status, result.tries) == ("done", 2)
    assert "interrupted by the user before it finished" in str(server.requests[-1].messages)


async def test_panpan_that_ignores_the_stop_is_killed(tmp_path: Path) -> None:
    with serving([]) as server:
        runs = AttemptRuns(tmp_path, server, None)
        deaf = ["sh", "-c", f"trap '' TERM; touch deaf; while :; do sleep {SECONDS}; done"]
        async with runs.running("deaf", worker=runs.worker(panpan=deaf, stop_s=0.5)) as ends:
            with anyio.fail_after(15):
                runs.campaign.stop.touch()
                await until(lambda: bool(ends))

    assert isinstance(ends[0], Stopped)
    assert not await anyio.to_thread.run_sync(is_running, SECONDS)


@pytest.mark.parametrize(("number", "stops"), [(signal.SIGKILL, False), (signal.SIGTERM, True)])
async def test_killed_panpan_goes_on_and_an_asked_one_stops(tmp_path: Path, number: int, *, stops: bool) -> None:
    pid = tmp_path / "pid"
    seen = []

    def script(request: RecordedRequest) -> Step:
        seen.append(request)
        if len(seen) == 1:
            os.kill(int(pid.read_text()), number)
            return Reply((Text("Never read"),), faults=(Hold(0, over),))
        return say("All done.")

    over = Event()
    with serving(script) as server:
        runs = AttemptRuns(tmp_path, server, PREPARED)
        worker, _ = with_pid(runs)
        end = await runs.run(worker=worker)
        over.set()

    if stops:
        assert isinstance(end, Stopped)
        assert "signal" in end.reason
        return
    assert isinstance(end, Finished)
    assert (end.result.status, end.result.tries) == ("done", 2)
    assert prompts_of(seen[-1]) == [runs.task.prompt, GO_ON]


async def test_unfinished_command_waits_if_the_campaign_asks(tmp_path: Path) -> None:
    with serving([SLEEP, say("All done.")]) as server:
        runs = AttemptRuns(tmp_path, server, PREPARED, f'{SETTINGS}unfinished = "ask"\n')
        worker, pid = with_pid(runs)
        async with runs.running("begun", worker=worker) as ends:
            os.kill(int(pid.read_text()), signal.SIGKILL)
        (end,) = ends
        assert isinstance(end, Waiting)
        assert (end.needs.kind, end.needs.choices) == ("unfinished", ("finished", "not-run", "unclear"))
        assert SECONDS in end.needs.text
        assert len(server.requests) == 1
        runs.attempt.write_answer(Answer(unfinished="not-run"))
        result = await runs.result()

    assert (result.status, result.tries) == ("done", 3)
    assert "The user says that it did not do its work" in str(server.requests[1].messages)
    assert prompts_of(server.requests[1]) == [runs.task.prompt, GO_ON]


async def test_full_disk_stops_the_attempt_for_now(tmp_path: Path) -> None:
    with serving([]) as server:
        runs = AttemptRuns(tmp_path, server, PREPARED)
        (runs.campaign.state / runs.task.id).write_text("no folder can be made here\n")
        end = await runs.run()

    assert isinstance(end, Stopped)
    assert "cannot be made" in end.reason


async def test_panpan_that_is_always_killed_is_an_error(tmp_path: Path) -> None:
    with serving([]) as server:
        runs = AttemptRuns(tmp_path, server, None)
        end = await runs.run(worker=runs.worker(panpan=["sh", "-c", "kill -9 $$"]))

    assert isinstance(end, Finished)
    assert (end.result.status, end.result.tries) == ("error", 3)
    assert end.result.message == "panpan was killed by signal 9 (after 3 failed runs)"


async def test_attempt_waits_until_its_session_is_free(tmp_path: Path) -> None:
    with serving([SLEEP, say("All done.")]) as server:
        runs = AttemptRuns(tmp_path, server, PREPARED)
        async with anyio.create_task_group() as running:
            running.start_soon(runs.run)
            await until(lambda: (runs.workspace / "begun").exists())
            running.cancel_scope.cancel()
        (log,) = (tmp_path / "home").glob("projects/*/sessions/*.jsonl")
        with log.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            waits = []

            async def sleep(seconds: float) -> None:
                waits.append(len(server.requests))
                if len(waits) > 5:
                    fcntl.flock(file, fcntl.LOCK_UN)
                await anyio.sleep(0.02)

            end = await runs.run(worker=runs.worker(sleep=sleep))

    assert isinstance(end, Finished)
    assert (end.result.status, end.result.tries) == ("done", 2)
    assert waits[:5] == [1] * 5


async def test_attempt_that_another_worker_took_is_killed_at_once(tmp_path: Path) -> None:
    deaf = ["sh", "-c", f"trap '' TERM; touch deaf; while :; do sleep {SECONDS}; done"]
    with serving([]) as server:
        runs = AttemptRuns(tmp_path, server, None)
        async with runs.running("deaf", worker=runs.worker(panpan=deaf, stop_s=1000.0)) as ends:
            before = runs.attempt.state()
            (runs.attempt.lease / "99").write_text("another worker's")

    assert isinstance(ends[0], Stopped)
    assert "taken over" in ends[0].reason
    assert runs.attempt.state() == before, "it is the other one's now"
    assert not await anyio.to_thread.run_sync(is_running, SECONDS)


async def test_second_worker_waits_and_gets_the_same_result(tmp_path: Path) -> None:
    with serving([SLEEP_SHORT, say("All done.")]) as server:
        runs = AttemptRuns(tmp_path, server, PREPARED)
        async with runs.running("begun", times=2) as ends:
            pass

    first, second = ends
    assert isinstance(first, Finished)
    assert first == second
    assert (first.result.status, first.result.tries) == ("done", 1)


async def test_torn_line_of_events_stays_on_its_own(tmp_path: Path) -> None:
    with serving([say("All done.")]) as server:
        runs = AttemptRuns(tmp_path, server, PREPARED)
        runs.attempt.path.mkdir(parents=True)
        runs.attempt.events.write_text('{"type":"assis')
        await runs.result()

    first, second, *_ = runs.attempt.events.read_text().splitlines()
    assert first == '{"type":"assis'
    assert '"subtype":"init"' in second
