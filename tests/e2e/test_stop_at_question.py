"""`--when-asked stop`: a run stops at its first question, says what it is, and goes on with the answer."""

import json
import os
import shlex
import signal
import subprocess
from threading import Event

import pytest

from tests.e2e.conftest import Panpan, finished, wait_until
from tests.e2e.running_daemon import running_daemon
from tests.e2e.test_pipes_and_signals import marker_processes
from tests.e2e.test_subagents import by_agent, rounds_of, task
from tests.model_server import RecordedRequest, ToolCall, assert_prefixes, calls, say, serving
from tests.model_server.script import Step

STOP = ("--when-asked", "stop")
WRITE = ToolCall("Write", {"file_path": "made.txt", "content": "x\n"})
QUESTION = {
    "question": "Which seed?",
    "header": "Seed",
    "options": [{"label": "1", "description": "as in the paper"}, {"label": "2", "description": ""}],
}
ASK = ToolCall("AskUserQuestion", {"questions": [QUESTION]})
PLAN = "# Plan\n\n1. Let `parse` take a list of paths.\n2. Run the tests."


def results_of(request: RecordedRequest) -> dict[str, str]:
    """Return the results that a request carries, by the names of their calls; each call has exactly one."""
    names, results = dict[str, str](), dict[str, str]()
    for message in request.messages:
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block["type"] == "tool_use":
                names[block["id"]] = block["name"]
            elif block["type"] == "tool_result":
                name = names.pop(block["tool_use_id"])
                results[name] = json.dumps(block["content"])
    assert not names, "every call is answered"
    return results


