"""Tasks that end are told at once, and the model is woken for them, unless somebody stopped them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

from panpan.faces.terminal.background_watch import BackgroundWatch
from tests.fakes.background import FakeBackground, task


@dataclass
class Watched:
    background: FakeBackground
    said: list[str] = field(default_factory=list)
    woken: int = 0
    drawn: int = 0

    def wake(self) -> None:
        self.woken += 1

    def refresh(self) -> None:
        self.drawn += 1


@asynccontextmanager
async def watching(*tasks) -> AsyncGenerator[Watched, None]:
    it = Watched(FakeBackground(*tasks))
    watch = BackgroundWatch(it.background, it.said.append, it.wake, it.refresh)
    async with anyio.create_task_group() as group:
        group.start_soon(watch.run)
        await anyio.wait_all_tasks_blocked()
        yield it
        group.cancel_scope.cancel()


async def test_end_is_told_and_wakes():
    async with watching(task("3fa80001")) as it:
        drawn = it.drawn
        it.background.end("3fa80001", exit_code=0)
        await anyio.wait_all_tasks_blocked()

    assert it.said == ["Background task 3fa80001 ended: npm run build (exit code 0)"]
    assert (it.woken, it.drawn > drawn) == (1, True)


async def test_task_that_ended_before_is_no_news():
    async with watching(task("3fa80001", state="finished")) as it:
        it.background.start(task("3fa80002"))
        await anyio.wait_all_tasks_blocked()

    assert (it.said, it.woken) == ([], 0)


async def test_task_that_begins_and_ends_between_looks_is_reported():
    async with watching() as it:
        it.background.start(task("3fa80001"))
        it.background.end("3fa80001", "failed")
        await anyio.wait_all_tasks_blocked()

    assert len(it.said) == 1
    assert it.woken == 1


async def test_stopped_task_wakes_nobody():
    async with watching(task("3fa80001")) as it:
        it.background.end("3fa80001", "stopped")
        await anyio.wait_all_tasks_blocked()

    assert len(it.said) == 1
    assert it.woken == 0


async def test_watch_without_background_tasks_ends_at_once():
    it = Watched(FakeBackground())
    await BackgroundWatch(None, it.said.append, it.wake, it.refresh).run()

    assert (it.said, it.woken) == ([], 0)
