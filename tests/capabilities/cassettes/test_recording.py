"""Recordings: their contents, and their end on a full disk or with a secret."""

import json
from pathlib import Path
from typing import Any

import pytest

from panpan.capabilities.cassettes.recorded_file import ROOM_FOR_END, CassetteWriter
from panpan.capabilities.cassettes.recording import Recording
from panpan.errors import ConfigError
from tests.capabilities.cassettes.cassette_fixtures import Place

SECRET = "swordfish-0123456789"
TAPE = f"""
version = 1
[[reply]]
text = "The token is {SECRET}, I print it."
[[reply.tool_use]]
name = "Bash"
input = {{ command = "echo {SECRET}" }}

[[reply]]
text = "Printed {SECRET}."
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_recording_holds_no_secrets_and_still_plays(place: Place) -> None:
    await place.record(f"use {SECRET}", tape=TAPE, env={"MY_TOKEN": SECRET}, append_system_prompt=f"Say {SECRET}.")

    assert SECRET not in place.cassette.read_text()
    assert "[redacted]" in place.cassette.read_text()
    assert (await place.replay("strict")).is_same


async def test_recording_holds_log_requests_and_stream(place: Place) -> None:
    await place.record("look around")

    types = [line["type"] for line in lines_of(place.cassette)]

    assert types[:4] == ["cassette", "cassette_opened", "user", "cassette_turn"]
    assert types.count("cassette_request") == types.count("cassette_reply") == types.count("assistant") == 3
    assert [name for name in types if name.startswith("cassette")][-1] == "cassette_turn_end"
    assert types.index("cassette_reply") < types.index("assistant")


async def test_recording_writes_only_changes_of_a_request(place: Place) -> None:
    await place.record("look around")

    first, second, third = [line for line in lines_of(place.cassette) if line["type"] == "cassette_request"]

    assert set(first) - set(second) == {"system", "tools"}
    assert second["kept"] == len(first["messages"])
    assert all(isinstance(message, str) for message in first["messages"] + second["messages"] + third["messages"])


def test_recording_that_is_too_long_ends_and_says_so(place: Place) -> None:
    warnings: list[str] = []
    writer = CassetteWriter(place.cassette, warnings.append, max_bytes=ROOM_FOR_END + 100)
    writer.write({"type": "cassette"})
    writer.write({"type": "big", "text": "x" * 200})
    writer.write({"type": "late"})
    writer.close()

    assert [line["type"] for line in lines_of(place.cassette)] == ["cassette", "cassette_end"]
    assert len(warnings) == 1
    assert "it has become too long" in warnings[0]


def test_recording_on_a_full_disk_ends_with_one_warning(tmp_path: Path) -> None:
    warnings: list[str] = []
    writer = CassetteWriter(tmp_path / "a.jsonl", warnings.append)
    writer.write({"type": "cassette"})
    writer._write = _full  # type: ignore[method-assign]

    writer.write({"type": "one"})
    writer.write({"type": "two"})
    writer.close()

    assert [line["type"] for line in lines_of(tmp_path / "a.jsonl")] == ["cassette"]
    assert warnings == [
        f"the recording into {tmp_path / 'a.jsonl'} ends here: it cannot be written: No space left on device; what was "
        "recorded before can be played"
    ]


def _full(data: bytes) -> None:
    raise OSError(28, "No space left on device")


def test_recording_leaves_an_existing_file(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("mine")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "nowhere")

    for name in ("a.jsonl", "link.jsonl"):
        with pytest.raises(ConfigError, match="exists already"):
            Recording(tmp_path / name)
    with pytest.raises(ConfigError, match="there is no folder"):
        Recording(tmp_path / "missing" / "a.jsonl")
    assert (tmp_path / "a.jsonl").read_text() == "mine"


def test_recording_leaves_a_file_that_appears_meanwhile(tmp_path: Path) -> None:
    warnings: list[str] = []
    writer = CassetteWriter(tmp_path / "a.jsonl", warnings.append)
    (tmp_path / "a.jsonl").write_text("mine")

    writer.write({"type": "cassette"})
    writer.close()

    assert (tmp_path / "a.jsonl").read_text() == "mine"
    assert "another program" in warnings[0]
