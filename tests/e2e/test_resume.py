"""A session goes on as if it had never stopped: the same prefix, byte for byte, and a longer history."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Panpan
from tests.model_server import assert_prefixes, call, say, serving
from tests.model_server.recording import RecordedRequest


def test_continue_goes_on_with_the_newest_session(panpan: Panpan) -> None:
    (panpan.workspace / "AGENTS.md").write_text("Be brief.\n")
    with serving([call("LS", {}), say("First."), say("Second."), say("Other."), say("Third.")]) as server:
        panpan.use(server)
        panpan.run("-p", "one")
        first = panpan.session_files()[0].stem
        (panpan.workspace / "AGENTS.md").write_text("Be long.\n")
        panpan.run("-c", "-p", "two")
        panpan.run("-p", "a new one")
        done = panpan.run("-r", first[:20], "-p", "three")

    assert done.stdout == "Third.\n"
    assert_prefixes([*server.requests[:3], server.requests[4]])
    assert len(panpan.session_files()) == 2
    assert server.requests[3].messages[0]["content"][0]["text"] == "a new one"
    assert "Be brief." in json.dumps(server.requests[4].messages[0])


def test_prefix_never_changes_over_fifty_rounds(panpan: Panpan) -> None:
    (panpan.workspace / "sub").mkdir()
    (panpan.workspace / "sub" / "AGENTS.md").write_text("Deeper rules.\n")
    (panpan.workspace / "sub" / "a.txt").write_text("a\n")
    script = [
        call("Read", {"file_path": "sub/a.txt"}) if number == 20 else call("LS", {"path": "." if number % 2 else "sub"})
        for number in range(49)
    ]
    with serving([*script, say("done")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "go", "--max-turns", "60")

    assert done.code == 0, done.stderr
    assert len(server.requests) == 50
    assert_prefixes(server.requests)
    assert "Deeper rules." in json.dumps(server.requests[21].messages)
    for request in server.requests:
        assert request.raw.count(b'"cache_control"') <= 4
        assert b'"cache_control"' in request.raw[-200:]


def test_continue_without_a_session_is_an_error(panpan: Panpan) -> None:
    panpan.env["ANTHROPIC_API_KEY"] = "sk-ant-test-0123456789"

    done = panpan.run("-c", "-p", "go on")

    assert done.code == 2
    assert "this folder has no session" in done.stderr


def test_resume_with_another_model_says_so_in_one_line(panpan: Panpan) -> None:
    with serving([say("First."), say("Second.")]) as server:
        panpan.use(server)
        panpan.run("-p", "one", "--model", "claude-opus-4-5")
        done = panpan.run("-c", "-p", "two", "--model", "claude-haiku-4-5")

    opus, haiku = "claude-opus-4-5", "claude-haiku-4-5"
    said = f"resumed with {haiku} instead of {opus}; --model {opus} or /model {opus} switches back"
    assert (done.stdout, done.stderr) == ("Second.\n", f"panpan: {said}\n")


@pytest.mark.parametrize("flags", [["-c"], ["-r", "01"]])
def test_resume_in_another_folder_says_so_in_one_line(panpan: Panpan, flags: list[str]) -> None:
    below = panpan.workspace / "below"
    below.mkdir()
    (panpan.workspace / ".git").mkdir()
    with serving([say("First."), say("Second."), say("Third.")]) as server:
        panpan.use(server)
        panpan.run("-p", "one")
        elsewhere = panpan.run(*flags, "-p", "two", "--cwd", "below")
        back = panpan.run(*flags, "-p", "three")

    said = f"panpan: the session was begun in {panpan.workspace}; its tools work in {below} now\n"
    assert (elsewhere.stdout, elsewhere.stderr) == ("Second.\n", said)
    assert (back.stdout, back.stderr) == ("Third.\n", "")


def test_sessions_list_has_ids_to_resume(panpan: Panpan) -> None:
    with serving([say("First."), say("Second."), say("Third.")]) as server:
        panpan.use(server)
        panpan.run("-p", "\nthe first one\nof two lines")
        panpan.run("-p", "the second one")
        listed = panpan.run("sessions", "--runs")
        newest, older = listed.stdout.splitlines()
        done = panpan.run("-r", older.split()[0], "-p", "go on")

    assert listed.code == 0
    assert newest.endswith(" 1 round  the second one")
    assert older.endswith(" 1 round  the first one")
    assert done.stdout == "Third.\n"
    assert server.requests[2].messages[0]["content"][0]["text"] == "\nthe first one\nof two lines"
    assert panpan.run("sessions", "--runs").stdout.splitlines()[0].endswith(" 2 rounds  the first one")


def test_damaged_log_is_continued_and_never_overwritten(panpan: Panpan) -> None:
    with serving([say("First."), say("Second.")]) as server:
        panpan.use(server)
        panpan.run("-p", "one")
        (path,) = panpan.session_files()
        damaged = path.read_bytes() + b'{"type":"assist\xff'
        path.write_bytes(damaged)
        done = panpan.run("-c", "-p", "two")

    assert (done.stdout, done.stderr) == ("Second.\n", "")
    assert path.read_bytes().startswith(damaged)
    assert [message["role"] for message in server.requests[1].messages] == ["user", "assistant", "user"]


def test_damaged_line_of_the_log_is_reported_once(panpan: Panpan) -> None:
    with serving([say("First."), say("Second."), say("Third.")]) as server:
        panpan.use(server)
        panpan.run("-p", "one")
        (path,) = panpan.session_files()
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([lines[0], b"garbage\n", *lines[1:]]))
        told = panpan.run("-c", "-p", "two")
        quiet = panpan.run("-c", "-p", "three", "-q")

    assert told.stdout == "Second.\n"
    assert told.stderr == f"panpan: line 2 of the session's log cannot be read and counts for nothing: {path}\n"
    assert quiet.stderr == ""


def said(request: RecordedRequest) -> list[str]:
    """Return the words of the user and the model in a request."""
    blocks = [(message["role"], block) for message in request.messages for block in message["content"]]
    return [
        block["text"] for _, block in blocks if block["type"] == "text" and "<system-reminder>" not in block["text"]
    ]


def lines_of(panpan: Panpan, *args: str) -> list[dict[str, Any]]:
    return panpan.run(*args, "-f", "stream-json").lines


def replies(lines: list[dict[str, Any]]) -> list[str]:
    return [line["uuid"] for line in lines if line["type"] == "assistant"]


def test_resume_at_a_reply_goes_on_behind_it_and_loses_nothing(panpan: Panpan) -> None:
    with serving([say("First."), say("Second."), say("Other.")]) as server:
        panpan.use(server)
        (first,) = replies(lines_of(panpan, "-p", "one"))
        lines_of(panpan, "-c", "-p", "two")
        (log,) = panpan.session_files()
        before = log.read_bytes()
        panpan.run("-c", "--resume-session-at", first, "-p", "another two")

    assert said(server.requests[2]) == ["one", "First.", "another two"]
    assert panpan.session_files() == [log]
    assert log.read_bytes().startswith(before)


def test_resume_at_a_call_keeps_the_history_valid(panpan: Panpan) -> None:
    with serving([call("LS", {}), say("First."), say("Other.")]) as server:
        panpan.use(server)
        asked, _ = replies(lines_of(panpan, "-p", "one"))
        done = panpan.run("-c", f"--resume-session-at={asked}", "-p", "go on", "--fork-session")

    assert done.code == 0, done.stderr
    assert server.refusals == []
    assert [message["role"] for message in server.requests[2].messages] == ["user", "assistant", "user"]
    assert len(panpan.session_files()) == 2


def test_resume_at_drops_one_turn_and_no_more(panpan: Panpan) -> None:
    with serving([say("First."), say("Second."), say("Third."), say("Other.")]) as server:
        panpan.use(server)
        (first,) = replies(lines_of(panpan, "-p", "one"))
        (second,) = replies(lines_of(panpan, "-c", "-p", "two"))
        panpan.run("-c", "-p", "three")
        prompts = [r["uuid"] for r in panpan.records() if r["type"] == "user"]
        before = panpan.session_files()[0].read_bytes()
        for at, drops in ((first, prompts[1]), (second, prompts[1]), (second, first)):
            done = panpan.run(
                "-c", f"--resume-session-at={at}", f"--resume-drops-turn={drops}", "-p", "x", "-f", "json"
            )
            assert done.code == 2
            assert "Resume rejected by --resume-drops-turn:" in done.stderr
            assert "Resume rejected by --resume-drops-turn:" in done.result["errors"][0]
        assert panpan.session_files()[0].read_bytes() == before
        panpan.run("-c", f"--resume-session-at={second}", f"--resume-drops-turn={prompts[2]}", "-p", "another three")

    assert said(server.requests[3]) == ["one", "First.", "two", "Second.", "another three"]


def test_resume_at_an_unknown_message_is_an_error(panpan: Panpan) -> None:
    with serving([say("First.")]) as server:
        panpan.use(server)
        panpan.run("-p", "one")
        done = panpan.run("-c", "--resume-session-at", "01a228cd-115e-7210-bd8d-8906dcea16ec", "-p", "x")

    assert done.code == 2
    assert "has no message 01a228cd-115e-7210-bd8d-8906dcea16ec to go on after" in done.stderr


def test_session_without_persistence_leaves_no_log(panpan: Panpan, tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    panpan.env["TMPDIR"] = str(tmp_path / "tmp")
    with serving([call("LS", {}), say("First."), say("Kept."), say("Second.")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "one", "--no-session-persistence")
        assert panpan.session_files() == []
        panpan.run("-p", "two")
        panpan.run("-c", "--fork-session", "-p", "three", "--no-session-persistence")

    assert done.stdout == "First.\n"
    assert len(panpan.session_files()) == 1
    assert said(server.requests[3]) == ["two", "Kept.", "three"]
    assert not list((tmp_path / "tmp").glob("panpan-session-*"))
