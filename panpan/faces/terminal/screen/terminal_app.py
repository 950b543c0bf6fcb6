"""The terminal as panpan draws on it: finished lines go into its scrollback, below them live windows that change.

The rule: what is printed is whole lines, printed once. What may still change (the end of an answer, running tools, the
queue, the input) is drawn below and drawn again, at most ten times a second unless the user types.
"""

import errno
import os
import signal
import termios
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TextIO

import anyio
from anyio.lowlevel import checkpoint
from prompt_toolkit.application import Application
from prompt_toolkit.application.run_in_terminal import in_terminal
from prompt_toolkit.data_structures import Size
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import DynamicKeyBindings
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

from panpan.cli_kit.failures import drop_terminal
from panpan.faces.terminal.input.input_box import InputBox
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.terminal.screen.windows import Contents, Windows
from panpan.types.dataclass import dataclass

_BEGIN_UPDATE, _END_UPDATE = "\x1b[?2026h", "\x1b[?2026l"
"""Synchronized output (https://gist.github.com/christianparpart/d8a62cc1ab659194337d73e399004036); others ignore it."""

_GONE = (errno.EIO, errno.EPIPE, errno.ENXIO)
"""A terminal that was closed; SIGHUP, which comes with it, ends the program in good order."""


class SteadyOutput(Vt100_Output):
    """Writes to a terminal of the kind that `TERM` says."""

    def __init__(self, stdout: TextIO, term: str | None) -> None:
        # The cursor's position is never asked for: the answer comes as keys, and could be taken for some.
        terminal = Vt100_Output.from_pty(stdout, term)
        super().__init__(stdout, terminal.get_size, term=term, enable_cpr=False)
        self._is_held = False
        self._rows_more: Callable[[], int] = lambda: 0

    def follow(self, rows_more: Callable[[], int]) -> None:
        """Ask, whenever the cursor goes up, for the rows that came in between since the last drawing."""
        self._rows_more = rows_more

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep what is written until the next flush after this."""
        self._is_held = True
        self.write_raw(_BEGIN_UPDATE)
        try:
            yield
        finally:
            self.write_raw(_END_UPDATE)
            self._is_held = False

    def flush(self) -> None:
        if self._is_held:
            return
        try:
            super().flush()
        except OSError as error:
            if error.errno not in _GONE:
                raise
            drop_terminal()

    def erase_down(self) -> None:
        """Erase from the beginning of this row on; not from the corner of the screen, where tmux would keep it all.

        tmux takes that for clearing the screen and puts what was there into its history (`scroll-on-clear`).
        """
        self.write_raw("\x1b[K\x1b[C\x1b[J\x1b[D")

    def cursor_up(self, amount: int) -> None:
        """Go up, also past rows that the terminal broke anew."""
        super().cursor_up(amount + self._rows_more())

    def disable_bracketed_paste(self) -> None:
        """Leave it on while held: a paste that comes at that moment must not be taken for typing."""
        if not self._is_held:
            super().disable_bracketed_paste()


class Scrollback:
    """Keeps lines until they are printed above the windows."""

    def __init__(self, output: SteadyOutput, app: Application[Any]) -> None:
        self._output = output
        self._app = app
        self._waiting: list[str] = []

    @property
    def count(self) -> int:
        return len(self._waiting)

    def add(self, *lines: str) -> None:
        self._waiting += lines

    def print(self, most: int | None = None) -> None:
        """Print the lines that came first, `most` or all, in one write with the windows below them, which blocks."""
        if not self._waiting or most == 0:
            return
        lines = self._waiting[:most]
        del self._waiting[:most]
        text = "".join(f"{line}\r\n" for line in lines)
        if not self._app.is_running or self._app.is_done:
            self._output.write_raw(text)
            self._output.flush()
            return
        with self._output.held():
            self._app.renderer.erase()
            self._output.write_raw(text)
            self._app._redraw()  # `invalidate` would draw later, in a write of its own
        self._output.flush()


# How many rows more what was drawn takes after the window has become narrower, in terminals that break long rows anew.
#
# Without it the rows above would be left where they are, as a second copy. In a terminal that cuts rows off instead,
# going up so far would erase what is no longer ours: so only those count that are known for it.

_PROGRAMS = frozenset({"iTerm.app", "WezTerm", "ghostty", "vscode", "Apple_Terminal", "tmux"})
_VARIABLES = ("TMUX", "VTE_VERSION", "KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "ALACRITTY_WINDOW_ID")


def reflows(env: Mapping[str, str]) -> bool:
    """Return whether the terminal is known to break long rows anew when it becomes narrower."""
    return env.get("TERM_PROGRAM", "") in _PROGRAMS or any(env.get(name) for name in _VARIABLES)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Rows on the screen, down to the caret."""

    columns: int
    """Width of the terminal when it was drawn."""
    row_cells: Sequence[int] = ()
    """Cells of each row above the caret's."""
    caret_cell: int = 0

    def rows_more(self, columns: int) -> int:
        """Return how many rows more there are between the first one and the caret, now that a row has `columns`."""
        if columns >= self.columns or columns < 1:
            return 0
        return sum(max(cells - 1, 0) // columns for cells in self.row_cells) + self.caret_cell // columns


class LastDrawing:
    """Follows the drawings of an application, and tells the windows what of them was seen."""

    def __init__(self, app: Application[Any], output: SteadyOutput, windows: Windows) -> None:
        self.has_been = anyio.Event()
        """Set once anything was drawn."""
        self._app = app
        self._output = output
        self._windows = windows
        self._drawn = Drawn(0)
        self._size: Size | None = None
        """The window's when the last drawing began; it may change meanwhile."""
        app.before_render += lambda _: self._begin()
        app.after_render += lambda _: self._note()
        app.key_processor.before_key_press += lambda _: self._note_key()

    def rows_more(self) -> int:
        """Return how many rows came between since the last drawing; once for each change of the width."""
        drawn, self._drawn = self._drawn, Drawn(0)
        return drawn.rows_more(self._output.get_size().columns)

    def _begin(self) -> None:
        self._size = self._output.get_size()
        self._windows.focus()

    def _note(self) -> None:
        """Remember how long the rows are that stand on the screen, and tell that they were seen."""
        self.has_been.set()
        self._windows.note_drawn()
        screen = self._app.renderer.last_rendered_screen
        if screen is None:
            return
        caret = screen.get_cursor_position(self._app.layout.current_window)
        rows = (screen.data_buffer[row].items() for row in range(caret.y))
        cells = [max((cell for cell, char in row if char.char.strip()), default=-1) + 1 for row in rows]
        self._drawn = Drawn(self._output.get_size().columns, cells, caret.x)

    def _note_key(self) -> None:
        """Tell that a key came; what was seen in a window of another size may not be there any more."""
        if self._output.get_size() != self._size:
            self._windows.forget_drawn()
        self._windows.contents.key_pressed()
        self._windows.focus()  # the key before may have answered the dialog, and nothing was drawn since


FRAME_S = 0.1
"""Between two drawings of what changes by itself."""

ESCAPE_S = 0.04
"""How long an ESC waits for the rest of a key that the terminal sends as several bytes; an interrupt should act within
0.06 s. Afterwards the parser says that nothing belongs to it, so no key binding waits once more."""

_ROWS_AT_ONCE = 100
"""Most rows in one write, which blocks: keys are taken before the next, also where the terminal is slow."""
_ROWS_AHEAD = 300
"""Rows that may wait before whoever follows a turn waits, too."""

_GO_ON_S = 0.2
"""Within which a program that was stopped and goes on is told so."""
_CLOSE_S = 1.0
"""Far longer than it takes; a terminal that takes nothing must not keep panpan."""


class TerminalApp:
    """Shows lines and windows, and takes keys, for as long as panpan runs."""

    def __init__(
        self,
        output: SteadyOutput,
        keyboard: Input,
        box: InputBox,
        contents: Contents,
        theme: Theme,
        *,
        does_reflow: bool = False,
    ) -> None:
        self._output = output
        self._is_dirty = False
        self.is_handed_over = False
        """True if another program has the terminal."""
        self.is_terminal_gone = False
        """True if the screen was closed because the terminal was."""
        self._has_ended = anyio.Event()
        self._goes_on = anyio.Event()
        """Set when panpan was stopped and goes on."""
        self._scope = anyio.CancelScope(shield=True)
        """Ended by `_close` alone: what has the terminal last leaves it as it was, and that is no other program."""
        self._windows = Windows(output, box, contents)
        self._box = box
        self._color_depth: ColorDepth | None = None
        self._app: Application[None] = Application(
            layout=self._windows.layout,
            key_bindings=DynamicKeyBindings(lambda: self._windows.contents.keys),
            color_depth=lambda: self._color_depth,
            input=keyboard,
            output=output,
            editing_mode=EditingMode.EMACS,
            erase_when_done=True,
        )
        self._app.ttimeoutlen = ESCAPE_S
        self._scrollback = Scrollback(output, self._app)
        drawing = LastDrawing(self._app, output, self._windows)
        self.has_been_drawn = drawing.has_been
        """Set once the user sees where to type."""
        self.use_theme(theme)
        if does_reflow:
            output.follow(drawing.rows_more)

    @property
    def width(self) -> int:
        return self._output.get_size().columns

    @property
    def rows(self) -> int:
        return self._output.get_size().rows

    @property
    def room(self) -> int:
        return self._windows.room

    @property
    def room_for_dialog(self) -> int:
        return self._windows.room_for_dialog

    def use_vi_keys(self, *, is_on: bool) -> None:
        self._app.editing_mode = EditingMode.VI if is_on else EditingMode.EMACS

    @property
    def vi_mode(self) -> str:
        """NORMAL or INSERT; empty where the keys of vi are off."""
        if self._app.editing_mode is not EditingMode.VI:
            return ""
        return "NORMAL" if self._app.vi_state.input_mode is InputMode.NAVIGATION else "INSERT"

    def use_theme(self, theme: Theme) -> None:
        """Draw completions in another theme."""
        self._box.menu.use_theme(theme)
        self._color_depth = None if theme.has_colour else ColorDepth.DEPTH_1_BIT  # None: what the terminal can do
        self.refresh()

    def use(self, contents: Contents) -> None:
        """Show other things around the input, with the next frame, and let keys do what they do there."""
        self._windows.use(contents)
        self.refresh()

    def show(self, *lines: str) -> None:
        """Put whole lines into the scrollback; they appear with the next frame."""
        self._scrollback.add(*lines)

    def send(self, sequence: bytes) -> None:
        """Send the terminal something that shows nothing in it: a bell, a title."""
        self._output.write_raw(sequence.decode())
        self._output.flush()

    async def caught_up(self) -> None:
        """Let keys be taken, and wait while more is shown than the terminal takes."""
        await checkpoint()
        while self._scrollback.count > _ROWS_AHEAD and self._app.is_running and not self.is_handed_over:  # noqa: ASYNC110
            await anyio.sleep(FRAME_S)

    def refresh(self) -> None:
        """Draw the windows again, with the next frame."""
        self._is_dirty = True

    @asynccontextmanager
    async def shown(self) -> AsyncGenerator[None, None]:
        """Show the screen and take keys until the block is left; the block is cancelled when the terminal is closed."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._run, tasks.cancel_scope)
            tasks.start_soon(self._draw_frames)
            try:
                yield
            finally:
                await self._close()
                self._scrollback.print()
                tasks.cancel_scope.cancel("the screen is closed")

    async def _close(self) -> None:
        """Take the windows away, also where the block is left by being cancelled."""
        if self._app.is_running and not self._app.is_done:
            self._app.exit()
            with anyio.move_on_after(_CLOSE_S, shield=True):
                await self._has_ended.wait()
        self._scope.cancel("the screen is closed")

    async def _run(self, scope: anyio.CancelScope) -> None:
        try:
            with self._scope:
                await self._app.run_async(set_exception_handler=False, handle_sigint=False)
        except EOFError:
            self.is_terminal_gone = True
            scope.cancel("the terminal is gone")
        finally:
            self._has_ended.set()

    async def _draw_frames(self) -> None:
        while True:
            await anyio.sleep(FRAME_S)
            if self._scrollback.count and not self.is_handed_over:
                await self._print_in_parts()
            elif (self._is_dirty or self._windows.contents.is_moving()) and not self.is_handed_over:
                self._is_dirty = False
                self._app.invalidate()

    async def _print_in_parts(self) -> None:
        """Print what waits by now, and take keys in between."""
        for at in range(0, count := self._scrollback.count, _ROWS_AT_ONCE):
            if not self.is_handed_over:
                self._scrollback.print(min(_ROWS_AT_ONCE, count - at))
                await checkpoint()

    @asynccontextmanager
    async def handed_over(self) -> AsyncGenerator[None, None]:
        """Leave the terminal to another program for a while; what is shown meanwhile is printed afterwards.

        Ctrl+C then belongs to that program, although panpan gets the signal, too (`is_handed_over`).
        """
        self._scrollback.print()
        self.is_handed_over = True
        try:
            async with in_terminal():
                yield
        finally:
            self.is_handed_over = False
            self.refresh()

    async def suspend(self) -> bool:
        """Stop panpan with all of its process group, as Ctrl+Z stops other programs, until the shell lets it go on.

        Returns:
            Whether it was stopped; the system stops nothing that no shell could let go on.
        """
        async with self.handed_over():
            self._goes_on = anyio.Event()
            os.kill(0, signal.SIGTSTP)
            with anyio.move_on_after(_GO_ON_S):  # counted from when it goes on
                await self._goes_on.wait()
        return self._goes_on.is_set()

    def continued(self) -> None:
        """Take the terminal again and draw anew, since panpan was stopped and the shell had it; called at SIGCONT."""
        self._goes_on.set()
        if self.is_handed_over or not self._app.is_running:
            return
        with suppress(termios.error):  # the terminal is gone
            self._app.input.raw_mode().__enter__()  # `__exit__` would give back what the shell has set
        self._output.write_raw("\r")
        self._app.renderer.reset()  # which forgets where the windows were
        self._app._redraw()
