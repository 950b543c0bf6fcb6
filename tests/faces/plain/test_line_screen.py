"""The screen of lines: what is printed when, what answers a question, and how one leaves."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from panpan.faces.plain.line_screen import CUT, DROPPED, HOW_TO_LEAVE, PROMPT, LineScreen
from panpan.faces.terminal.dialogs.panel import PanelDialog
from panpan.faces.terminal.dialogs.pick import pick_option
from panpan.faces.turn_text import WaitingTime
from panpan.session.command import Leave, Next, Option
from panpan.types.content import TextBlock, table
from panpan.types.events import BlockFinished, BlockStarted, TextDelta
from panpan.types.messages import UserMessage
from tests.faces.memory import Memory
from tests.faces.plain.terminal import Keyboard, terminal

OPTIONS = [Option("this"), Option("that")]


@dataclass
class Prompts:
    """Sent texts; settled unless the test holds it up."""

    sent: list[str] = field(default_factory=list)
    is_settled: bool = True

    def send(self, sent: Any) -> None:
        self.sent.append(sent.text)


@dataclass
class ExitRequest:
    wanted: list[Next] = field(default_factory=list)
    is_at_once: bool = False

    def request(self, then: Next) -> None:
        self.wanted.append(then)

    def request_now(self) -> None:
        self.is_at_once = True


@dataclass
class Open:
    """A screen on a pseudo-terminal, which takes prompts."""

    screen: LineScreen
    keyboard: Keyboard
    out: Memory
    prompts: Prompts
    exit_request: ExitRequest

    async def until(self, condition: Callable[[], object]) -> None:
        with anyio.fail_after(20):
            while not condition():  # noqa: ASYNC110 - a terminal has no event for what it has taken
                await anyio.sleep(0.005)

    async def shows(self, text: str, times: int = 1) -> None:
        await self.until(lambda: self.out.text.count(text) >= times)

    async def pick(self) -> int | None:
        return await pick_option(self.screen, "Which?", OPTIONS)


@asynccontextmanager
async def opened(first_prompt: str | None = None, out: Memory | None = None) -> AsyncGenerator[Open, None]:
    with terminal() as (keyboard, lines):
        out = out or Memory(is_terminal=True)
        screen = LineScreen(out, lines, {}, WaitingTime(lambda: 0.0), has_colour=False)
        it = Open(screen, keyboard, out, Prompts(), ExitRequest())
        async with screen.serving(it.prompts, it.exit_request, first_prompt):  # type: ignore[arg-type]
            yield it


async def test_prompt_sends_lines_and_turns_exit_into_a_command() -> None:
    async with opened() as it:
        for typed, sent in (("hello\n", "hello"), ("  two\nlines \n", "two\nlines"), ("exit\nQ\n", "/exit")):
            await it.shows(PROMPT)
            it.out.text = ""
            it.keyboard.type(typed)
            await it.until(lambda sent=sent: sent in it.prompts.sent)
        await it.shows(PROMPT)
        it.keyboard.type("\n")
        await it.shows(PROMPT, 2)

    assert it.prompts.sent == ["hello", "two\nlines", "/exit"]


async def test_prompt_of_the_command_line_is_printed_and_comes_first() -> None:
    async with opened("fix \x1b[2J it") as it:
        await it.shows(PROMPT, 2)

    assert it.prompts.sent == ["fix \x1b[2J it"]
    assert it.out.text.startswith(f"{PROMPT}fix ")
    assert "\x1b" not in it.out.text


async def test_line_that_the_terminal_cut_is_not_sent() -> None:
    whole = "y" * 5_000  # it came by the command line
    async with opened(whole) as it:
        await it.until(lambda: it.prompts.sent)
        await it.shows(PROMPT, 2)
        it.keyboard.type(f"first\n{'x' * 5_000}, but do not delete anything\n")
        await it.shows(CUT.split(";")[0])
        await it.shows(PROMPT, 3)

    assert it.prompts.sent == [whole]


async def test_prompt_is_hidden_while_something_runs() -> None:
    async with opened() as it:
        await it.shows(PROMPT)
        it.prompts.is_settled = False
        it.keyboard.type("go\n")
        await it.until(lambda: it.prompts.sent)
        it.screen.show("it works")
        await it.screen.drain()
        assert it.out.text == f"{PROMPT}it works\n"
        it.prompts.is_settled = True
        await it.shows(PROMPT, 2)


async def test_output_at_the_prompt_waits_for_the_typed_line() -> None:
    async with opened() as it:
        await it.shows(PROMPT)
        it.screen.show("task ended")
        await it.screen.drain()  # which does not wait for the user
        await anyio.lowlevel.checkpoint()
        assert "task ended" not in it.out.text
        it.prompts.is_settled = False
        it.keyboard.type("go\n")
        await it.shows(f"{PROMPT}task ended\n")


async def test_prompt_of_another_client_is_printed_before_its_answer() -> None:
    async with opened() as it:
        await it.shows(PROMPT)
        it.screen.view.prompt_came(UserMessage.of("theirs"))
        it.screen.show("its answer")
        it.keyboard.type("\n")
        await it.shows(f"{PROMPT}theirs\nits answer\n")


async def test_warning_waits_for_the_typed_line_of_a_session(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with opened() as it:
        await it.shows(PROMPT)
        it.screen.warn("no title")
        await anyio.wait_all_tasks_blocked()
        assert it.out.text == PROMPT
        it.prompts.is_settled = False
        it.keyboard.type("go\n")
        await it.shows(f"{PROMPT}panpan: no title\n")
    assert capsys.readouterr().err == ""
    it.screen.warn("stopped")

    assert capsys.readouterr().err == "panpan: stopped\n"


async def test_pick_repeats_after_a_wrong_number() -> None:
    async with opened() as it:
        it.prompts.is_settled = False
        answers = list[int | None]()

        async def ask() -> None:
            answers.append(await it.pick())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await it.shows("none: ")
            it.keyboard.type("7\n")
            await it.shows("there is no number 7 in this list")
            await it.shows("none: ", 2)
            it.keyboard.type(" 2 \n")

    assert answers == [1]


@pytest.mark.parametrize("before", ["1\n", "1", "1\n1\n", "fix this\n1\n", "1\n1"])
async def test_lines_typed_before_a_question_do_not_answer_it(before: str) -> None:
    async with opened() as it:
        await it.shows(PROMPT)
        it.prompts.is_settled = False
        it.keyboard.type("go\n")
        await it.until(lambda: it.prompts.sent)
        it.keyboard.type(before)
        answers = list[int | None]()

        async def ask() -> None:
            answers.append(await it.pick())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await it.shows("none: ")
            it.keyboard.type("2\n")

    assert answers == [1]
    assert DROPPED in it.out.text


async def test_question_precedes_the_prompt_which_comes_again() -> None:
    async with opened() as it:
        await it.shows(PROMPT)
        it.keyboard.type("half a li")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(it.pick)
            await it.shows("none: ")
            it.keyboard.type("\n")
        await it.shows(PROMPT, 2)
        it.keyboard.type("go\n")
        await it.until(lambda: it.prompts.sent)

    assert it.prompts.sent == ["go"]


async def test_output_before_a_question_at_the_prompt_begins_a_row() -> None:
    async with opened() as it, anyio.create_task_group() as tasks:
        await it.shows(PROMPT)
        it.screen.show("output")
        tasks.start_soon(it.pick)
        await it.shows("Which?")
        it.keyboard.type("1\n")

    assert f"{PROMPT}\noutput\n\n" in it.out.text


async def test_withdrawn_question_leaves_the_others_in_order() -> None:
    answers, scopes = dict[str, int | None](), {name: anyio.CancelScope() for name in "abc"}
    async with opened() as it:
        it.prompts.is_settled = False

        async def ask(name: str) -> None:
            with scopes[name]:
                answers[name] = await pick_option(it.screen, f"{name}?", OPTIONS)

        async with anyio.create_task_group() as tasks:
            for name in "abc":
                tasks.start_soon(ask, name)
                await anyio.lowlevel.checkpoint()
            await it.shows("? a?")
            scopes["b"].cancel("it ended")
            it.keyboard.type("1\n")
            await it.shows("? c?")
            it.keyboard.type("2\n")

    assert answers == {"a": 0, "c": 1}
    assert "? b?" not in it.out.text


async def test_output_during_a_question_follows_its_answer_in_order() -> None:
    async with opened() as it:
        it.prompts.is_settled = False
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(it.pick)
            await it.shows("none: ")
            before = it.out.text
            it.screen.show("first")
            for event in (BlockStarted(0, "text"), TextDelta(0, "second"), BlockFinished(0, TextBlock(text="second"))):
                it.screen.view.show(event)
            it.screen.view.end()
            it.screen.show("third")
            await anyio.lowlevel.checkpoint()
            assert it.out.text == before
            it.keyboard.type("1\n")
        await it.shows("first\nsecond\nthird\n")


async def test_withdrawn_question_ends_its_line() -> None:
    async with opened() as it:
        it.prompts.is_settled = False
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(it.pick)
            await it.shows("none: ")
            tasks.cancel_scope.cancel("interrupted")
        it.screen.show("[Interrupted]")
        await it.shows("none: \n[Interrupted]\n")


async def test_panel_is_printed_and_waits_for_nothing() -> None:
    async with opened() as it:
        it.prompts.is_settled = False
        assert await it.screen.ask(PanelDialog({"Keys": table([("Enter", "sends")])})) is True
        await it.shows("Keys\n  Enter  sends\n")


async def test_end_of_input_leaves_and_repeated_leaves_at_once() -> None:
    async with opened() as it:
        await it.shows(PROMPT)
        it.keyboard.type("\x04")
        await it.until(lambda: it.exit_request.wanted)
        assert isinstance(it.exit_request.wanted[0], Leave)
        assert not it.exit_request.is_at_once

        await it.shows(PROMPT, 2)  # the user stays after all
        it.keyboard.type("go\n")
        await it.until(lambda: it.prompts.sent)
        for count in range(2):
            await it.shows(PROMPT, 3 + count)
            it.keyboard.type("\x04")
        await it.until(lambda: it.exit_request.is_at_once)


async def test_end_of_input_at_questions_does_not_leave_at_once() -> None:
    async with opened() as it:
        await it.shows(PROMPT)
        for count in range(3):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(it.pick)
                await it.shows("none: ", 1 + count)
                it.keyboard.type("\x04")
        await it.shows(PROMPT, 2)
        it.keyboard.type("\x04")
        await it.until(lambda: it.exit_request.wanted)

    assert not it.exit_request.is_at_once


async def test_ctrl_c_without_a_turn_refuses_the_question() -> None:
    async with opened() as it:
        await it.shows(PROMPT)
        answers = list[int | None]()

        async def ask() -> None:
            answers.append(await it.pick())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await it.shows("none: ")
            assert not it.screen.interrupted()
            assert not await it.screen.may_leave()
        await it.shows(PROMPT, 2)
        it.keyboard.type("go\n")
        await it.until(lambda: it.prompts.sent)

    assert answers == [None]
    assert HOW_TO_LEAVE not in it.out.text


async def test_output_behind_the_echo_of_ctrl_c_begins_a_row() -> None:
    async with opened() as it:
        it.prompts.is_settled = False
        it.screen.show("first")
        await it.screen.drain()
        it.screen.interrupted()
        it.screen.show("second", "third")

    assert it.out.text == "first\n\nsecond\nthird\n"


async def test_ctrl_c_belongs_to_the_editor_while_it_is_open() -> None:
    async with opened() as it:
        it.prompts.is_settled = False
        async with it.screen.released():
            assert it.screen.interrupted()
        assert not it.screen.interrupted()


async def test_question_that_outlives_an_interrupt_is_printed_again() -> None:
    async with opened() as it:
        it.prompts.is_settled = False
        answers = list[int | None]()

        async def ask() -> None:
            answers.append(await it.pick())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await it.shows("none: ")
            it.screen.interrupted()
            it.screen.show("[Interrupted]")
            it.prompts.is_settled = True
            await it.shows("[Interrupted]\n\n? Which?")
            await it.shows("none: ", 2)
            it.keyboard.type("2\n")
        await it.shows(PROMPT)

    assert answers == [1]
    assert it.out.text.count(PROMPT) == 1


async def test_typed_lines_are_in_a_log() -> None:
    async with opened(out=Memory(is_terminal=False)) as it:
        await it.shows(PROMPT)
        it.keyboard.type("go\n")
        await it.shows(f"{PROMPT}go\n{PROMPT}")


async def test_text_typed_ahead_is_shown_behind_the_prompt() -> None:
    async with opened() as it:
        await it.shows(PROMPT)
        it.prompts.is_settled = False
        it.keyboard.type("go\n")
        await it.until(lambda: it.prompts.sent)
        it.keyboard.type("one\ntwo\x1b[2J\n")
        it.prompts.is_settled = True
        await it.until(lambda: len(it.prompts.sent) > 1)

    assert f"{PROMPT}one\ntwo" in it.out.text
    assert "\x1b" not in it.out.text


class Slow(Memory):
    """Takes nothing until it is let."""

    def __init__(self) -> None:
        super().__init__(is_terminal=True)
        self.takes = anyio.Event()

    async def write(self, text: str) -> None:
        for letter in text:
            await self.takes.wait()
            await super().write(letter)


async def test_output_is_printed_whole_if_its_waiters_are_cancelled() -> None:
    slow = Slow()
    async with opened(out=slow) as it:
        it.prompts.is_settled = False
        it.screen.show("first")
        it.screen.show("second")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(it.pick)
            tasks.start_soon(it.screen.drain)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel("interrupted")
        slow.takes.set()
        await it.shows("second\n")

    assert it.out.text == "first\nsecond\n"


async def test_question_is_shown_during_endless_output() -> None:
    async with opened() as it:
        it.prompts.is_settled = False

        async def stream() -> None:
            while True:
                it.screen.show("more")
                await it.screen.drain()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stream)
            tasks.start_soon(it.pick)
            await it.shows("none: ")
            tasks.cancel_scope.cancel("seen")


async def test_terminal_that_takes_nothing_does_not_delay_leaving() -> None:
    with anyio.fail_after(5):
        async with opened(out=Slow()) as it:
            it.screen.show("first")
            await anyio.wait_all_tasks_blocked()

    assert it.out.text == ""


async def test_prompt_of_the_command_line_follows_earlier_output() -> None:
    slow = Slow()
    async with opened("fix it", out=slow) as it:
        it.screen.show("panpan in /tmp")
        await anyio.wait_all_tasks_blocked()
        slow.takes.set()
        await it.shows(PROMPT, 2)

    assert it.out.text.startswith(f"panpan in /tmp\n{PROMPT}fix it\n")


async def test_end_of_input_refuses_the_question() -> None:
    async with opened() as it:
        it.prompts.is_settled = False
        answers = list[int | None]()

        async def ask() -> None:
            answers.append(await it.pick())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await it.shows("none: ")
            it.keyboard.type("\x04")

    assert answers == [None]


async def test_second_ctrl_c_at_the_prompt_leaves() -> None:
    async with opened() as it:
        await it.shows(PROMPT)
        assert not await it.screen.may_leave()
        assert it.out.text.endswith(f"\n{HOW_TO_LEAVE}\n{PROMPT}")
        it.keyboard.type("go\n")
        await it.until(lambda: it.prompts.sent)
        assert not await it.screen.may_leave()
        assert await it.screen.may_leave()


async def test_ctrl_c_before_a_session_is_shown_leaves_at_once() -> None:
    with terminal() as (_, lines):
        out = Memory(is_terminal=True)
        assert await LineScreen(out, lines, {}, WaitingTime(lambda: 0.0), has_colour=False).may_leave()

    assert out.text == ""


async def test_output_shown_last_is_printed_on_leaving() -> None:
    async with opened() as it:
        it.prompts.is_settled = False
        it.screen.show("a new session begins")
        it.screen.prefill_input("what I said\x1b[2J")

    assert it.out.text.startswith("a new session begins\nwhat you said:\nwhat I said")
    assert "\x1b" not in it.out.text


async def test_past_turns_precede_later_output(tmp_path: Path) -> None:
    async with opened() as it:
        it.prompts.is_settled = False
        await it.screen.view.show_past([UserMessage.of("look around")])
        it.screen.show("later")
        await it.screen.drain()

    assert it.out.text == "❯ look around\nlater\n"


async def test_long_text_is_printed_from_its_end() -> None:
    async with opened() as it:
        it.prompts.is_settled = False
        await it.screen.read(table((f"line {number}", "x") for number in range(300)), from_end=True)

    assert it.out.text.startswith("… 200 more lines above\n")
    assert "line 299" in it.out.text
    assert "line 199 " not in it.out.text
