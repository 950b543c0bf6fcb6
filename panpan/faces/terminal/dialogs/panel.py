"""Panel for reading: it shows one of several sections, and closes as soon as anything is typed."""

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence

import anyio

from panpan.errors import unwrap_single_exception
from panpan.faces.terminal.dialogs.dialog import Dialog, Page
from panpan.faces.terminal.rendering.cells import cut, fit_parts
from panpan.faces.terminal.rendering.displays import display_rows
from panpan.faces.terminal.screen.screen import Screen
from panpan.faces.terminal.screen.theme import Theme
from panpan.session.command import PanelSource
from panpan.system.text.terminal_text import clean_line
from panpan.types.content import Display

_FRAME_ROWS = 2
"""Rows of the titles and the hint; the hint is left out first if there is no room."""


class PanelDialog(Dialog[bool]):
    """Shows titled sections, one at a time; the answer is True once the panel is closed."""

    blocks_turn = False
    is_transient = True

    def __init__(
        self,
        sections: Mapping[str, Display],
        *,
        room: Callable[[], int] = lambda: sys.maxsize,
        follows_end: bool = False,
    ) -> None:
        super().__init__()
        self._at = 0
        self._page = Page()
        self._room = room
        self._follows_end = follows_end
        """True until the user scrolls up."""
        self.show(sections)

    def show(self, sections: Mapping[str, Display]) -> None:
        """Replace the sections."""
        self._sections, self._titles = sections, [*sections]

    def lines(self, width: int, theme: Theme) -> Sequence[str]:
        rows = display_rows(self._sections[self._titles[self._at]], width, theme)
        room = self._room()
        if self._follows_end:
            self._page.scroll(len(rows))
        shown = self._page.of(rows, min(len(rows), max(room - _FRAME_ROWS, 0)))
        hints = [("esc or typing closes", 0)]
        if len(self._titles) > 1:
            hints.append((f"tab: {self._titles[self._next(1)]}", 1))
        if self._page.is_cut:
            hints.append((self._page.note(is_folded=False), 2))
        hint = theme.paint("dim", f"  {fit_parts(hints, width - 2, ' · ')}")
        return [cut(self._heading(theme), width), *shown, hint][: max(room, 1)]

    def _heading(self, theme: Theme) -> str:
        """Return the titles, the current one first and in colour."""
        return "  ".join(
            theme.paint("question" if at == self._at else "dim", f"? {title}" if at == self._at else title)
            for at, title in enumerate(map(clean_line, self._titles))
        )

    def takes(self, key: str) -> bool:
        return len(key) > 1

    def press(self, key: str) -> None:
        match key:
            case "escape" | "c-c" | "enter":
                self.answer = True
            case "tab" | "s-tab":
                self._at, self._page = self._next(1 if key == "tab" else -1), Page()
            case "pagedown" | "pageup":
                self._page.turn(key)
            case "down" | "up":
                self._page.scroll(1 if key == "down" else -1)
            case "home" | "end":
                self._page.scroll(sys.maxsize if key == "end" else -sys.maxsize)
            case _:
                return
        self._follows_end = self._follows_end and key not in ("up", "pageup", "home")

    def paste(self, text: str) -> bool:
        return False

    def as_lines(self, width: int, theme: Theme) -> Sequence[str]:
        rows = list[str]()
        for title, shape in self._sections.items():
            rows += [*([""] if rows else []), theme.paint("strong", clean_line(title))]
            rows += display_rows(shape, width, theme)
        return rows

    def take_line(self, said: str) -> str:
        self.answer = True
        return ""

    def _next(self, step: int) -> int:
        return (self._at + step) % len(self._titles)


REFRESH_S = 1.0
"""Seconds between two updates of a watched panel."""


async def _until_next_look() -> None:
    await anyio.sleep(REFRESH_S)


async def watch_panel(
    screen: Screen, look: PanelSource, pause: Callable[[], Awaitable[object]] = _until_next_look
) -> None:
    """Show the sections that `look` returns in a panel, and update them after each pause until there are none."""
    if not (sections := await look()):
        return
    dialog = PanelDialog(sections, room=lambda: screen.room, follows_end=True)

    async def look_again() -> None:
        await pause()
        while sections := await look():
            dialog.show(sections)
            screen.refresh()
            await pause()
        tasks.cancel_scope.cancel("there is nothing more to see")

    with unwrap_single_exception():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(look_again)
            await screen.ask(dialog)
            tasks.cancel_scope.cancel("the user has seen enough")
