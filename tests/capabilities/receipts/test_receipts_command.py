"""/receipts lists the commands of a session, and shows one in full."""

from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from panpan.capabilities.receipts.descriptions import full_receipt, short_receipt
from panpan.capabilities.receipts.session_receipts import SessionReceipt
from panpan.errors import ConfigError
from panpan.receipts.receipt import FileDigest, Receipt, TestCounts
from panpan.receipts.staleness import Freshness
from panpan.session.session import Session
from panpan.types.events import CommandRan
from tests.capabilities.plan_mode.test_plan_sessions import DONE, Place, allow
from tests.capabilities.receipts.receipt_fixtures import bash, place_in, receipts_of, submit

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return place_in(tmp_path)


async def typed(session: Session, line: str) -> str:
    async with aclosing(session.submit(line)) as events:
        (said,) = [event.text async for event in events if isinstance(event, CommandRan)]
    return said


async def unused(_: SessionReceipt) -> Freshness:
    return Freshness("unknown")


def one(receipt: Receipt, **fields: object) -> SessionReceipt:
    given = {"agent_id": "", "turn": 1, "root": Path("/work"), "look": unused, **fields}
    return SessionReceipt(receipt, **given)  # type: ignore[arg-type]


TESTED = Receipt(
    id="aaaa0001",
    argv=("bash", "-c", "pytest -q\n| tail"),
    cwd=".",
    began_at="",
    ended_at=(NOW - timedelta(seconds=3)).isoformat(),
    seconds=2.5,
    exit_code=0,
    box="bubblewrap",
    kind="tests",
    tests=(TestCounts(framework="pytest", passed=11, failed=1, names=("test_a.py::test_one",)),),
    inputs=(FileDigest(path="a\x1b[2J.py", size=7, sha256="ab" * 32),),
)


def test_short_receipt_tells_outcome_age_and_staleness() -> None:
    stale = Freshness("stale", ["a.py", "b.py", "c.py", "d.py"])

    told = short_receipt(one(TESTED), stale, NOW)

    assert told.splitlines() == [
        "pytest -q | tail",
        "11 passed, 1 failed (pytest), exit code 0 · 3 s ago · stale: a.py, b.py, c.py and 1 more changed",
    ]


def test_short_receipt_tells_whose_command_it_was() -> None:
    assert short_receipt(one(TESTED, is_of_user=True), None, NOW).endswith(" · yours")
    assert short_receipt(one(TESTED, agent_id="x1"), None, NOW).endswith(" · subagent x1")


def test_full_receipt_is_harmless_on_a_terminal() -> None:
    facts = dict(full_receipt(one(TESTED), Freshness("fresh")))

    assert facts["failed"] == "test_a.py::test_one"
    assert facts["still holds"] == "inputs unchanged"
    assert facts["network"] == "no"
    assert not any("\x1b" in value for value in facts.values())


async def test_receipts_command_lists_what_ran(place: Place) -> None:
    async with place.open(bash("touch a"), bash("ls"), bash("touch b; exit 3"), DONE, ask=allow) as session:
        assert "no command has ended" in await typed(session, "/receipts")
        await submit(session)
        told = await typed(session, "/receipts")

    assert "touch a" in told
    assert "exit code 3" in told
    assert "1 more only looked" in told


async def test_receipts_command_shows_one_in_full(place: Place) -> None:
    async with place.open(bash("touch a"), DONE, ask=allow) as session:
        await submit(session)
        (made,) = await receipts_of(session)
        told = await typed(session, f"/receipts {made.receipt.id[:4]}")
        with pytest.raises(ConfigError, match="there is no receipt zzzz"):
            await typed(session, "/receipts zzzz")

    assert "touch a" in told
    assert "sandbox" in told


async def test_receipts_command_says_that_they_are_disabled(place: Place) -> None:
    place.home.mkdir()
    (place.home / "settings.toml").write_text("[receipts]\nenabled = false\n")
    async with place.open(DONE) as session:
        with pytest.raises(ConfigError, match="they are disabled"):
            await typed(session, "/receipts")
