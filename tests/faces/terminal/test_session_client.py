"""Prompts become turns, one after the other; what never got to the model comes back."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import pytest

from panpan.errors import ProviderError
from panpan.faces.terminal.session_client import SessionClient
from panpan.faces.terminal.views.turn_view import TurnCallbacks, TurnView
from panpan.faces.turn_text import WaitingTime
from panpan.hub.hub import Hub
from panpan.types.messages import UserMessage
from tests.faces.terminal.work_fixtures import FakeScreen, HeldLLM, NoDialogs, screen_in, until, view_on
from tests.fakes.hub import Commands, hub_of
from tests.fakes.scripted_llm import say


@dataclass
class Running:
    turns: SessionClient
    llm: HeldLLM
    screen: FakeScreen
    given_back: list[str]
    hub: Hub
    drawn: list[str]
    """Mode at each time that the state was drawn."""


@asynccontextmanager
async def running(tmp_path, *replies, **parts) -> AsyncGenerator[Running, None]:
    llm = HeldLLM(*replies)
    screen = screen_in(tmp_path / "workspace", llm, **parts)
    given_back: list[str] = []
    drawn: list[str] = []
    async with hub_of(screen.session) as hub, anyio.create_task_group() as tasks:
        turns = SessionClient(
            hub,
            view_on(screen),
            NoDialogs(),
            given_back.append,
            refresh=lambda: drawn.append(hub.session.permission_mode),
        )
        tasks.start_soon(turns.run)
        yield Running(turns, llm, screen, given_back, hub, drawn)
        tasks.cancel_scope.cancel()


def texts(messages):
    return [message.text for message in messages]


async def begin(it: Running, text: str) -> None:
    """Begin a turn, and wait until the model is asked."""
    asked = len(it.llm.requests)
    it.turns.submit(UserMessage.of(text))
    await until(lambda: len(it.llm.requests) > asked)


async def test_prompt_begins_a_turn_and_others_queue_behind_it(tmp_path):
    async with running(tmp_path) as it:
        assert not it.turns.is_busy
        it.turns.submit(UserMessage.of("first"))
        assert it.turns.is_busy
        await until(lambda: it.llm.requests)
        it.turns.submit(UserMessage.of("second"))
        it.turns.submit(UserMessage.of("third"))
        assert texts(it.turns.queued) == ["second", "third"]
        it.llm.let_go(3)
        await until(lambda: not it.turns.is_busy)

    assert it.llm.asked == [["first"], ["first", "second"], ["first", "second", "third"]]
    assert "answer 2" in it.screen.text


class Echo(TurnView):
    """Notes the prompts that other clients have sent."""

    def __init__(self, screen: FakeScreen) -> None:
        super().__init__(screen, screen.session.conversation, TurnCallbacks(), waiting=WaitingTime(lambda: 0.0))
        self.came: list[str] = []

    def prompt_came(self, prompt: UserMessage) -> None:
        self.came.append(prompt.text)


async def test_prompts_of_other_clients_are_told_apart_from_typed_ones(tmp_path):
    screen = screen_in(tmp_path / "workspace", llm := HeldLLM())
    async with hub_of(screen.session) as hub, anyio.create_task_group() as tasks:
        turns = SessionClient(hub, echo := Echo(screen), NoDialogs(), lambda text: None)
        tasks.start_soon(turns.run)
        await hub.submit("theirs", client="window 1")
        await until(lambda: llm.requests)
        await hub.submit("theirs at once", client="window 1", delivery="steer")
        turns.steer(UserMessage.of("mine at once"))
        turns.submit(UserMessage.of("mine"))
        llm.let_go(3)
        await until(lambda: not turns.is_busy)
        tasks.cancel_scope.cancel()

    assert llm.asked[-1] == ["theirs", "theirs at once", "mine at once", "mine"]
    assert echo.came == ["theirs", "theirs at once"]


async def test_steering_waits_for_the_round_or_begins_a_turn(tmp_path):
    async with running(tmp_path) as it:
        it.turns.steer(UserMessage.of("go"))
        await until(lambda: it.llm.requests)
        it.turns.steer(UserMessage.of("not so fast"))
        assert (texts(it.turns.steering), it.turns.queued) == (["not so fast"], [])
        it.llm.let_go(2)
        await until(lambda: not it.turns.is_busy)

    assert it.llm.asked == [["go"], ["go", "not so fast"]]


async def test_take_back_begins_with_messages_behind_the_turn(tmp_path):
    async with running(tmp_path) as it:
        await begin(it, "go")
        it.turns.submit(UserMessage.of("afterwards"))
        it.turns.steer(UserMessage.of("in the turn"))

        taken = [it.turns.take_back() for _ in range(3)]
        it.llm.let_go()
        await until(lambda: not it.turns.is_busy)

    assert [message and message.text for message in taken] == ["afterwards", "in the turn", None]
    assert it.llm.asked == [["go"]]


async def test_interrupt_ends_the_turn_and_returns_undelivered_prompts(tmp_path):
    async with running(tmp_path) as it:
        assert not it.turns.interrupt()
        await begin(it, "go")
        it.turns.submit(UserMessage.of("afterwards"))
        it.turns.steer(UserMessage.of("in the turn"))
        assert it.turns.interrupt()
        assert not it.turns.interrupt()  # it was told
        await until(lambda: not it.turns.is_busy)

    assert it.given_back == ["in the turn\nafterwards"]
    assert (it.turns.steering, it.turns.queued) == ((), [])
    assert len(it.llm.requests) == 1


async def test_turn_that_is_about_to_begin_is_given_back(tmp_path):
    async with running(tmp_path) as it:
        it.turns.submit(UserMessage.of("go"))
        it.turns.submit(UserMessage.of("and this"))
        assert it.turns.interrupt()
        assert not it.turns.interrupt()
        await anyio.wait_all_tasks_blocked()
        assert not it.turns.is_busy
        await begin(it, "again")

    assert it.given_back == ["go\nand this"]
    assert it.llm.asked == [["again"]]


async def test_prompt_after_an_interrupt_is_an_ordinary_turn(tmp_path):
    async with running(tmp_path) as it:
        await begin(it, "go")
        it.turns.interrupt()
        await until(lambda: not it.turns.is_busy)
        await begin(it, "again")
        it.turns.submit(UserMessage.of("and then"))
        it.llm.let_go(2)
        await until(lambda: not it.turns.is_busy)

    assert it.given_back == []
    assert it.llm.asked[-1][-2:] == ["again", "and then"]


async def test_turn_that_fails_says_so_and_gives_back_what_waits(tmp_path):
    async with running(tmp_path, ProviderError("the model is gone"), say("back")) as it:
        await begin(it, "go")
        it.turns.submit(UserMessage.of("afterwards"))
        it.llm.let_go()
        await until(lambda: not it.turns.is_busy)
        assert it.given_back == ["afterwards"]
        await begin(it, "again")
        it.llm.let_go()
        await until(lambda: not it.turns.is_busy)

    assert "✗ the model is gone" in it.screen.text
    assert "back" in it.screen.text


@pytest.mark.parametrize("in_a_turn", [False, True])
async def test_note_asks_for_nothing_and_is_in_the_next_request(tmp_path, in_a_turn):
    async with running(tmp_path) as it:
        if in_a_turn:
            await begin(it, "go")
        it.turns.note(UserMessage.of("a command ran"))
        if in_a_turn:
            it.llm.let_go()
            await until(lambda: not it.turns.is_busy)
        assert len(it.llm.requests) == in_a_turn
        assert texts(it.screen.session.conversation.messages[-1:]) == ["a command ran"]
        await begin(it, "what did it print?")

    assert it.llm.asked[-1][-2:] == ["a command ran", "what did it print?"]


async def test_note_without_space_in_the_log_is_reported(tmp_path):
    async with running(tmp_path) as it:
        await begin(it, "go")
        it.turns.note(UserMessage.of("a command ran"))
        log = it.screen.session.agent.transcript.log
        fd, log._fd = log._fd, os.open(log.path, 0)  # read-only: every write fails
        it.llm.let_go()
        await until(lambda: not it.turns.is_busy)
        assert "cannot be written" in it.screen.text
        os.close(log._fd)
        log._fd = fd
        await begin(it, "again")

    assert it.llm.asked[-1] == ["go", "a command ran", "again"]


async def test_turn_is_busy_until_it_is_shown_to_its_end(tmp_path):
    async with running(tmp_path) as it:
        behind, caught_up = anyio.Event(), anyio.Event()

        async def drain():
            behind.set()
            await caught_up.wait()

        await begin(it, "go")
        it.screen.drain = drain
        it.llm.let_go()
        await behind.wait()
        await it.hub.idle()
        await anyio.wait_all_tasks_blocked()
        assert it.turns.is_busy
        caught_up.set()
        await until(lambda: not it.turns.is_busy)

    assert "answer 0" in it.screen.text


async def test_change_by_another_client_is_drawn(tmp_path):
    async with running(tmp_path) as it:
        await anyio.wait_all_tasks_blocked()
        it.drawn.clear()
        it.hub.session.set_permission_mode("acceptEdits")
        await until(lambda: it.drawn)

    assert it.drawn == ["acceptEdits"]


async def test_output_of_a_command_from_elsewhere_is_shown(tmp_path):
    async with running(tmp_path, commands=Commands()) as it:
        await it.hub.submit("/hello", client="window")
        await until(lambda: not it.turns.is_busy)

    assert "hello there" in it.screen.text
