"""A panel to read: it fits the window, and goes away for what is typed and for questions."""

from collections.abc import Mapping

import anyio
import pytest

from panpan.faces.terminal.dialogs.dialog_queue import DialogQueue
from panpan.faces.terminal.dialogs.panel import PanelDialog, watch_panel
from panpan.faces.terminal.dialogs.pick import PickDialog
from panpan.session.command import Option
from panpan.types.content import Display, table, text
from tests.faces.terminal.dialogs.drawn import THEMES, Clock, DialogScreen, plain, press_all, rows_of

SECTIONS = {
    "Keys": table((f"Key{number}", f"does {number}") for number in range(30)),
    "Commands": table([("/help", "shows this")]),
}


@pytest.mark.parametrize("room", [1, 2, 3, 10, 100])
@pytest.mark.parametrize("width", [16, 40, 120])
def test_panel_fits_the_window(room: int, width: int) -> None:
    assert 1 <= len(rows_of(PanelDialog(SECTIONS, room=lambda: room), width)) <= room


def test_panel_scrolls_to_every_row() -> None:
    panel = PanelDialog(SECTIONS, room=lambda: 8)
    seen = set[str]()
    for _ in range(30):
        seen.update(rows_of(panel)[1:-1])
        panel.press("pagedown")
    assert len(seen) == 30

    press_all(panel, "home", "down")
    assert "Key1 " in rows_of(panel)[1]
    assert rows_of(panel)[-1].endswith("lines 2-7 of 30: PgDn, PgUp")


def test_tab_shows_the_other_section() -> None:
    panel = PanelDialog(SECTIONS)
    panel.press("tab")
    assert "/help" in rows_of(panel)[1]
    panel.press("s-tab")
    assert "Key0" in rows_of(panel)[1]


class Opened:
    """A panel in a queue of dialogs."""

    def __init__(self) -> None:
        self.queue = DialogQueue(lambda: None, Clock(), lambda: False)
        self.panel = PanelDialog(SECTIONS, room=lambda: 20)

    def draw(self) -> str:
        rows = self.queue.lines(60, 20, THEMES[0])
        self.queue.was_drawn(is_whole=True)
        return "\n".join(map(plain, rows))


async def test_panel_takes_keys_at_once_and_esc_closes_it() -> None:
    one = Opened()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.queue.ask, one.panel)
        await anyio.wait_all_tasks_blocked()
        one.draw()
        assert one.queue.takes_keys
        one.queue.press("escape")
    assert one.queue.current is None


async def test_letter_closes_the_panel_and_means_nothing_to_it() -> None:
    one = Opened()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.queue.ask, one.panel)
        await anyio.wait_all_tasks_blocked()
        one.draw()
        assert not one.queue.takes("x")
        one.queue.typed_elsewhere()
    assert one.queue.current is None


async def test_question_takes_the_place_of_the_panel() -> None:
    one = Opened()
    question = PickDialog("Which?", [Option("this")])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.queue.ask, one.panel)
        await anyio.wait_all_tasks_blocked()
        one.draw()
        tasks.start_soon(one.queue.ask, question)
        await anyio.wait_all_tasks_blocked()

        assert one.queue.current is question
        assert one.draw().startswith("? Which?  a moment …"), "alone, and not the second of two"
        tasks.cancel_scope.cancel()


class Watching(DialogScreen):
    """Something that is watched: what is seen of it, and pauses that the test ends."""

    def __init__(self) -> None:
        self.seen: Mapping[str, Display] = {}
        self.queue = DialogQueue(lambda: None, Clock())
        super().__init__(self.queue, room=5)
        self._next = anyio.Event()

    async def run(self) -> None:
        await watch_panel(self, self.look, self.pause)

    def refresh(self) -> None:
        pass

    async def look(self) -> Mapping[str, Display]:
        return self.seen

    async def pause(self) -> None:
        self._next = anyio.Event()
        await self._next.wait()

    async def see(self, **lines: int) -> list[str]:
        """Let other lines be there, wait until they were looked at, and return what is shown."""
        self.seen = {title: text("\n".join(map(str, range(count)))) for title, count in lines.items()}
        self._next.set()
        await anyio.wait_all_tasks_blocked()
        return [plain(row) for row in self.queue.lines(60, 5, THEMES[0])]


async def test_watched_item_is_refreshed_until_its_end() -> None:
    one = Watching()
    one.seen = {"first": text("0")}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.run)
        await anyio.wait_all_tasks_blocked()
        rows = await one.see(later=20)
        assert rows[0].startswith("? later")
        assert rows[1:4] == ["17", "18", "19"]

        one.queue.was_drawn(is_whole=True)
        one.queue.press("up")
        assert (await one.see(later=30))[1:4] == ["16", "17", "18"], "where the user went"
        await one.see()
    assert one.queue.current is None, "it is over"


async def test_watching_ends_with_escape() -> None:
    one = Watching()
    one.seen = {"first": text("0")}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.run)
        await anyio.wait_all_tasks_blocked()
        one.queue.lines(60, 5, THEMES[0])
        one.queue.was_drawn(is_whole=True)
        one.queue.press("escape")
