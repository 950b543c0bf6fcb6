"""Pipes of any size and signals at any time do no harm."""

import fcntl
import json
import os
import signal
import subprocess
import termios
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import Panpan, finished, wait_until
from tests.model_server import Reply, Stall, Text, ToolCall, call, calls, say, serving


def test_ten_megabytes_of_multi_byte_text_arrive_as_one_prompt(panpan: Panpan) -> None:
    text = "日本語のテキスト🙂ñ " * 350_000
    assert len(text.encode()) > 10_000_000

    with serving([say("long")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "Summarise:", stdin=text)

    assert done.stdout == "long\n"
    (message,) = server.requests[0].messages
    assert [block["text"] for block in message["content"][:2]] == ["Summarise:", text]


def test_reader_that_leaves_early_causes_no_error_message(panpan: Panpan) -> None:
    read_end, write_end = os.pipe()
    with serving([say("line\n" * 50_000, chunk_chars=1000)]) as server:
        panpan.use(server)
        process = panpan.start("-p", "go", stdout=write_end, stdin=subprocess.DEVNULL)
        os.close(write_end)
        os.read(read_end, 10)
        os.close(read_end)
        done = finished(process)

    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    assert "user" in [record["type"] for record in panpan.records()]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
@pytest.mark.parametrize("args", [["--version"], ["--help"], ["config", "show"], ["doctor"]], ids=" ".join)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_cannot_be_written_is_one_line(panpan: Panpan, args: list[str], unbuffered: str) -> None:
    panpan.env["PYTHONUNBUFFERED"] = unbuffered
    with Path("/dev/full").open("wb") as full:
        done = finished(panpan.start(*args, stdout=full))

    assert (done.code, done.stderr) == (1, "panpan: cannot write the output: No space left on device\n")
    assert not panpan.home.exists()


def test_open_input_is_reported_unless_quiet(panpan: Panpan) -> None:
    with serving([say("Yes."), say("Yes.")]) as server:
        panpan.use(server)
        told, quiet = panpan.start("-p", "x"), panpan.start("-p", "x", "-q")
        assert told.stderr is not None
        line = told.stderr.readline().decode()
        done, done_quietly = finished(told), finished(quiet)

    assert line == "panpan: waiting for standard input; close it or add </dev/null\n"
    assert (done.stdout, done.stderr) == ("Yes.\n", "")
    assert (done_quietly.stdout, done_quietly.stderr) == ("Yes.\n", "")


def marker_processes(marker: str) -> list[str]:
    """Processes whose command line holds the marker."""
    found = subprocess.run(["pgrep", "-f", marker], capture_output=True, text=True, check=False)
    return found.stdout.split()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=["int", "term", "hup"]
)
def test_signal_during_a_command_ends_all_of_it(panpan: Panpan, number: int, code: int, tmp_path: Path) -> None:
    marker = f"sleep 98.{os.getpid()}{number}"
    command = f"trap '' TERM; touch started; (setsid {marker} &) ; {marker}"
    with serving([call("Bash", {"command": command}), say("never")]) as server:
        panpan.use(server)
        process = panpan.start("-p", "go", "-y", "-f", "stream-json", stdin=subprocess.DEVNULL)
        wait_until((panpan.workspace / "started").exists)
        began_at = time.monotonic()
        process.send_signal(number)
        done = finished(process)

    assert time.monotonic() - began_at < 40  # the promise is 5 s; the rest is for a machine that stands still
    assert done.code == code
    assert "Traceback" not in done.stderr
    wait_until(lambda: marker_processes(marker) == [])
    assert done.result["is_error"]
    last = [record for record in panpan.records() if record["type"] == "user"][-1]["message"]["content"][0]
    assert (last["type"], last["is_error"]) == ("tool_result", True)


