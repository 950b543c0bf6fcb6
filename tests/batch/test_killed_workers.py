"""A worker that is killed with -9 leaves nothing running, and its attempt has one result and one effect."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest

from panpan.batch.store.records import Finished
from tests.batch.attempt_runs import AttemptRuns
from tests.batch.test_stopped_attempts import is_running, until
from tests.fakes.campaign import task_of
from tests.model_server import RecordedRequest, ToolCall, calls, say, serving
from tests.model_server.script import Step
from tests.prepared_command import PREPARED

ROOT = Path(__file__).parents[2]
DO = calls(ToolCall("Bash", {"command": "echo counted >>effects.txt; sleep 0.7; echo did it"}))
LOOK = calls(ToolCall("Bash", {"command": "cat effects.txt; echo looked"}))
VERIFY = {"command": "touch verifying; sleep 0.5; test -s effects.txt"}
MOMENTS: dict[str, Callable[[AttemptRuns], bool]] = {
    "before panpan starts": lambda runs: (state := runs.attempt.state()) is not None and state.tries == 1,
    "at the first request": lambda runs: bool(runs.server.requests),
    "in the command": lambda runs: (runs.workspace / "effects.txt").exists(),
    "in the verify command": lambda runs: (runs.workspace / "verifying").exists(),
}


def careful(request: RecordedRequest) -> Step:
    """Be a model that looks before it repeats what may have been done."""
    results = list(results_in(request))
    if not results:
        return DO
    text, is_error = results[-1]
    if is_error:
        return LOOK
    if "looked" in text and "counted" not in text:
        return DO
    return say("All done.")


def results_in(request: RecordedRequest) -> Iterator[tuple[str, bool]]:
    for message in request.messages:
        for block in message["content"]:
            if block["type"] == "tool_result":
                yield str(block["content"]), bool(block.get("is_error"))


@pytest.mark.parametrize("moment", MOMENTS)
async def test_killed_worker_leaves_one_result_and_one_effect(tmp_path: Path, moment: str) -> None:
    with serving(careful) as server:
        runs = AttemptRuns(tmp_path, server, PREPARED, task=task_of(verify=VERIFY))
        runs.attempt.path.mkdir(parents=True)
        process = await anyio.to_thread.run_sync(start_worker, runs)
        try:
            await until(lambda: MOMENTS[moment](runs))
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        killed = runs.attempt.state()
        assert killed is not None
        await until(lambda: not is_running(killed.session_id))
        end = await runs.run()

    assert isinstance(end, Finished)
    result = end.result
    assert (result.status, result.ended_by, result.session_id) == ("passed", "answer", killed.session_id)
    assert (runs.workspace / "effects.txt").read_text() == "counted\n"
    assert [why for why in server.refusals if "not valid JSON" not in why] == []
    assert result.tries == (1 if moment == "in the verify command" else 2)
    assert result.spent.tokens == 15 * len(server.requests) or moment == "at the first request"
    assert result.spent.seconds > 0


def start_worker(runs: AttemptRuns) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.batch.attempt_worker", runs.job().model_dump_json()],
        cwd=ROOT,
        env=runs.environ,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
