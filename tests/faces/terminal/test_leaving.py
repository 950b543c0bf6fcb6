"""Leaving asks about running tasks, and can be called off; leaving at once is never held up."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace

import anyio
import pytest

from panpan.config.settings import BackgroundSettings
from panpan.faces.terminal.background_watch import ExitRequest
from panpan.faces.terminal.screen.theme import Theme
from panpan.session.command import Leave, OpenSession
from tests.fakes.background import FakeBackground, SessionWith, task
from tests.fakes.settings import settings_with


@dataclass
class Left:
    background: FakeBackground
    answers: list[int | None]
    asked: list[str] = field(default_factory=list)
    is_open: bool = True
    is_left: bool = False
    shown: list[str] = field(default_factory=list)
    theme: Theme = field(default_factory=lambda: Theme("dark"))
    width: int = 80

    def close(self) -> None:
        self.is_open = False

    def open(self) -> None:
        self.is_open = True

    def show(self, *lines: str) -> None:
        self.shown += lines

    async def choose(self, title, options, search=None):
        self.asked += [title, *(f"{option.key} {option.label}: {option.detail}" for option in options)]
        if not self.answers:
            await anyio.sleep_forever()
        return self.answers.pop(0)


@asynccontextmanager
async def exit_request(*tasks, answers=(), at_exit="ask") -> AsyncGenerator[tuple[ExitRequest, Left], None]:
    it = Left(FakeBackground(*tasks), list(answers))
    session = SessionWith(
        feature=it.background,
        settings=settings_with(background=BackgroundSettings(at_exit=at_exit)),
        info=SimpleNamespace(id="s1"),
    )
    way = ExitRequest(session, it, it)

    async def wait() -> None:
        await way.wait()
        it.is_left = True

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        yield way, it
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()


async def test_leaving_without_tasks_asks_nothing():
    async with exit_request(task(state="finished"), task("a", kind="subagent", state="stopped")) as (way, it):
        way.request(OpenSession("other"))

    assert (it.is_left, it.asked, way.then) == (True, [], OpenSession("other"))


@pytest.mark.parametrize(("answer", "keeps"), [(0, False), (1, True)])
async def test_leaving_stops_or_keeps_tasks_as_answered(answer, keeps):
    async with exit_request(task(), answers=[answer]) as (way, it):
        way.request(Leave())

    assert (it.is_left, it.background.keeps) == (True, keeps)
    assert it.asked[:2] == ["1 background task runs. Before you leave:", "1 Stop: npm run build"]


@pytest.mark.parametrize("answer", [2, None])
async def test_leaving_can_be_cancelled_and_repeated(answer):
    async with exit_request(task(), answers=[answer, 0]) as (way, it):
        way.request(OpenSession("other"))
        await anyio.wait_all_tasks_blocked()
        assert (it.is_left, it.is_open) == (False, True)
        way.request(Leave())
        await anyio.wait_all_tasks_blocked()

    assert (it.is_left, it.is_open, way.then) == (True, False, Leave())


@pytest.mark.parametrize("at_exit", ["ask", "keep"])
@pytest.mark.parametrize(("answer", "is_left"), [(0, True), (1, False), (None, False)])
async def test_leaving_asks_about_work_that_cannot_be_kept(answer, is_left, at_exit):
    async with exit_request(task(title="find it", kind="subagent"), answers=[answer], at_exit=at_exit) as (way, it):
        it.background.keeps = at_exit == "keep"
        way.request(Leave())
        await anyio.wait_all_tasks_blocked()

        assert (it.is_left, it.is_open, it.background.keeps) == (is_left, not is_left, at_exit == "keep")
    assert it.asked == [
        "1 background task runs. Before you leave:",
        "1 Stop and leave: cannot be kept running: find it",
        "2 Stay here: ",
    ]


async def test_leaving_names_the_tasks_that_cannot_be_kept():
    async with exit_request(task("a", "find it", kind="subagent"), task("b"), answers=[1]) as (way, it):
        way.request(Leave())

    assert (it.is_left, it.background.keeps) == (True, True)
    assert it.asked == [
        "2 background tasks run. Before you leave:",
        "1 Stop: npm run build, find it",
        "2 Keep running: cannot be kept running: find it; panpan -r s1 takes up the session with the others",
        "3 Stay here: ",
    ]


async def test_next_step_is_announced_once_the_user_agreed_to_leave():
    async with exit_request(task(), answers=[2, 0]) as (way, it):
        way.request(OpenSession(message="a new session begins"))
        await anyio.wait_all_tasks_blocked()
        assert it.shown == []
        way.request(OpenSession(message="a new session begins"))
        await anyio.wait_all_tasks_blocked()

    assert ["a new session begins" in line for line in it.shown] == [True]


@pytest.mark.parametrize(("at_exit", "kind"), [("keep", "command"), ("stop", "command"), ("stop", "subagent")])
async def test_at_exit_setting_answers_the_question(at_exit, kind):
    async with exit_request(task(kind=kind), at_exit=at_exit) as (way, it):
        way.request(Leave())

    assert (it.is_left, it.asked) == (True, [])


async def test_leaving_at_once_is_not_held_up_by_the_question():
    async with exit_request(task()) as (way, it):
        way.request(OpenSession("other"))
        await anyio.wait_all_tasks_blocked()
        assert not it.is_left
        way.request_now()

    assert (it.is_left, it.background.keeps, way.then) == (True, False, Leave())
