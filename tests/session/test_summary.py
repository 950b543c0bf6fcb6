"""A session is listed with what its log tells, in whatever state a crash left it."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from panpan.session.log.record_kinds import TitleRecord
from panpan.session.log.records import encode_record, record_of
from panpan.session.log.session_log import SessionLog
from panpan.session.stored import store as summary
from panpan.session.stored.store import summary_of
from panpan.types.content import TextBlock
from panpan.types.messages import AssistantMessage, UserMessage


def reply(text: str) -> AssistantMessage:
    return AssistantMessage(content=(TextBlock(text=text),), model="m", stop_reason="end_turn")


def written(path: Path, *messages: UserMessage | AssistantMessage) -> Path:
    log = SessionLog(path, session_id=path.stem, cwd=Path("/begun/here"))
    for message in messages:
        log.append(record_of(message))
    log.close()
    return path


def test_summary_has_the_first_prompt_line_and_counts_replies(tmp_path: Path) -> None:
    quoting = reply('"type":"assistant","uuid":"x"')
    path = written(tmp_path / "01.jsonl", UserMessage.of("\n  one \ntwo"), reply("a"), UserMessage.of("later"), quoting)

    found = summary_of(path)

    assert found is not None
    assert (found.id, found.cwd, found.prompt, found.rounds) == ("01", "/begun/here", "one", 2)
    assert found.is_counted
    assert found.written_at == path.stat().st_mtime


def test_summary_does_not_count_a_reply_within_a_record(tmp_path: Path) -> None:
    path = written(tmp_path / "01.jsonl", UserMessage.of("one"), reply("a"))
    log = SessionLog(path, session_id="01", cwd=Path("/w"))
    log.append(TitleRecord(summary="a title", reply=record_of(reply("a title"))).as_json())
    log.close()

    found = summary_of(path)

    assert found is not None
    assert (found.title, found.rounds) == ("a title", 1)


def test_summary_skips_damaged_lines(tmp_path: Path) -> None:
    path = written(tmp_path / "01.jsonl", UserMessage.of("one"), reply("a"))
    whole = path.read_bytes()
    path.write_bytes(b'{"type":"user","mess\xff\n' + b"[" * 100_000 + b"\n[]\n\n" + whole + whole[:100])

    found = summary_of(path)

    assert found is not None
    assert (found.cwd, found.prompt, found.rounds) == ("/begun/here", "one", 1)


def test_summary_of_a_huge_log_reads_its_beginning(tmp_path: Path) -> None:
    path = written(tmp_path / "01.jsonl", UserMessage.of("one"), reply("a"))
    with path.open("ab") as file:
        file.truncate(summary.MAX_BYTES + 1)

    found = summary_of(path)

    assert found is not None
    assert (found.prompt, found.rounds, found.is_counted) == ("one", 1, False)


def test_summary_cuts_a_long_prompt(tmp_path: Path) -> None:
    found = summary_of(written(tmp_path / "01.jsonl", UserMessage.of("x" * 2_000_000)))

    assert found is not None
    assert found.prompt == "x" * summary.MAX_PROMPT_CHARS


def test_summary_of_a_missing_log_is_none(tmp_path: Path) -> None:
    assert summary_of(tmp_path / "gone.jsonl") is None


_JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "message", "content", "text", "cwd", "user"]), inner, max_size=4)
    ),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(_JSON | st.fixed_dictionaries({"type": st.just("user"), "message": _JSON}), max_size=4), st.binary())
def test_summary_exists_for_any_log(tmp_path: Path, records: list[Any], tail: bytes) -> None:
    path = tmp_path / "01.jsonl"
    path.write_bytes(b"".join(json.dumps(record).encode() + b"\n" for record in records) + tail)

    found = summary_of(path)

    assert found is not None
    assert "\n" not in found.prompt


@pytest.mark.parametrize("content", [[{"type": "text", "text": "one"}], [{"type": "image"}, {"text": " one\n"}]])
def test_summary_finds_text_behind_a_picture(tmp_path: Path, content: list[Any]) -> None:
    path = tmp_path / "01.jsonl"
    path.write_bytes(encode_record({"type": "user", "message": {"role": "user", "content": content}}))

    found = summary_of(path)

    assert found is not None
    assert found.prompt == "one"


@pytest.mark.parametrize("written_at", [-(2**31), 2**34, 2**38])
def test_summary_replaces_an_impossible_time(tmp_path: Path, written_at: int) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text("{}\n")
    os.utime(path, (written_at, written_at))

    summary = summary_of(path)

    assert summary is not None
    assert datetime.fromtimestamp(summary.written_at, UTC).year in range(1970, 10_000)
