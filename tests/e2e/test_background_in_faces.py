"""Background tasks in faces: programs learn of them, and running ones end as the user wanted."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.e2e.conftest import COMMAND, Done, Panpan, finished, wait_until
from tests.model_server import ModelServer, Reply, call, say, serving
from tests.terminal_emulator import Terminal

FREE = ("--permission-mode", "bypassPermissions")
HELD = "until [ -e go ]; do sleep 0.02; done"


def background(command: str) -> Reply:
    return call("Bash", {"command": command, "run_in_background": True, "description": "Build"})


def subtypes(lines: list[dict[str, Any]]) -> list[str]:
    return [line.get("subtype", line["type"]) for line in lines if line.get("subtype") != "system_reminder"]


def users_words(server: ModelServer) -> str:
    """Everything that the newest request holds, as text."""
    return json.dumps(server.requests[-1].body["messages"])


def drained(panpan: Panpan, server: ModelServer, output_format: str) -> Done:
    """Run to the end, with a task that ends once the model has said that it runs."""
    wishes = ("-f", output_format, "--background", "drain", *FREE)
    process = panpan.start("-p", "build it", *wishes, stdin=subprocess.DEVNULL)
    wait_until(lambda: len(server.requests) == 2 and server.requests[1].finished_at is not None)
    (panpan.workspace / "go").touch()
    return finished(process)


def test_drain_waits_and_lets_the_model_answer_before_the_result(panpan: Panpan) -> None:
    with serving([background(f"{HELD}; echo built"), say("It runs."), say("It is done.")]) as server:
        panpan.use(server)
        done = drained(panpan, server, "stream-json")

    kinds = subtypes(done.lines)
    assert kinds.index("task_started") < kinds.index("task_notification")
    assert (kinds.count("success"), done.result["result"], done.result["num_turns"]) == (1, "It is done.", 3)
    started, ended = (line for line in done.lines if line.get("subtype", "").startswith("task_"))
    assert (started["task_id"], started["tool_use_id"]) == (ended["task_id"], ended["tool_use_id"])
    assert (started["description"], ended["status"], ended["exit_code"]) == ("Build", "completed", 0)
    assert Path(ended["output_file"]).read_text() == "built\n"
    assert "exit code 0" in users_words(server)
    assert done.code == 0


def test_json_with_drain_is_one_object(panpan: Panpan) -> None:
    with serving([background(f"{HELD}; exit 3"), say("It runs."), say("It failed.")]) as server:
        panpan.use(server)
        done = drained(panpan, server, "json")

    (result,) = done.lines
    assert (result["result"], result["num_turns"], done.code) == ("It failed.", 3, 0)


def test_running_task_is_stopped_and_named_at_the_end(panpan: Panpan) -> None:
    with serving([background("sleep 60"), say("It runs.")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "build it", "-f", "stream-json", *FREE)

    (ended,) = [line for line in done.lines if line.get("subtype") == "task_notification"]
    assert ended["status"] == "stopped"
    assert done.result["result"] == "It runs."  # which is the last line all the same
    assert "stopped in the background: Build" in done.stderr


def test_task_left_running_is_named_and_found_by_a_resume(panpan: Panpan) -> None:
    marker = panpan.workspace / "ended"
    command = f"trap 'touch {marker}; exit 0' TERM; for n in $(seq 2000); do sleep 0.05; done"
    with serving([background(command), say("It runs."), say("Still there.")]) as server:
        panpan.use(server)
        first = panpan.run("-p", "build it", "-f", "json", "--background", "exit", *FREE)
        was_ended = marker.exists()
        second = panpan.run("-p", "and now?", "-r", first.result["session_id"], "--background", "stop", *FREE)
        wait_until(marker.exists)

    assert "left in the background" in first.stderr
    assert (first.code, second.code, was_ended) == (0, 0, False)
    assert "still runs" in users_words(server)
    assert "stopped in the background" in second.stderr


def test_stream_json_reports_a_task_while_its_input_is_open(panpan: Panpan) -> None:
    said = {"type": "user", "message": {"role": "user", "content": "build it"}}
    with serving([background("until [ -e go ]; do sleep 0.02; done"), say("It runs."), say("It is done.")]) as server:
        panpan.use(server)
        process = panpan.start("--input-format", "stream-json", "-f", "stream-json", *FREE)
        assert process.stdin is not None
        process.stdin.write(json.dumps(said).encode() + b"\n")
        process.stdin.flush()
        wait_until(lambda: len(server.requests) == 2)
        (panpan.workspace / "go").touch()
        wait_until(lambda: len(server.requests) == 3)  # its input is open still
        done = finished(process)

    assert [line["result"] for line in done.lines if line["type"] == "result"] == ["It runs.", "It is done."]


def test_background_option_is_refused_on_a_terminal(panpan: Panpan) -> None:
    with Terminal([str(COMMAND), "--background", "drain"], env=panpan.environment(), cwd=panpan.workspace) as terminal:
        terminal.wait_for("--background goes with -p or a pipe")

        assert terminal.wait() == 2
