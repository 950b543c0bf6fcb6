"""`panpan receipts` tells what the commands of a session have shown."""

import json
from functools import partial
from pathlib import Path

import pytest
from anyio import to_thread
from click.testing import CliRunner

from panpan.capabilities.receipts.cli import receipts
from tests.capabilities.plan_mode.test_plan_sessions import DONE, Place, allow
from tests.capabilities.receipts.receipt_fixtures import bash, place_in, receipts_of, submit

KEY = "sk-ant-api03-" + "x1Y2" * 20


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    place = place_in(tmp_path)
    monkeypatch.setenv("PANPAN_HOME", str(place.home))
    (place.root / "workspace" / "data.txt").write_text("one\n")
    return place


async def _in_thread(place: Place, *words: str) -> str:
    given = [*words, "--cwd", str(place.root / "workspace")]
    invoke = partial(CliRunner().invoke, receipts, given, catch_exceptions=False)
    done = await to_thread.run_sync(invoke)
    return done.output


async def session_of(place: Place) -> str:
    replies = bash("sort data.txt >sorted"), bash("ls"), bash(f"touch x; echo {KEY}"), DONE
    async with place.open(*replies, ask=allow) as session:
        await submit(session)
        await receipts_of(session)
    return session.info.id


async def test_receipts_are_listed_without_an_open_session(place: Place) -> None:
    await session_of(place)
    (place.root / "workspace" / "data.txt").write_text("two\n")

    told = await _in_thread(place)

    assert "sort data.txt >sorted" in told
    assert "exit code 0" in told
    assert "stale: data.txt changed" in told
    assert "ls" not in told.split()
    assert KEY not in told


async def test_receipts_are_json_with_digests(place: Place) -> None:
    session_id = await session_of(place)

    found = json.loads(await _in_thread(place, session_id, "--json"))

    first, look, last = found["receipts"]
    assert found["session"] == session_id
    assert (first["state"], look["receipt"]["kind"]) == ("fresh", "look")
    assert first["receipt"]["inputs"][0]["path"] == "data.txt"
    assert len(first["receipt"]["inputs"][0]["sha256"]) == 64
    assert KEY not in json.dumps(last)
