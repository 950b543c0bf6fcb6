"""The model is woken when nothing else goes on: not while something is done for the user, nor after they stopped it."""

import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from panpan.config.settings import BackgroundSettings
from panpan.core.hooks import Addition, Hook, Round
from panpan.errors import ProviderError
from panpan.faces.terminal.input.keys import SentPrompt
from panpan.faces.terminal.prompt_queue import PromptQueue
from panpan.session.command import Command
from panpan.types.messages import SystemReminder
from tests.faces.terminal.work_fixtures import FakeScreen, HeldLLM, connect, screen_in, until, view_on
from tests.fakes.hub import hub_of
from tests.fakes.scripted_llm import say
from tests.fakes.settings import settings_with


class Ended(Hook):
    """Has something to tell once a test says so."""

    news = ""

    @property
    def wants_turn(self) -> bool:
        return bool(self.news)

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        news, self.news = self.news, ""
        return [SystemReminder(text=news, cause="task:1")] if news else []


@dataclass
class Working:
    work: PromptQueue
    llm: HeldLLM
    screen: FakeScreen
    hook: Ended

    def task_ends(self) -> None:
        self.hook.news = "a task has ended"
        self.work.wake()

    async def turn(self, prompt: str) -> None:
        """Run a turn to its end."""
        asked = len(self.llm.requests)
        self.work.send(SentPrompt(prompt))
        self.llm.let_go()
        await until(lambda: len(self.llm.requests) > asked and not self.work.is_busy)

    @property
    def newest(self) -> str:
        return self.llm.requests[-1][-1].text


@asynccontextmanager
async def working(tmp_path, *replies, wakes=True) -> AsyncGenerator[Working, None]:
    folder = tmp_path / "workspace"
    folder.mkdir()
    llm, hook = HeldLLM(*replies), Ended()
    settings = settings_with(background=BackgroundSettings(wake=wakes))
    screen = screen_in(folder, llm, hooks=[hook], settings=settings)
    go_on = anyio.Event()

    async def wait(terminal, rest) -> None:
        await go_on.wait()

    screen.go_on = go_on
    async with hub_of(screen.session) as hub, anyio.create_task_group() as tasks:
        view = view_on(screen)
        work = PromptQueue(screen, connect(hub, screen, view), view, [Command("wait", "Wait", wait)], lambda text: None)
        tasks.start_soon(work.run)
        yield Working(work, llm, screen, hook)
        tasks.cancel_scope.cancel()


async def test_idle_model_is_told_at_once(tmp_path):
    async with working(tmp_path) as it:
        await it.turn("build it")
        it.task_ends()
        await until(lambda: len(it.llm.requests) == 2)
        assert it.newest == "a task has ended"
        it.llm.let_go()
        await until(lambda: not it.work.is_busy)

    assert "answer 1" in it.screen.text


async def test_waking_can_be_disabled_until_the_next_prompt(tmp_path):
    async with working(tmp_path, wakes=False) as it:
        await it.turn("build it")
        it.task_ends()
        await anyio.wait_all_tasks_blocked()
        assert len(it.llm.requests) == 1
        await it.turn("and?")

    assert [message.text for message in it.llm.requests[1]][-2:] == ["and?", "a task has ended"]


async def test_news_that_come_during_a_turn_wake_behind_it(tmp_path):
    async with working(tmp_path) as it:
        it.work.send(SentPrompt("build it"))
        await until(lambda: it.llm.requests)
        it.task_ends()
        it.llm.let_go()
        await until(lambda: len(it.llm.requests) == 2)

    assert it.newest == "a task has ended"


async def test_news_told_to_the_running_turn_wakes_nobody(tmp_path):
    async with working(tmp_path) as it:
        it.work.send(SentPrompt("build it"))
        it.task_ends()  # before the request
        it.llm.let_go(2)
        await until(lambda: it.llm.requests and not it.work.is_busy)
        await anyio.wait_all_tasks_blocked()

    assert len(it.llm.requests) == 1


async def test_command_that_is_under_way_is_waited_for(tmp_path):
    async with working(tmp_path) as it:
        it.work.send(SentPrompt("/wait"))
        await until(lambda: it.work.is_busy)
        it.task_ends()
        await anyio.wait_all_tasks_blocked()
        assert it.llm.requests == []
        it.screen.go_on.set()
        await until(lambda: it.llm.requests)

    assert it.newest == "a task has ended"


async def test_command_of_the_shell_is_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    async with working(tmp_path) as it:
        it.work.send(SentPrompt(f"!cat {tmp_path / 'pipe'}"))
        await until(lambda: it.work.is_busy)
        await anyio.wait_all_tasks_blocked()
        it.task_ends()
        await anyio.wait_all_tasks_blocked()
        assert it.llm.requests == []
        (tmp_path / "pipe").write_text("done\n")
        await until(lambda: it.llm.requests)

    assert it.newest == "a task has ended"


async def test_leaving_question_is_not_disturbed(tmp_path):
    async with working(tmp_path) as it:
        it.work.close()
        it.task_ends()
        await anyio.wait_all_tasks_blocked()
        assert it.llm.requests == []
        it.work.open()
        await until(lambda: it.llm.requests)


async def test_interrupt_keeps_news_for_the_next_prompt(tmp_path):
    async with working(tmp_path) as it:
        it.work.send(SentPrompt("build it"))
        await until(lambda: it.llm.requests)
        it.task_ends()
        it.work.interrupt()
        await until(lambda: not it.work.is_busy)
        await anyio.wait_all_tasks_blocked()
        assert len(it.llm.requests) == 1
        await it.turn("go on")

    assert it.newest == "a task has ended"


async def test_woken_turn_that_fails_says_so_and_is_not_tried_again(tmp_path):
    async with working(tmp_path, say("answer"), ProviderError("the model is gone"), say("back")) as it:
        await it.turn("build it")
        it.llm.let_go(2)
        it.task_ends()
        await until(lambda: "the model is gone" in it.screen.text)
        it.task_ends()
        await anyio.wait_all_tasks_blocked()
        assert len(it.llm.requests) == 2


async def test_prompt_sent_meanwhile_comes_in_the_next_round(tmp_path):
    async with working(tmp_path) as it:
        await it.turn("build it")
        it.task_ends()
        await until(lambda: len(it.llm.requests) == 2)
        it.work.send(SentPrompt("stop it"))
        await until(lambda: it.work.waiting)
        assert it.work.waiting[0].until == "next round"
        it.llm.let_go(2)
        await until(lambda: not it.work.is_busy)

    assert it.newest == "stop it"


async def test_waking_without_news_shows_nothing(tmp_path):
    async with working(tmp_path) as it:
        await it.turn("build it")
        shown = it.screen.text
        it.work.wake()
        await anyio.wait_all_tasks_blocked()

    assert it.screen.text == shown
