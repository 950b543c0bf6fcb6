"""Streams that are closed, full or stalled are no fault of panpan, and none of them shows a traceback."""

import fcntl
import os
import signal
import subprocess
import termios
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import COMMAND, Panpan, finished, wait_until
from tests.model_server import HttpError, ToolCall, call, calls, say, serving
from tests.terminal_emulator import Terminal


def in_shell(panpan: Panpan, redirection: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run the command with standard streams as only a shell can leave them."""
    line = f'exec "$@" {redirection}'
    return subprocess.run(
        ["/bin/sh", "-c", line, "sh", str(COMMAND), *args],
        cwd=panpan.workspace,
        env=dict(panpan.environment()),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def assert_no_fault(panpan: Panpan, done: subprocess.CompletedProcess[str]) -> None:
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert "fault in panpan" not in done.stderr
    assert not list(panpan.home.glob("crashes/*"))


@pytest.mark.parametrize(
    ("redirection", "code", "stdout"), [("2>&-", 0, "Fine.\n"), (">&-", 0, ""), ("<&-", 0, "Fine.\n")]
)
def test_closed_streams_do_no_harm(panpan: Panpan, redirection: str, code: int, stdout: str) -> None:
    with serving([say("Fine.")]) as server:
        panpan.use(server)
        done = in_shell(panpan, redirection, "-p", "hi")

    assert (done.returncode, done.stdout) == (code, stdout), done.stderr
    assert_no_fault(panpan, done)


def test_closed_stdout_on_a_terminal_is_an_error(panpan: Panpan) -> None:
    script = f"'{COMMAND}' >&-; echo ended with $?"
    with Terminal(["sh", "-c", script], env=panpan.environment(), cwd=panpan.workspace) as terminal:
        terminal.wait_for("ended with 2")

        assert "standard output is closed" in terminal.text


def test_closed_stderr_keeps_the_exit_code_of_an_error(panpan: Panpan) -> None:
    assert in_shell(panpan, "2>&-", "-p", "hi", "--model", "cassette:nope").returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, which Linux has")
def test_full_disk_behind_stdout_is_reported(panpan: Panpan) -> None:
    with serving([say("Fine.")]) as server:
        panpan.use(server)
        done = in_shell(panpan, ">/dev/full", "-p", "hi")

    assert done.returncode == 1
    assert "cannot write the output" in done.stderr
    assert_no_fault(panpan, done)


def test_tool_that_fails_unexpectedly_shows_no_traceback(panpan: Panpan) -> None:
    (panpan.workspace / ".claude" / "rules").mkdir(parents=True)
    (panpan.workspace / ".claude" / "rules" / "bad.md").write_text('---\npaths: ["src/[z-a].py"]\n---\nA rule.\n')
    script = [
        calls(ToolCall("Read", {"file_path": "~nosuchuser/x"}), ToolCall("Read", {"x" * 200_000: 1})),
        call("Write", {"file_path": "a.txt", "content": "done\n"}),
        say("Fine."),
    ]
    with serving(script) as server:
        panpan.use(server)
        done = panpan.run("-p", "hi", "-y")

    assert (done.code, done.stdout) == (0, "Fine.\n")
    assert "Traceback" not in done.stderr
    assert all(len(str(block["content"])) < 60_000 for block in server.requests[1].messages[-1]["content"])
    (result,) = server.requests[2].messages[-1]["content"][:1]
    assert not result.get("is_error"), "a rule that cannot be read does not make a finished Write a failed one"


def test_stalled_reader_does_not_keep_the_process(panpan: Panpan) -> None:
    read_end, write_end = os.pipe()
    with serving([say("word " * 400_000, chunk_chars=4000, writes="bulk")]) as server:
        panpan.use(server)
        process = panpan.start("-p", "go", stdin=subprocess.DEVNULL, stdout=write_end)
        os.close(write_end)
        os.read(read_end, 10)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        done = finished(process)
        os.close(read_end)

    assert done.code == 130
    assert "Traceback" not in done.stderr


def test_debug_log_has_tools_and_replies_and_no_key(panpan: Panpan) -> None:
    with serving([call("LS", {}), say("Fine.")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "hi", "--debug")

    (log,) = panpan.home.glob("debug/*.jsonl")
    text = log.read_text()
    assert "writing the debug log" in done.stderr
    for word in ("tool started", "permission", "reply", "claude"):
        assert word in text
    assert panpan.env["ANTHROPIC_API_KEY"] not in text


def test_debug_log_that_cannot_be_written_is_one_line(panpan: Panpan) -> None:
    panpan.env["PANPAN_HOME"] = os.devnull

    done = panpan.run("-p", "hi", "--debug")

    assert done.code == 2
    assert done.stderr.count("\n") == 1


def test_wrong_options_are_reported_with_advice(panpan: Panpan) -> None:
    panpan.env["ANTHROPIC_API_KEY"] = "sk-ant-test-0123456789"
    said_by_args = [
        (["--add-dir", "/nope"], "/nope (--add-dir) is not a folder"),
        (["--disallowedTools", "Bsh"], "did you mean Bash"),
        (["--disallowedTools", "Bsh(ls)"], "there is no tool Bsh; did you mean Bash?"),
        (["--allowedTools", "Reed"], "there is no tool Reed; did you mean Read?"),
        (["--allowedTools", "WebFech(domain:example.org)"], "there is no tool WebFech; did you mean WebFetch?"),
        (["doctor"], "does not go with the command doctor"),
    ]

    runs = [panpan.run("-p", "hi", *args) for args, _ in said_by_args]

    for (args, said), done in zip(said_by_args, runs, strict=True):
        assert done.code == 2, args
        assert said in done.stderr


def test_interrupt_before_the_prompt_ends_with_a_result(panpan: Panpan) -> None:
    panpan.env["ANTHROPIC_API_KEY"] = "sk-ant-test-0123456789"
    process = panpan.start("-f", "json")
    assert process.stdin is not None
    process.stdin.write(b" ")
    process.stdin.flush()
    waiting = process.stdin.fileno()
    wait_until(lambda: fcntl.ioctl(waiting, termios.FIONREAD, bytes(4)) == bytes(4))  # it reads, and waits for more

    process.send_signal(signal.SIGINT)
    process.wait(timeout=30)
    assert process.stdout is not None

    assert process.returncode == 130
    assert b'"type":"result"' in process.stdout.read()


def test_exit_code_is_that_of_the_first_failed_turn(panpan: Panpan) -> None:
    lines = '{"type":"user","message":{"role":"user","content":"a"}}\n' * 2
    with serving([HttpError(400, "no"), say("Fine.")]) as server:
        panpan.use(server)
        done = panpan.run("--input-format", "stream-json", "-f", "stream-json", stdin=lines)

    assert done.code == 1
    assert [line["is_error"] for line in done.lines if line["type"] == "result"] == [True, False]
