"""A receipt keeps no result waiting, and nothing changes a file before it is digested."""

import shutil
from functools import partial
from hashlib import sha256
from pathlib import Path

import anyio
import pytest

from panpan.capabilities.receipts.hooks import ReceiptsHook
from panpan.capabilities.receipts.session_recorder import Origin, SessionRecorder
from panpan.core.hooks import ToolCall
from panpan.core.recorded_commands import Runner
from panpan.receipts.receipt import FileDigest, Receipt
from panpan.types.events import Event, ToolFinished
from tests.capabilities.plan_mode.test_plan_sessions import DONE, Place, allow
from tests.capabilities.receipts.receipt_fixtures import bash, place_in, receipts_of, submit
from tests.fakes.context import context_in
from tests.fakes.tools import changing

RECEIPT = Receipt(argv=("true",), cwd=".", began_at="", ended_at="", seconds=0, exit_code=0, box="off")


class Gated:
    """A receipt that takes until the gate opens."""

    def __init__(self) -> None:
        self.gate = anyio.Event()

    async def taken(self) -> Receipt:
        await self.gate.wait()
        return RECEIPT


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return place_in(tmp_path)


def origin(place: Place) -> Origin:
    return Origin(Runner(), "call_1", place.root / "workspace")


async def test_result_of_a_call_does_not_wait_for_its_receipt(place: Place) -> None:
    slow, had_receipts = Gated(), list[int]()

    async with place.open(bash("ls"), DONE) as session:
        recorder = session[SessionRecorder]

        def open_gate(event: Event) -> None:
            if isinstance(event, ToolFinished):
                had_receipts.append(sum(one.receipt.argv == RECEIPT.argv for one in recorder.receipts.receipts))
                slow.gate.set()

        recorder.take(origin(place), slow.taken)
        await submit(session, open_gate)
        assert len(await receipts_of(session)) == 2

    assert had_receipts == [0]


async def test_call_that_may_change_files_waits_for_receipts(place: Place) -> None:
    slow, order = Gated(), list[str]()
    async with place.open(DONE) as session:
        recorder = session[SessionRecorder]
        recorder.take(origin(place), slow.taken)
        hook = ReceiptsHook(recorder, is_main=True)
        tool = changing()
        args = tool.input_model()
        call = await ToolCall.of("1", tool, args, {}, context_in(place.root / "workspace"))

        async def change() -> None:
            await hook.before_effect(call)
            order.append(f"change after {len(recorder.receipts.receipts)}")

        async with anyio.create_task_group() as group:
            group.start_soon(change)
            await anyio.wait_all_tasks_blocked()
            order.append("opened")
            slow.gate.set()

    assert order == ["opened", "change after 1"]


async def test_receipt_that_fails_costs_nothing_else(place: Place) -> None:
    async def fails() -> Receipt:
        raise OSError("a bug")

    async with place.open(DONE) as session:
        session[SessionRecorder].take(origin(place), fails)
        session[SessionRecorder].take(origin(place), Gated.taken.__get__(_opened()))
        assert [one.receipt for one in await receipts_of(session)] == [RECEIPT]


def _opened() -> Gated:
    gated = Gated()
    gated.gate.set()
    return gated


async def test_session_end_waits_for_receipts(place: Place) -> None:
    async with place.open(bash("touch a"), DONE, ask=allow) as session:
        await submit(session)

    assert len(place.records("receipt")) == 1


async def test_receipts_after_the_session_are_dropped(place: Place) -> None:
    async with place.open(DONE) as session:
        recorder = session[SessionRecorder]
    recorder.take(origin(place), partial(_never))
    await recorder.settled()

    assert recorder.receipts.receipts == ()


async def _never() -> Receipt:
    raise AssertionError("nothing takes receipts any more")


async def test_receipt_tells_if_its_inputs_changed(place: Place) -> None:
    data = place.root / "workspace" / "data.txt"
    data.write_text("one\n")
    async with place.open(bash("sort data.txt >sorted"), DONE, ask=allow) as session:
        await submit(session)
        (one,) = await receipts_of(session)
        before = await one.freshness()
        data.write_text("two\n")
        after = await one.freshness()
        data.write_text("one\n")
        again = await one.freshness()

    assert [each.state for each in (before, after, again)] == ["fresh", "stale", "fresh"]
    assert after.changed == ["data.txt"]


async def test_receipt_of_a_copy_that_is_gone_is_stale(place: Place) -> None:
    copy = place.root / "copy"
    copy.mkdir()
    (copy / "data.txt").write_text("one")
    data = FileDigest(path="data.txt", size=3, sha256=sha256(b"one").hexdigest())
    receipt = RECEIPT.model_copy(update={"inputs": (data,), "inputs_are": "opened"})

    async def taken() -> Receipt:
        return receipt

    async with place.open(DONE) as session:
        session[SessionRecorder].take(Origin(Runner("a1"), "call_1", copy), taken)
        (one,) = await receipts_of(session)
        before = await one.freshness()
        shutil.rmtree(copy)
        after = await one.freshness()

    assert (before.state, after.state) == ("fresh", "stale")
