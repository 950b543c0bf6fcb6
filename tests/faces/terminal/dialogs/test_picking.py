"""Words typed in a list are looked up beside it, without holding up the user's keys."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import anyio

from panpan.faces.terminal.dialogs.dialog import QUIET_S
from panpan.faces.terminal.dialogs.dialog_queue import DialogQueue
from panpan.faces.terminal.dialogs.pick import pick_option
from panpan.session.command import Option
from tests.faces.terminal.dialogs.drawn import THEMES, Clock, DialogScreen, plain

LISTED = [Option("apple"), Option("pear")]


class Library:
    """Finds an option for a text, when it is let."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may_answer = anyio.Event()

    async def search(self, text: str) -> Mapping[int, Option]:
        self.asked.append(text)
        await self.may_answer.wait()
        return {0: Option("apple", "red"), 2: Option("plum", f"for {text}")}


class Picking(DialogScreen):
    """A list that is open, and the keys for it."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.queue = DialogQueue(self.refresh, self.clock)
        super().__init__(self.queue)
        self.library = Library()
        self.is_drawn = anyio.Event()
        self.answers: list[int | None] = []

    def refresh(self) -> None:
        self.is_drawn.set()

    async def run(self) -> None:
        self.answers.append(await pick_option(self, "Which?", LISTED, self.library.search))

    def rows(self) -> list[str]:
        return [plain(row) for row in self.queue.lines(60, 20, THEMES[0])]

    def press(self, *keys: str) -> None:
        for key in keys:
            self.queue.lines(60, 20, THEMES[0])
            self.queue.was_drawn(is_whole=True)
            self.clock.now_s += 2 * QUIET_S
            self.queue.press(key)

    async def until(self, text: str) -> None:
        """Wait until the screen shows a text."""
        while not any(text in row for row in self.rows()):
            self.is_drawn = anyio.Event()
            await self.is_drawn.wait()


@asynccontextmanager
async def opened() -> AsyncIterator[Picking]:
    """Open the list for the block, which has to answer it."""
    picking = Picking()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(picking.run)
        await anyio.lowlevel.checkpoint()
        yield picking


async def test_found_entries_stand_behind_matches_and_can_be_picked() -> None:
    async with opened() as picking:
        picking.press(*"p")
        picking.library.may_answer.set()
        await picking.until("plum")
        assert [row.strip("❯ ").split()[0] for row in picking.rows()[2:-1]] == ["apple", "pear", "plum"]
        picking.press("up", "enter")

    assert picking.answers == [2]


async def test_lookup_takes_keys_and_the_last_text_counts() -> None:
    async with opened() as picking:
        picking.press(*"zz")
        assert "  nothing fits; looking further …" in picking.rows()
        while not picking.library.asked:
            await anyio.lowlevel.checkpoint()
        picking.press(*"zy")
        picking.library.may_answer.set()
        await picking.until("for zzzy")
        assert picking.library.asked == ["zz", "zzzy"]
        picking.press("escape")

    assert picking.answers == [None]


async def test_list_is_left_while_something_is_looked_up() -> None:
    async with opened() as picking:
        picking.press(*"ap")
        while not picking.library.asked:
            await anyio.lowlevel.checkpoint()
        picking.press("enter")

    assert picking.answers == [0]
