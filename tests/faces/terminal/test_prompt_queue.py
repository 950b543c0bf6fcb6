"""Prompts run, or wait where they are seen and can be taken back; an interrupt ends the running one."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import anyio
import pytest

from panpan.app import slash_commands
from panpan.faces.terminal.commands.registry import all_commands
from panpan.faces.terminal.input.keys import SentPrompt
from panpan.faces.terminal.prompt_queue import PromptQueue, Waiting
from panpan.hub.hub import Hub
from panpan.hub.waiting_prompts import MAX_WAITING, WaitingPrompt
from panpan.session.command import Command, Leave
from panpan.types.messages import UserMessage
from tests.faces.terminal.work_fixtures import FakeScreen, HeldLLM, connect, screen_in, until, view_on
from tests.fakes.hub import hub_of

HELD = "!cat pipe"
"""A shell command that runs until somebody writes into the pipe."""


@dataclass
class Working:
    work: PromptQueue
    llm: HeldLLM
    screen: FakeScreen
    given_back: list[str]
    hub: Hub

    def send(self, *texts: str) -> None:
        for text in texts:
            self.work.send(SentPrompt(text))

    @property
    def waiting(self) -> list[tuple[str, str]]:
        return [(one.until, one.text) for one in self.work.waiting]

    async def write_into_pipe(self, text: str = "written\n") -> None:
        """End the command that reads from the pipe, once it does."""
        await anyio.to_thread.run_sync((self.screen.session.info.cwd / "pipe").write_text, text)


def wait_command() -> Command:
    async def run(terminal, rest):
        await anyio.sleep_forever()

    return Command("wait", "Wait", run)


@asynccontextmanager
async def working(tmp_path) -> AsyncGenerator[Working, None]:
    llm = HeldLLM()
    screen = screen_in(tmp_path / "workspace", llm)
    os.mkfifo(tmp_path / "workspace" / "pipe")
    given_back: list[str] = []
    async with hub_of(screen.session) as hub, anyio.create_task_group() as tasks:
        commands = [*all_commands(slash_commands()), wait_command()]
        view = view_on(screen)
        work = PromptQueue(screen, connect(hub, screen, view, given_back.append), view, commands, given_back.append)
        screen.submit = work.submit
        tasks.start_soon(work.run)
        yield Working(work, llm, screen, given_back, hub)
        tasks.cancel_scope.cancel()


async def begin_shell(it: Working) -> None:
    it.send(HELD)
    await until(lambda: it.work.shell_lines(80))


async def begin_turn(it: Working) -> None:
    it.send("go")
    await until(lambda: it.llm.requests)


async def test_idle_queue_has_nothing_to_interrupt_or_take_back(tmp_path):
    async with working(tmp_path) as it:
        assert not it.work.is_busy
        assert not it.work.interrupt()
        assert it.work.take_back() is None
        assert it.work.waiting == []


async def test_prompt_that_the_full_hub_refuses_is_given_back(tmp_path):
    async with working(tmp_path) as it:
        await begin_turn(it)
        for _ in range(MAX_WAITING):
            it.hub.put(WaitingPrompt(UserMessage.of("other")))
        it.send("one more")
        await until(lambda: it.given_back)

    assert it.given_back == ["one more"]
    assert "1,000 prompts wait in this session already" in it.screen.text


async def test_prompt_of_a_command_attaches_what_it_mentions(tmp_path):
    async with working(tmp_path) as it:
        (tmp_path / "workspace" / "style.md").write_text("be brief\n")
        it.send("/review @style.md")
        await until(lambda: it.llm.requests)

    assert "be brief" in str(it.llm.requests[0])


async def test_prompts_sent_during_a_shell_command_follow_it_in_order(tmp_path):
    async with working(tmp_path) as it:
        await begin_shell(it)
        it.send("what did it print?", "!echo second", "/clear")
        await anyio.wait_all_tasks_blocked()
        assert it.waiting == [
            ("after the command", "what did it print?"),
            ("after the command", "!echo second"),
            ("after the command", "/clear"),
        ]
        assert it.llm.requests == []

        await it.write_into_pipe()
        await until(lambda: it.llm.requests)
        await until(lambda: "/clear can't run during a turn" in it.screen.text)

        assert "written" in it.llm.asked[0][0]
        assert it.llm.asked[0][1] == "what did it print?"
        assert it.screen.text.index("written") < it.screen.text.index("! echo second")


async def test_prompts_behind_a_shell_command_are_undone_last_first(tmp_path):
    async with working(tmp_path) as it:
        await begin_shell(it)
        it.send("one", "two")
        await anyio.wait_all_tasks_blocked()
        assert it.work.take_back() == "two"
        assert it.waiting == [("after the command", "one")]
        assert it.work.take_back() == "one"
        assert it.work.take_back() is None
        await it.write_into_pipe()
        await until(lambda: not it.work.is_busy)

    assert it.llm.requests == []


@pytest.mark.parametrize(("line", "shown"), [("/help", "/export"), ("?", "/export"), ("/status", "scripted")])
async def test_command_without_a_turn_runs_at_once_past_the_queue(tmp_path, line, shown):
    async with working(tmp_path) as it:
        await begin_shell(it)
        it.send("afterwards", line)
        await until(lambda: shown in it.screen.text)
        assert it.waiting == [("after the command", "afterwards")]
        assert it.work.shell_lines(80)


@pytest.mark.parametrize("line", ["exit", "quit", "q", "/exit"])
async def test_leaving_waits_for_no_shell_command(tmp_path, line):
    async with working(tmp_path) as it:
        await begin_shell(it)
        it.send(line)
        await until(lambda: it.screen.then == Leave())


async def test_misspelt_command_is_said_to_be_none_at_once(tmp_path):
    async with working(tmp_path) as it:
        await begin_shell(it)
        it.send("/hlep")
        await until(lambda: "there is no command /hlep" in it.screen.text)
        assert it.waiting == []


async def test_prompt_of_a_command_waits_like_a_typed_one(tmp_path):
    async with working(tmp_path) as it:
        await begin_shell(it)
        it.send("/review")
        await until(lambda: it.work.waiting)
        assert it.llm.requests == []
        await it.write_into_pipe()
        await until(lambda: it.llm.requests)
        assert len(it.llm.asked[0]) == 2


async def test_interrupt_ends_the_shell_command_and_not_the_turn(tmp_path):
    async with working(tmp_path) as it:
        await begin_turn(it)
        await begin_shell(it)
        it.send("and this")
        await anyio.wait_all_tasks_blocked()
        assert it.work.interrupt()
        await until(lambda: it.waiting == [("next round", "and this")])
        assert not it.work.shell_lines(80)
        assert it.work.is_busy

        assert it.work.interrupt()
        await until(lambda: not it.work.is_busy)
        assert not it.work.interrupt()

    assert "[interrupted by the user" in it.screen.text
    assert "[Interrupted]" in it.screen.text
    assert it.given_back == ["and this"]


async def test_only_the_turn_is_interrupted_where_only_that_is_meant(tmp_path):
    async with working(tmp_path) as it:
        await begin_turn(it)
        await begin_shell(it)
        assert it.work.interrupt_turn()
        await until(lambda: "[Interrupted]" in it.screen.text)
        assert it.work.shell_lines(80)
        await it.write_into_pipe()
        await until(lambda: not it.work.is_busy)


async def test_command_that_is_interrupted_is_given_back(tmp_path):
    async with working(tmp_path) as it:
        it.send("/wait")
        await until(lambda: it.work.is_busy)
        await anyio.wait_all_tasks_blocked()
        it.send("afterwards")
        assert it.waiting == [("next", "afterwards")]
        assert it.work.interrupt()
        assert not it.work.interrupt()  # it was told
        await until(lambda: it.llm.requests)

    assert it.given_back == ["/wait"]


@pytest.mark.parametrize("steps", range(25))
async def test_interrupt_is_lost_at_no_moment_after_enter(tmp_path, steps):
    async with working(tmp_path) as it:
        it.send("go")
        for _ in range(steps):
            await anyio.lowlevel.checkpoint()
        assert it.work.interrupt()
        await until(lambda: it.given_back or "[Interrupted]" in it.screen.text)
        await until(lambda: not it.work.is_busy)
        await anyio.wait_all_tasks_blocked()

        assert not it.work.is_busy
        assert (it.given_back == ["go"]) != ("[Interrupted]" in it.screen.text)
        assert it.llm.asked in ([], [["go"]])


async def test_interrupt_gives_back_all_inputs_in_order(tmp_path):
    async with working(tmp_path) as it:
        it.send("one", "!echo two", "/status")
        assert it.work.interrupt()
        await anyio.wait_all_tasks_blocked()
        assert it.given_back == ["one\n!echo two\n/status"]
        assert not it.work.is_busy
    assert it.llm.requests == []


async def test_undelivered_prompts_are_left_over_on_leaving(tmp_path):
    llm = HeldLLM()
    screen = screen_in(tmp_path / "workspace", llm)
    async with hub_of(screen.session) as hub:
        session, view = hub.session, view_on(screen)
        work = PromptQueue(
            screen, connect(hub, screen, view), view, [replace(wait_command(), is_immediate=True)], lambda text: None
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work.run)
            work.send(SentPrompt("go"))
            await until(lambda: llm.requests)
            work.send(SentPrompt("!echo $((40 + 2)) shown"))
            await until(lambda: "42 shown" in screen.text)
            work.send(SentPrompt("next round"))
            work.send(SentPrompt("later", is_for_later=True))
            await until(lambda: len(work.waiting) == 2)
            work.send(SentPrompt("/wait"))
            work.send(SentPrompt("behind it"))
            await until(lambda: len(work.waiting) == 3)
            tasks.cancel_scope.cancel()

        assert [sent.text for sent in work.left_over] == ["next round", "later", "/wait", "behind it"]
    assert "42 shown" in session.conversation.messages[-1].text  # it was seen, so the model shall know of it


async def test_waiting_prompts_are_listed_in_their_order(tmp_path):
    async with working(tmp_path) as it:
        await begin_turn(it)
        it.send("now")
        it.work.send(SentPrompt("later", is_for_later=True))
        await until(lambda: len(it.work.waiting) == 2)
        await begin_shell(it)
        it.send("last")
        await anyio.wait_all_tasks_blocked()

        assert it.work.waiting == [
            Waiting("next round", "now"),
            Waiting("after the turn", "later"),
            Waiting("after the command", "last"),
        ]
        assert [it.work.take_back() for _ in range(4)] == ["last", "later", "now", None]


async def test_impossible_shell_command_is_reported_and_blocks_nothing(tmp_path):
    async with working(tmp_path) as it:
        it.send("!echo " + "x" * 200_000, "and now?")
        await until(lambda: it.llm.requests)
        assert "write a script file" in it.screen.text
        assert it.llm.asked == [["and now?"]]


async def test_unhandled_prompts_are_left_over_at_closing(tmp_path):
    async with working(tmp_path) as it:
        await begin_shell(it)
        it.send("one", "!two")
        it.work.close()
        await it.write_into_pipe()
        await until(lambda: not it.work.is_busy)
        assert it.work.left_over == [SentPrompt("one"), SentPrompt("!two")]
    assert it.llm.requests == []


async def test_prompt_of_another_client_waits_for_the_command(tmp_path):
    async with working(tmp_path) as it:
        it.send("/wait")
        await until(lambda: it.work.is_busy)
        await it.hub.submit("from elsewhere", client="window")
        await anyio.wait_all_tasks_blocked()
        assert it.llm.requests == []
        assert it.work.interrupt(), "it ends the command alone"
        await until(lambda: it.llm.requests)
        it.llm.let_go()
        await until(lambda: not it.work.is_busy)

    assert it.llm.asked == [["from elsewhere"]]
