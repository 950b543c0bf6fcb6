"""The output of an attempt, as `attach` shows it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from panpan.batch.faces.following import AttemptReader, called_in, event_lines, follow
from panpan.batch.store.folder import AttemptFolder
from tests.fakes.campaign import task_of

INIT = {"type": "system", "subtype": "init", "model": "claude", "session_id": "0b54a4d3"}
CALL = {
    "type": "assistant",
    "message": {
        "content": [
            {"type": "text", "text": "I look.\x1b[2J\n"},
            {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "ls\n-la"}},
        ]
    },
}


def reader_of(folder: Path, **fields: Any) -> AttemptReader:
    return AttemptReader(AttemptFolder(folder, "0" * 16, 1), task_of(**fields))


def result(text: Any, is_error: bool = False) -> Mapping[str, Any]:
    block = {"type": "tool_result", "tool_use_id": "1", "content": text, "is_error": is_error}
    return {"type": "user", "message": {"content": [block]}}


@pytest.mark.parametrize(
    ("event", "lines"),
    [
        (INIT, ["--- run of claude, session 0b54a4d3"]),
        (CALL, ["I look.", "* Bash ls -la"]),
        (result("one\n\ntwo\nthree\nfour\nfive"), ["    one", "    two", "    three", "    … 2 more lines"]),
        (result([{"type": "text", "text": "no\x1b]0;evil\x07"}], is_error=True), ["  ! no"]),
        ({"type": "result", "num_turns": 2, "total_cost_usd": 1.5}, ["--- the end after 2 rounds, $1.50"]),
        (
            {"type": "result", "is_error": True, "num_turns": 1, "total_cost_usd": None, "result": "no key"},
            ["--- an error after 1 round, an unknown sum", "no key"],
        ),
        ({"type": "stream_event"}, []),
        ({"type": "assistant", "message": None}, []),
        ({}, []),
    ],
)
def test_event_becomes_short_harmless_lines(event: Mapping[str, Any], lines: list[str]) -> None:
    assert list(event_lines(event)) == lines


def test_reader_waits_for_the_rest_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    reader = reader_of(tmp_path)
    assert list(reader.read()) == []

    line = json.dumps(INIT)
    path.write_text(f"{{torn\n{line[:20]}")
    assert list(reader.read()) == []

    path.write_text(f"{{torn\n{line}\n")
    assert list(reader.read()) == ["--- run of claude, session 0b54a4d3"]
    assert list(reader.read()) == []


def test_reader_shows_the_output_of_a_command(tmp_path: Path) -> None:
    reader = reader_of(tmp_path, command={"command": "python run.py"})
    (tmp_path / "output.txt").write_text("one\x1b[2J\n\nlast")

    assert list(reader.read()) == ["one", ""]
    assert list(reader.read(is_over=True)) == ["last"]


async def test_follow_shows_what_comes_until_the_attempt_is_over(tmp_path: Path) -> None:
    path, shown, slept = tmp_path / "events.jsonl", list[str](), list[float]()
    path.write_text(f"{json.dumps(INIT)}\n")

    async def is_over() -> bool:
        return len(slept) == 1

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        with path.open("a") as file:
            file.write(f"{json.dumps(CALL)}\n")

    await follow(reader_of(tmp_path), is_over, shown.append, sleep)

    assert shown == ["--- run of claude, session 0b54a4d3", "I look.", "* Bash ls -la"]


def test_called_in_returns_the_titles_of_tool_calls() -> None:
    use = {"type": "tool_use", "id": "1", "name": "Read", "input": {"file_path": "a\x1b[31m.py"}}
    event = {"type": "assistant", "message": {"content": [{"type": "text", "text": "* Bash rm"}, use]}}

    (title,) = called_in(json.dumps(event))

    assert title.startswith("Read a")
    assert "\x1b" not in title
    assert not called_in('{"type": "assistant"}\n{"type": "result"}\n{}')