def test_interrupt_during_an_answer_keeps_what_was_read(panpan: Panpan) -> None:
    reply = Reply((Text("The beginning of a long answer"),), chunk_chars=10, faults=(Stall(4),))
    with serving([reply, say("Again.")]) as server:
        panpan.use(server)
        process = panpan.start("-p", "go", stdin=subprocess.DEVNULL)
        assert process.stdout is not None
        assert os.read(process.stdout.fileno(), 100).startswith(b"The begin")
        process.send_signal(signal.SIGINT)
        done = finished(process)
        again = panpan.run("-c", "-p", "go on")

    assert done.code == 130
    assert (again.code, again.stdout) == (0, "Again.\n")
    roles = [message["role"] for message in server.requests[1].messages]
    assert roles == ["user", "assistant", "user"]


def test_signal_before_the_prompt_is_read_ends_the_process(panpan: Panpan) -> None:
    panpan.env["ANTHROPIC_API_KEY"] = "sk-ant-test-0123456789"
    process = panpan.start()
    assert process.stdin is not None
    process.stdin.write(b" ")
    process.stdin.flush()
    waiting = process.stdin.fileno()
    wait_until(lambda: fcntl.ioctl(waiting, termios.FIONREAD, bytes(4)) == bytes(4))  # it reads, and waits for more

    process.send_signal(signal.SIGINT)
    process.wait(timeout=30)

    assert process.returncode == 130
    assert process.stderr is not None
    assert process.stderr.read() == b""


def test_killed_session_goes_on_with_every_complete_record(panpan: Panpan) -> None:
    script = [
        calls(ToolCall("LS", {}), ToolCall("Bash", {"command": "touch started; sleep 60"})),
        say("Where were we?"),
    ]
    with serving(script) as server:
        panpan.use(server)
        process = panpan.start("-p", "go", "-y", stdin=subprocess.DEVNULL)
        wait_until((panpan.workspace / "started").exists)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        wait_until(lambda: marker_processes("touch started; sleep 60") == [])
        unasked = panpan.run("-c", "-p", "and now?")
        done = panpan.run("-c", "-p", "and now?", "--unfinished", "unclear")

    assert (unasked.code, unasked.stdout) == (6, "")
    assert "panpan ended while Bash (touch started; sleep 60) ran" in unasked.stderr
    assert done.stdout == "Where were we?\n"
    results = server.requests[1].messages[2]["content"]
    assert [block["type"] for block in results][:2] == ["tool_result", "tool_result"]
    assert results[0].get("is_error") is not True
    assert results[1]["is_error"]
    assert "not answered" in json.dumps(results[1])


def test_background_job_does_not_hold_the_run(panpan: Panpan) -> None:
    marker = f"sleep 97.{os.getpid()}"
    with serving([call("Bash", {"command": f"{marker} & echo begun"}), say("ok")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "go", "-y")

    assert done.stdout == "ok\n"
    assert "begun" in json.dumps(server.requests[1].messages[-1])
    wait_until(lambda: marker_processes(marker) == [])


def test_second_interrupt_ends_the_process_without_waiting(panpan: Panpan) -> None:
    marker = f"sleep 96.{os.getpid()}"
    with serving([call("Bash", {"command": f"trap '' TERM; touch started; {marker}"}), say("never")]) as server:
        panpan.use(server)
        process = panpan.start("-p", "go", "-y", stdin=subprocess.DEVNULL)
        wait_until((panpan.workspace / "started").exists)
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        done = finished(process)

    assert done.code == 130
    assert "Traceback" not in done.stderr
    wait_until(lambda: marker_processes(marker) == [])


def test_open_session_is_not_opened_twice(panpan: Panpan) -> None:
    with serving([Reply((Text("Slowly"),), faults=(Stall(-1),)), say("never")]) as server:
        panpan.use(server)
        first = panpan.start("-p", "go", stdin=subprocess.DEVNULL)
        wait_until(lambda: server.requests)
        second = panpan.run("-c", "-p", "me too", "-f", "json")
        first.send_signal(signal.SIGTERM)
        finished(first)

    assert (second.code, second.result["error_name"]) == (2, "SessionHeldError")
    assert "is open in another panpan" in second.stderr
