"""Who leaves is asked what becomes of tasks that run, and can stay; nothing holds up who wants to leave at once."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace

import anyio
import pytest

from panpan.config.settings import BackgroundSettings, Settings
from panpan.ui.repl.commands.command import Leave, OpenSession
from panpan.ui.repl.leaving import Leaving
from tests.fakes.background import FakeBackground, task


@dataclass
class Left:
    background: FakeBackground
    answers: list[int | None]
    asked: list[str] = field(default_factory=list)
    is_open: bool = True
    is_left: bool = False

    def close(self) -> None:
        self.is_open = False

    def open(self) -> None:
        self.is_open = True

    async def choose(self, title, options):
        self.asked += [title, *(f"{option.label}: {option.detail}" for option in options)]
        if not self.answers:
            await anyio.sleep_forever()
        return self.answers.pop(0)


@asynccontextmanager
async def leaving(*tasks, answers=(), at_exit="ask") -> AsyncGenerator[tuple[Leaving, Left], None]:
    it = Left(FakeBackground(*tasks), list(answers))
    session = SimpleNamespace(
        background=it.background,
        settings=Settings(background=BackgroundSettings(at_exit=at_exit)),
        info=SimpleNamespace(id="s1"),
    )
    way = Leaving(session, it, it.choose)

    async def wait() -> None:
        await way.wait()
        it.is_left = True

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        yield way, it
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()


async def test_where_nothing_runs_nobody_is_asked():
    async with leaving(task(state="finished"), task("a", kind="subagent")) as (way, it):
        way.want(OpenSession("other"))

    assert (it.is_left, it.asked, way.then) == (True, [], OpenSession("other"))


@pytest.mark.parametrize(("answer", "keeps"), [(0, False), (1, True)])
async def test_tasks_are_stopped_or_kept_as_he_says(answer, keeps):
    async with leaving(task(), answers=[answer]) as (way, it):
        way.want(Leave())

    assert (it.is_left, it.background.keeps) == (True, keeps)
    assert it.asked[:2] == ["1 background task runs. Before you leave:", "Stop: npm run build"]


@pytest.mark.parametrize("answer", [2, None])
async def test_he_may_stay_and_leave_later(answer):
    async with leaving(task(), answers=[answer, 0]) as (way, it):
        way.want(OpenSession("other"))
        await anyio.wait_all_tasks_blocked()
        assert (it.is_left, it.is_open) == (False, True)
        way.want(Leave())
        await anyio.wait_all_tasks_blocked()

    assert (it.is_left, it.is_open, way.then) == (True, False, Leave())


async def test_his_settings_answer_for_him():
    async with leaving(task(), at_exit="keep") as (way, it):
        way.want(Leave())

    assert (it.is_left, it.asked) == (True, [])


async def test_who_leaves_at_once_is_not_held_up_by_the_question():
    async with leaving(task()) as (way, it):
        way.want(OpenSession("other"))
        await anyio.wait_all_tasks_blocked()
        assert not it.is_left
        way.want_at_once()

    assert (it.is_left, it.background.keeps, way.then) == (True, False, Leave())
