"""A line of a log is read whatever it holds, and nothing is read that is no file."""

import json
import os
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.errors import SessionError
from panpan.session.export.transcript import transcript_of
from panpan.session.log.records import encode_record
from panpan.session.log.session_log import MAX_DEPTH, lines_of, open_to_read, parse_line, read_records
from panpan.session.stored.store import summary_of


def nested(depth: int, kind: str) -> dict[str, Any]:
    """Return an object with so many lists, or objects, one in the other, itself included."""
    value: Any = 1
    for _ in range(depth - 1):
        value = [value] if kind == "list" else {"a": value}
    return {"a": value}


@pytest.mark.parametrize("kind", ["list", "object"])
def test_line_nested_too_deeply_is_no_record(kind: str) -> None:
    assert parse_line(encode_record(nested(MAX_DEPTH, kind))) == nested(MAX_DEPTH, kind)
    assert parse_line(encode_record(nested(MAX_DEPTH + 1, kind))) is None
    assert parse_line(b'{"a":' * 100_000) is None


def test_line_that_is_long_and_flat_is_a_record() -> None:
    wide = {"tools": [{"name": f"{number}", "input_schema": {"type": []}} for number in range(1000)]}

    assert parse_line(encode_record(wide)) == wide


@pytest.mark.parametrize("line", [b"", b"\0\0", b"[1]", b'"text"', b"5", b"\xff\xfe", b"{", b"NaN"])
def test_line_without_an_object_is_no_record(line: bytes) -> None:
    assert parse_line(line) is None


def test_line_with_nan_or_infinity_reads_them_as_null() -> None:
    assert parse_line(b'{"a": [NaN, -Infinity, "NaN"], "b": Infinity}') == {"a": [None, None, "NaN"], "b": None}


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_log_that_is_no_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "s1.jsonl"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case _:
            path.mkdir()

    with pytest.raises(OSError, match="not a regular file"):
        open_to_read(path)
    with pytest.raises(SessionError, match="cannot read the session log"):
        list(read_records(path))
    assert summary_of(path) is None


@pytest.mark.parametrize("depth", [MAX_DEPTH - 10, 300, 900])
def test_session_with_arguments_of_any_depth_can_be_exported(tmp_path: Path, depth: int) -> None:
    use = {"type": "tool_use", "id": "1", "name": "Bash", "input": nested(depth, "list")}
    body = {"model": "m", "content": [use], "stop_reason": "tool_use", "usage": {}}
    path = tmp_path / "s1.jsonl"
    path.write_text(
        json.dumps({"type": "assistant", "uuid": "a", "parentUuid": nested(depth, "list"), "message": body})
    )

    transcript = transcript_of(path, panpan_version="1")

    assert len(transcript.messages) == (2 if depth < MAX_DEPTH else 0)  # the call, and that nobody answered it


@given(st.lists(st.binary(max_size=9).map(lambda line: line.replace(b"\n", b"")), max_size=6), st.booleans())
def test_lines_are_split_like_files_with_their_sizes(lines: list[bytes], has_end: bool) -> None:
    whole = b"\n".join(lines) + b"\n" * has_end
    expected = list(BytesIO(whole))

    found = list(lines_of(BytesIO(whole), most_bytes=5))

    assert [size for _, size in found] == [len(line) for line in expected]
    assert [line.endswith(b"\n") for line, _ in found] == [line.endswith(b"\n") for line in expected]
    assert [line for line, size in found if size <= 5] == [line for line in expected if len(line) <= 5]
