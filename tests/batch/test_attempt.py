"""An attempt runs panpan to the end of its session, verifies what it left, and has one result."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from panpan.batch.attempts.session_runs import GO_ON
from panpan.batch.coordination.reconciling import reopen_errors
from panpan.batch.store.records import Finished, Limits, Result, Unfit
from panpan.system.sandbox.choice import find_sandbox
from tests.batch.attempt_runs import SETTINGS, AttemptRuns, lines_of, prompts_of
from tests.capabilities.packages.conftest import UV
from tests.fakes.campaign import task_of
from tests.fakes.sandboxes import none_works
from tests.model_server import HttpError, ToolCall, calls, say, serving
from tests.prepared_command import PREPARED

WRITE = calls(ToolCall("Bash", {"command": "echo $PANPAN_AXIS_SEED $CUDA_VISIBLE_DEVICES $PORT >answer.txt"}))
ONE_TRY = SETTINGS.replace('"off"]', '"off", "--set", "retry.max_tries=1"]')


def verified(command: str, **fields: Any) -> Mapping[str, Any]:
    return {"task": task_of(verify={"command": command}, **fields)}


async def test_passing_attempt_has_verdict_changes_and_spending(tmp_path: Path) -> None:
    task = verified("grep -q '^7 3 [0-9]' answer.txt && echo good", axes={"seed": 7}, files=["answer.txt"])
    with serving([WRITE, say("All done.")]) as server:
        runs = AttemptRuns(tmp_path, server, PREPARED, f"{SETTINGS}gpu = 1\nports = 1\n", **task)
        result = await runs.result(gpus=["3"], job_gpus=1)

    assert (result.status, result.ended_by, result.message, result.tries) == ("passed", "answer", "All done.", 1)
    assert result.verdict is not None
    assert (result.verdict.exit_code, result.verdict.output) == (0, "good\n")
    assert result.changes is not None
    assert (result.changes.files, result.changes.outside) == (("answer.txt",), ())
    assert result.spent.usd
    assert result.spent.tokens == 30
    assert result.spent.gpu_seconds == result.spent.seconds > 0
    assert (result.host, result.axes) == ("here", {"seed": 7})
    assert result == runs.attempt.result()
    assert [receipt["name"] for receipt in lines_of(runs.attempt.receipts)] == ["verify"]
    events = lines_of(runs.attempt.events)
    assert (events[0]["subtype"], events[-1]["type"]) == ("init", "result")
    assert {event["session_id"] for event in events} == {result.session_id}


@pytest.mark.parametrize(("verify", "status"), [({"command": "exit 1"}, "failed"), (None, "done")])
async def test_status_is_that_of_the_verify_command(tmp_path: Path, verify: Any, status: str) -> None:
    with serving([say("All done.")]) as server:
        result = await AttemptRuns(tmp_path, server, PREPARED, task=task_of(verify=verify)).result()

    assert result.status == status


@pytest.mark.parametrize(
    ("flags", "reason", "is_of_machine"),
    [
        ('"--yess"', "no such option '--yess'", False),
        ('"--model", "no-such-model"', "'no-such-model'", False),
        ('"--provider", "openai", "--model", "any"', "OPENAI_API_KEY", True),
    ],
)
async def test_attempt_that_cannot_begin_has_no_result(
    tmp_path: Path, flags: str, reason: str, is_of_machine: bool
) -> None:
    with serving([say("All done.")]) as server:
        wrong = AttemptRuns(tmp_path, server, PREPARED, SETTINGS.replace('"off"]', f'"off", {flags}]'))
        end = await wrong.run()
        assert isinstance(end, Unfit)
        assert reason in end.reason
        assert end.is_of_machine == is_of_machine
        assert wrong.attempt.result() is None

        campaign = wrong.frozen.campaign
        attempt = campaign.attempt.model_copy(update={"flags": ("--yes", "--sandbox", "off")})
        right = campaign.model_copy(update={"attempt": attempt})
        wrong.campaign.write_frozen(wrong.frozen.model_copy(update={"campaign": right}))
        result = await wrong.result()

    assert (result.status, result.message, len(server.requests)) == ("done", "All done.", 1)


async def test_files_are_removed_after_the_result_on_demand(tmp_path: Path) -> None:
    with serving([WRITE, say("All done.")]) as server:
        campaign = f'{SETTINGS}[workspace]\nsource = "../project"\nkeep = false\n'
        runs = AttemptRuns(tmp_path, server, PREPARED, campaign)
        result = await runs.result()

    assert result.changes is not None
    assert result.changes.files == ("answer.txt",)
    assert "answer.txt" in runs.attempt.patch.read_text()
    assert not runs.attempt.workspace.exists()


async def test_existing_result_is_returned_at_once(tmp_path: Path) -> None:
    with serving([]) as server:
        runs = AttemptRuns(tmp_path, server, PREPARED)
        runs.attempt.path.mkdir(parents=True)
        made = Result(task_id=runs.task.id, task="first", attempt=1, status="done", ended_by="answer")
        runs.attempt.write_result(made)
        assert await runs.run() == Finished(result=made)

    assert server.requests == []


async def test_machine_with_another_folder_is_unfit(tmp_path: Path) -> None:
    with serving([]) as server:
        runs = AttemptRuns(tmp_path, server, PREPARED)
        other = await runs.run(campaign_id="another")
        missing = await runs.run(folder=str(tmp_path / "none"))

    assert isinstance(other, Unfit)
    assert "this machine sees another folder" in other.reason
    assert isinstance(missing, Unfit)
    assert "begin it with" in missing.reason


async def test_machine_without_a_sandbox_asks_no_model(tmp_path: Path) -> None:
    with serving([]) as server:
        runs = AttemptRuns(tmp_path, server, PREPARED, '[attempt]\nflags = ["--yes"]\n', **verified("true"))
        end = await runs.run(worker=runs.worker(find=none_works))

    assert isinstance(end, Unfit)
    assert "no sandbox works here" in end.reason
    assert server.requests == []


BIND = 'python3 -c \'import os, socket; socket.socket().bind(("127.0.0.1", int(os.environ["PORT"])))\''


async def test_verify_that_a_kill_cut_off_runs_without_the_model(tmp_path: Path) -> None:
    with serving([say("All done.")]) as server:
        runs = AttemptRuns(tmp_path, server, PREPARED, f"{SETTINGS}ports = 1\n", **verified(BIND))
        first = await runs.result()
        (runs.attempt.path / "result.json").unlink()
        second = await runs.result()

    assert (first.status, second.status, second.tries) == ("passed", "passed", 1)
    assert (second.message, second.spent) == (first.message, first.spent)
    assert [receipt["name"] for receipt in lines_of(runs.attempt.receipts)] == ["verify", "verify"]


@pytest.mark.parametrize(
    ("ended_by", "campaign", "limits"),
    [("turns", f"{SETTINGS}max_turns = 1\n", Limits()), ("budget", SETTINGS, Limits(tokens=2_000))],
)
async def test_attempt_that_ends_at_a_limit_is_verified(
    tmp_path: Path, ended_by: str, campaign: str, limits: Limits
) -> None:
    with serving(lambda _: WRITE) as server:
        runs = AttemptRuns(tmp_path, server, PREPARED, campaign, **verified("true"))
        result = await runs.result(limits=limits)

    assert (result.status, result.ended_by) == ("passed", ended_by)
    assert result.message


async def test_error_that_may_pass_is_followed_by_another_run(tmp_path: Path) -> None:
    with serving([HttpError(529), HttpError(500), say("All done.")]) as server:
        runs = AttemptRuns(tmp_path, server, PREPARED, ONE_TRY)
        result = await runs.result()

    assert (result.status, result.tries, len(server.requests)) == ("done", 3, 3)
    assert runs.pauses == [5.0, 20.0]
    assert prompts_of(server.requests[0]) == [runs.task.prompt]
    assert prompts_of(server.requests[2]) == [runs.task.prompt, GO_ON, GO_ON]


async def test_error_that_may_pass_is_final_after_the_retries(tmp_path: Path) -> None:
    with serving(lambda _: HttpError(529)) as server:
        result = await AttemptRuns(tmp_path, server, PREPARED, ONE_TRY, **verified("true")).result()

    assert (result.status, result.ended_by, result.tries) == ("error", "error", 3)
    assert "after 3 failed runs" in result.message
    assert result.verdict is None


async def test_refused_key_is_an_error_at_once(tmp_path: Path) -> None:
    with serving([HttpError(401)]) as server:
        result = await AttemptRuns(tmp_path, server, PREPARED).result()

    assert (result.status, result.tries) == ("error", 1)
    assert "key" in result.message


async def test_reopened_error_goes_on_in_its_session(tmp_path: Path) -> None:
    with serving([HttpError(401), say("All done.")]) as server:
        runs = AttemptRuns(tmp_path, server, PREPARED)
        error = await runs.result()
        assert error.status == "error"
        reopen_errors(runs.campaign)
        result = await runs.result()

    assert (result.status, result.message, result.tries) == ("done", "All done.", 2)
    assert result.session_id == error.session_id


async def test_setup_runs_once_before_the_model(tmp_path: Path) -> None:
    campaign = f'{SETTINGS}[workspace]\nsource = "../project"\nsetup = "echo set up >>setup.txt"\n'
    seen = calls(ToolCall("Bash", {"command": "cat setup.txt"}))
    with serving([HttpError(529), seen, say("All done.")]) as server:
        runs = AttemptRuns(
            tmp_path, server, PREPARED, campaign.replace('"off"]', '"off", "--set", "retry.max_tries=1"]')
        )
        result = await runs.result()

    assert (result.status, result.tries) == ("done", 2)
    assert [receipt["name"] for receipt in lines_of(runs.attempt.receipts)] == ["setup"]
    assert (runs.workspace / "setup.txt").read_text() == "set up\n"


async def test_attempt_whose_setup_fails_has_no_result(tmp_path: Path) -> None:
    campaign = f'{SETTINGS}[workspace]\nsource = "../project"\nsetup = "echo no compiler; exit 4"\n'
    with serving([]) as server:
        runs = AttemptRuns(tmp_path, server, PREPARED, campaign)
        end = await runs.run()

    assert end == Unfit(reason="setup failed (exit code 4): no compiler")
    assert runs.attempt.result() is None


async def test_model_that_removes_its_workspace_gets_a_result(tmp_path: Path) -> None:
    remove = calls(ToolCall("Bash", {"command": "python3 -c 'import os, shutil; shutil.rmtree(os.getcwd())'"}))
    with serving([remove, say("Gone.")]) as server:
        runs = AttemptRuns(tmp_path, server, PREPARED, **verified("true"))
        result = await runs.result()

    assert result.status == "error"
    assert "verify could not run" in result.message


async def test_program_of_the_workspace_named_panpan_is_not_run(tmp_path: Path) -> None:
    with serving([say("All done.")]) as server:
        runs = AttemptRuns(tmp_path, server, None)
        (Path(runs.frozen.source) / "panpan").mkdir()
        made = Path(runs.frozen.source) / "panpan" / "__init__.py"
        made.write_text("raise SystemExit(99)\n")
        runs.commit()
        result = await runs.result()

    assert (result.status, (runs.workspace / "panpan" / "__init__.py").exists()) == ("done", True)


SHOW = """
python -c 'import sys; print(sys.prefix)'
touch $VIRTUAL_ENV/installed && echo written
python -c 'import os; open(os.path.join("..", "attempt.json"), "a")' || echo kept
"""


async def test_model_uses_the_environment_of_its_attempt(tmp_path: Path) -> None:
    choice = await find_sandbox()
    if choice.sandbox is None:
        pytest.skip("; ".join(choice.passed_over))
    campaign = '[attempt]\nflags = ["--yes"]\n[workspace]\nsource = "../project"\nenvironment = "uv"\n'
    show = calls(ToolCall("Bash", {"command": SHOW}))
    with serving([show, say("All done.")]) as server:
        runs = AttemptRuns(
            tmp_path, server, PREPARED, campaign, **verified("python -c 'import sys; print(sys.prefix)'")
        )
        runs.environ["PATH"] = f"{UV.parent}{os.pathsep}{runs.environ['PATH']}"
        result = await runs.result()

    assert result.verdict is not None
    assert result.verdict.output == f"{runs.attempt.venv}\n"
    assert (runs.attempt.venv / "installed").exists()
    seen = str(server.requests[-1].messages[-1])
    assert f"{runs.attempt.venv}\\nwritten" in seen
    assert "kept" in seen
