"""Nothing is lost, doubled or turned round between a turn and its face, whatever pace either of them has."""

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import closing
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given
from hypothesis import strategies as st

from panpan.core.event_channel import EventChannel

Main = Callable[[], Coroutine[Any, Any, None]]
Pace = Callable[[], Awaitable[object]]


@pytest.fixture(params=["asyncio", "trio"])
def run(request: pytest.FixtureRequest) -> Callable[[Main], None]:
    return lambda main: anyio.run(main, backend=request.param)


async def received(hop: EventChannel[int], pace: Pace = checkpoint) -> list[list[int]]:
    batches = []
    while batch := await hop.take():
        batches.append(batch)
        await pace()
    return batches


async def send_all(hop: EventChannel[int], pauses: list[bool]) -> None:
    with closing(hop):
        for number, pause in enumerate(pauses):
            await hop.send(number)
            if pause:
                await checkpoint()


@given(
    pauses=st.lists(st.booleans(), max_size=30), room=st.integers(1, 5), backend=st.sampled_from(["asyncio", "trio"])
)
def test_channel_delivers_every_event_once_in_order(pauses: list[bool], room: int, backend: str) -> None:
    async def main() -> None:
        hop = EventChannel[int](room)
        async with anyio.create_task_group() as task_group:
            task_group.start_soon(send_all, hop, pauses)
            batches = await received(hop)
        assert [number for batch in batches for number in batch] == list(range(len(pauses)))
        assert all(len(batch) <= room for batch in batches)

    anyio.run(main, backend=backend)


def test_channel_take_returns_all_waiting_events(run: Callable[[Main], None]) -> None:
    async def main() -> None:
        hop = EventChannel[int](8)
        await send_all(hop, [False] * 5)
        assert await received(hop) == [[0, 1, 2, 3, 4]]
        assert await hop.take() == []

    run(main)


def test_sender_without_room_waits_for_the_receiver(run: Callable[[Main], None]) -> None:
    async def main() -> None:
        hop, sent = EventChannel[int](2), []

        async def send() -> None:
            with closing(hop):
                for number in range(4):
                    await hop.send(number)
                    sent.append(number)

        async with anyio.create_task_group() as task_group:
            task_group.start_soon(send)
            await anyio.wait_all_tasks_blocked()
            assert sent == [0, 1]
            assert await hop.take() == [0, 1]
            await anyio.wait_all_tasks_blocked()
            assert sent == [0, 1, 2, 3]
            assert await received(hop) == [[2, 3]]

    run(main)


def test_waiting_sender_learns_that_the_receiver_left(run: Callable[[Main], None]) -> None:
    async def main() -> None:
        hop, heard = EventChannel[int](1), []

        async def send() -> None:
            for _ in range(2):
                with pytest.raises(anyio.BrokenResourceError):
                    while True:
                        await hop.send(1)
                heard.append("it has left")

        async with anyio.create_task_group() as task_group:
            task_group.start_soon(send)
            await anyio.wait_all_tasks_blocked()
            hop.leave()
        assert heard == ["it has left"] * 2

    run(main)


def test_cancelled_receiver_loses_nothing(run: Callable[[Main], None]) -> None:
    async def main() -> None:
        hop, taken = EventChannel[int](8), []

        async def take() -> None:
            taken.append(await hop.take())

        async with anyio.create_task_group() as task_group:
            task_group.start_soon(take)
            await anyio.wait_all_tasks_blocked()
            await hop.send(1)
            task_group.cancel_scope.cancel()
        hop.close()
        assert taken + await received(hop) == [[1]]

    run(main)


def test_cancelled_sender_has_sent_nothing(run: Callable[[Main], None]) -> None:
    async def main() -> None:
        hop = EventChannel[int](1)
        await hop.send(1)
        async with anyio.create_task_group() as task_group:
            task_group.start_soon(hop.send, 2)
            await anyio.wait_all_tasks_blocked()
            task_group.cancel_scope.cancel()
        hop.close()
        assert await received(hop) == [[1]]

    run(main)


def test_nudged_receiver_looks_up_and_goes_on(run: Callable[[Main], None]) -> None:
    async def main() -> None:
        hop = EventChannel[int](1)
        async with anyio.create_task_group() as task_group:
            hop.nudge()
            assert await hop.take() == []
            assert not hop.is_over
            task_group.start_soon(send_all, hop, [False, True])
            assert await received(hop) == [[0], [1]]
        assert hop.is_over

    run(main)


def test_sender_that_the_receiver_cancels_ends_by_that(run: Callable[[Main], None]) -> None:
    async def main() -> None:
        hop = EventChannel[int](1)
        with anyio.CancelScope() as sender:
            hop.leave()
            sender.cancel()
            await hop.send(1)
        assert sender.cancelled_caught

    run(main)
