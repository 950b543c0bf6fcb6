"""Text typed up to Enter is one text, and so is a paste; text typed too early can be dropped."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest

from panpan.faces.plain.line_reader import LineReader
from tests.faces.plain.terminal import Keyboard, terminal

END_OF_INPUT = "\x04"
LONGER_THAN_A_PASTE_PAUSES_S = 0.5


@asynccontextmanager
async def waiting_for_the_rest(keyboard: Keyboard, lines: LineReader, typed: str) -> AsyncGenerator[list[str | None]]:
    """The reader has read what was typed and waits for more; then what it returns is in the list."""
    returned: list[str | None] = []

    async def read() -> None:
        returned.append(await lines.next())

    async with anyio.create_task_group() as task_group:
        task_group.start_soon(read)
        keyboard.type(typed)
        await anyio.sleep(LONGER_THAN_A_PASTE_PAUSES_S)
        yield returned


@pytest.mark.parametrize("text", ["one line", "", "eins\nzwei ü\n\n    drei", "\n"])
async def test_lines_in_one_piece_are_one_text(text: str) -> None:
    with terminal() as (keyboard, lines):
        keyboard.type(f"{text}\n")

        assert await lines.next() == text


async def test_lines_one_after_the_other_are_single_texts() -> None:
    with terminal() as (keyboard, lines):
        for text in ("first", "second"):
            keyboard.type(f"{text}\n")
            assert await lines.next() == text


async def test_paste_that_ends_within_a_line_waits_for_its_rest() -> None:
    with terminal() as (keyboard, lines):
        async with waiting_for_the_rest(keyboard, lines, "one\ntwo\nthr") as returned:
            assert returned == []
            keyboard.type("ee\n")

        assert returned == ["one\ntwo\nthree"]


async def test_paste_that_waits_for_its_rest_can_be_forgotten() -> None:
    with terminal() as (keyboard, lines):
        async with waiting_for_the_rest(keyboard, lines, "one\ntw") as returned:
            lines.forget()
            keyboard.type("something else\n")

        assert returned == ["something else"]


async def test_forget_drops_lines_of_a_cancelled_reader() -> None:
    with terminal() as (keyboard, lines):
        keyboard.type("one\ntw")
        with anyio.move_on_after(LONGER_THAN_A_PASTE_PAUSES_S):
            await lines.next()
        lines.forget()
        keyboard.type("next\n")

        assert await lines.next() == "next"


@pytest.mark.parametrize("typed", ["", "y", "y\n", "y\ny\ny"])
async def test_drop_typed_ahead_drops_lines_once(typed: str) -> None:
    with terminal() as (keyboard, lines):
        keyboard.type(typed)

        assert await lines.drop_typed_ahead() == bool(typed)
        keyboard.type("n\n")
        assert await lines.next() == "n"
        assert not await lines.drop_typed_ahead()


async def test_drop_typed_ahead_drops_a_paste_that_still_arrives() -> None:
    with terminal() as (keyboard, lines):

        async def paste() -> None:
            for _ in range(10):
                keyboard.type("y\n")
                await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as task_group:
            task_group.start_soon(paste)
            await anyio.wait_all_tasks_blocked()
            assert await lines.drop_typed_ahead()
        keyboard.type("n\n")

        assert await lines.next() == "n"


async def test_end_of_input_is_final() -> None:
    with terminal() as (keyboard, lines):
        keyboard.type(f"last\n{END_OF_INPUT}")

        assert [await lines.next(), await lines.next()] == ["last", None]
        keyboard.type("more\n")
        assert await lines.next() is None


async def test_go_on_reads_again_after_the_end_of_input() -> None:
    with terminal() as (keyboard, lines):
        keyboard.type(END_OF_INPUT)
        assert await lines.next() is None
        lines.go_on()
        keyboard.type("k\n")

        assert await lines.next() == "k"


async def test_closed_terminal_has_no_more_lines() -> None:
    with terminal() as (keyboard, lines):
        keyboard.unplug()

        await lines.drop_typed_ahead()
        assert await lines.next() is None