@pytest.mark.parametrize("output_format", ["text", "json", "stream-json"])
def test_permission_question_stops_the_run_and_flags_go_on(panpan: Panpan, output_format: str) -> None:
    made = panpan.workspace / "made.txt"
    with serving([calls(WRITE), calls(WRITE), say("Written.")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "go on", *STOP, "-f", output_format)
        assert (done.code, len(server.requests), made.exists()) == (5, 1, False)
        (log,) = panpan.session_files()
        if output_format == "text":
            assert done.stdout == ""
            assert "made.txt" in done.stderr
            command = done.stderr.split("go on with: ")[1].splitlines()[0]
            args = shlex.split(command)[1:]
        else:
            asked = done.result["asked"]
            assert (asked["kind"], asked["choices"]) == ("permission", [])
            assert "made.txt" in asked["text"]
            assert (done.result["is_error"], len(done.result["permission_denials"])) == (True, 1)
            args = ["-r", done.result["session_id"], "-p", "YOUR ANSWER", *asked["allowed_with"]]
        again = panpan.run(*args)

    assert (again.code, again.stdout, made.read_text()) == (0, "Written.\n", "x\n")
    assert log in panpan.session_files()
    assert "needs the user's yes" in results_of(server.requests[1])["Write"]
    assert "YOUR ANSWER" in json.dumps(server.requests[1].messages[-1])
    assert_prefixes(server.requests)


def test_question_of_the_model_stops_the_run_with_its_choices(panpan: Panpan) -> None:
    with serving([calls(ASK), say("Seed 1 it is.")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "go on", *STOP, "--yes", "-f", "json")
        again = panpan.run("-r", done.result["session_id"], "-p", "1, please", *STOP, "--yes")

    assert done.code == 5
    assert done.result["asked"] == {
        "kind": "question",
        "text": "Which seed?\n- 1: as in the paper",
        "choices": ["1", "2"],
        "allowed_with": [],
    }
    assert "AskUserQuestion" in json.dumps(server.requests[0].body["tools"])
    assert "Nobody is there to answer now".lower() in results_of(server.requests[1])["AskUserQuestion"].lower()
    assert (again.code, again.stdout) == (0, "Seed 1 it is.\n")


def test_question_is_on_standard_error_in_text(panpan: Panpan) -> None:
    with serving([calls(ASK)]) as server:
        panpan.use(server)
        done = panpan.run("-p", "go on", *STOP, "-q")

    assert (done.code, done.stdout) == (5, "")
    assert "Which seed?\n- 1: as in the paper\nchoices: 1 | 2\ngo on with: panpan -r " in done.stderr


def test_refusing_run_has_no_tool_for_questions(panpan: Panpan) -> None:
    with serving([calls(WRITE), say("Not written.")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "go on", "--when-asked", "refuse", "-f", "json")

    assert (done.code, len(server.requests)) == (5, 2)
    assert "asked" not in done.result
    assert "AskUserQuestion" not in json.dumps(server.requests[0].body["tools"])


def test_plan_stops_the_run_until_it_is_approved(panpan: Panpan) -> None:
    leave = ToolCall("ExitPlanMode", {"plan": PLAN})
    with serving([calls(leave), calls(WRITE), say("Done as planned.")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "go on", *STOP, "--permission-mode", "plan", "-f", "json")
        asked = done.result["asked"]
        again = panpan.run("-r", done.result["session_id"], "-p", "yes, do that", *asked["allowed_with"])

    assert (done.code, asked["kind"], asked["text"]) == (5, "plan", PLAN)
    assert asked["choices"] == ["default", "acceptEdits"]
    assert (again.code, again.stdout) == (0, "Done as planned.\n")
    assert (panpan.workspace / "made.txt").read_text() == "x\n"


def test_plan_tools_are_offered_in_plan_mode_alone(panpan: Panpan) -> None:
    with serving([say("Hello.")]) as server:
        panpan.use(server)
        panpan.run("-p", "hi", *STOP)

    assert "PlanMode" not in json.dumps(server.requests[0].body["tools"])


def test_repeated_call_stops_the_run_despite_yes(panpan: Panpan) -> None:
    (panpan.workspace / "a.txt").write_text("same\n")
    read = ToolCall("Read", {"file_path": "a.txt"})
    with serving([calls(read)] * 6) as server:
        panpan.use(server)
        done = panpan.run("-p", "go on", *STOP, "--yes", "-f", "json")

    assert (done.code, len(server.requests)) == (5, 4)
    assert done.result["asked"]["kind"] == "permission"
    assert "3 times in a row" in done.result["asked"]["text"]


def test_protected_file_stops_the_run_despite_yes(panpan: Panpan) -> None:
    write = ToolCall("Write", {"file_path": ".envrc", "content": "x\n"})
    with serving([calls(write)]) as server:
        panpan.use(server)
        done = panpan.run("-p", "go on", *STOP, "--yes", "-f", "json")

    assert (done.code, done.result["asked"]["allowed_with"]) == (5, [])
    assert ".envrc" in done.result["asked"]["text"]
    assert not (panpan.workspace / ".envrc").exists()


def test_calls_behind_the_asking_one_do_not_run(panpan: Panpan) -> None:
    behind = ToolCall("Bash", {"command": "echo x > behind"})
    with serving([calls(WRITE, behind, ASK), say("Well.")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "go on", *STOP, "--allowedTools", "Bash", "-f", "json")
        panpan.run("-c", "-p", "no")

    assert (done.code, done.result["asked"]["kind"]) == (5, "permission")
    assert list(panpan.workspace.iterdir()) == []
    told = results_of(server.requests[1])
    assert "needs the user's yes" in told["Write"]
    assert "the run stops at a question" in told["Bash"]
    assert "the run stops at a question" in told["AskUserQuestion"]


@pytest.mark.parametrize("in_background", [False, True], ids=["awaited", "background"])
def test_question_of_a_subagent_stops_the_whole_run(panpan: Panpan, in_background: bool) -> None:
    task_ = task(subagent_type="general-purpose", run_in_background=in_background)
    asked = Event()

    def child(request: RecordedRequest) -> Step:
        if rounds_of(request):
            asked.set()
            return say("It went on, which it must not.")
        return calls(WRITE)

    with serving(by_agent([calls(task_), say("Waiting."), say("Never."), say("Never.")], child)) as server:
        panpan.use(server)
        done = panpan.run("-p", "go on", *STOP, "--background", "drain", "-f", "json")

    assert (done.code, done.result["asked"]["kind"], asked.is_set()) == (5, "permission", False)
    assert "asked by the subagent general-purpose: a look" in done.result["asked"]["text"]
    assert not (panpan.workspace / "made.txt").exists()
    assert len(server.requests) <= 3


def test_unfinished_call_stops_the_run_with_6(panpan: Panpan) -> None:
    command = f"touch started; sleep 96.{os.getpid()}"
    with serving([calls(ToolCall("Bash", {"command": command})), say("Looked.")]) as server:
        panpan.use(server)
        process = panpan.start("-p", "go on", "--yes", stdin=subprocess.DEVNULL)
        wait_until((panpan.workspace / "started").exists)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        wait_until(lambda: marker_processes(command) == [])
        (log,) = panpan.session_files()
        done = panpan.run("-r", log.stem, "-p", "and?", *STOP, "-f", "json")
        again = panpan.run("-r", log.stem, "-p", "and?", *STOP, "--unfinished", done.result["asked"]["choices"][1])

    assert (done.code, done.result["asked"]["kind"]) == (6, "unfinished")
    assert done.result["asked"]["choices"] == ["finished", "not-run", "unclear"]
    assert command in done.result["asked"]["text"]
    assert (again.code, again.stdout) == (0, "Looked.\n")


def test_run_by_the_daemon_stops_at_a_question_too(panpan: Panpan) -> None:
    with running_daemon() as daemon, serving([calls(WRITE)]) as server:
        panpan.use(server)
        done = finished(daemon.start(panpan, "-p", "go on", *STOP, "-f", "json"))
        assert daemon.facts["served"] == 1

    assert (done.code, done.result["asked"]["kind"]) == (5, "permission")


def test_next_message_of_a_stream_is_the_answer(panpan: Panpan) -> None:
    lines = "".join(
        json.dumps({"type": "user", "message": {"role": "user", "content": text}}) + "\n" for text in ("go on", "well?")
    )
    with serving([calls(WRITE), say("Not yet.")]) as server:
        panpan.use(server)
        done = panpan.run(*STOP, "--input-format", "stream-json", "-f", "stream-json", stdin=lines)

    results = [line for line in done.lines if line["type"] == "result"]
    assert [result.get("asked", {}).get("kind") for result in results] == ["permission", None]
    assert (done.code, results[1]["result"]) == (5, "Not yet.")
