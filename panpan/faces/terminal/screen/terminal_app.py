"""The drawing of the terminal: finished lines go into its scrollback, and live windows are below them.

The rule: only whole lines are printed, and each once. Rows that may still change (the end of an answer, running tools,
the queue, the input) are drawn below and redrawn, at most ten times a second unless the user types.
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
"""Errors of a closed terminal; SIGHUP, which comes with it, ends the program cleanly."""


class FrameOutput(Vt100_Output):
    """Writes to a terminal of the kind in `TERM`, in whole frames."""

    def __init__(self, stdout: TextIO, term: str | None) -> None:
        # The cursor's position is never queried: the answer arrives among the keys, and could be taken for some.
        terminal = Vt100_Output.from_pty(stdout, term)
        super().__init__(stdout, terminal.get_size, term=term, enable_cpr=False)
        self._is_held = False
        self._rows_more: Callable[[], int] = lambda: 0

    def follow(self, rows_more: Callable[[], int]) -> None:
        """Call `rows_more` whenever the cursor goes up, for the rows that were added since the last drawing."""
        self._rows_more = rows_more

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold back output until the next flush after the block."""
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
        """Erase from the beginning of this row on, but in two steps, never all from the screen's first cell.

        tmux takes that for clearing the screen, and puts the old contents into its history (`scroll-on-clear`).
        """
        self.write_raw("\x1b[K\x1b[C\x1b[J\x1b[D")

    def cursor_up(self, amount: int) -> None:
        """Go up, also past rows that the terminal has added by reflowing."""
        super().cursor_up(amount + self._rows_more())

    def disable_bracketed_paste(self) -> None:
        """Turn it off, but not while held: a paste at that moment must not be taken for typing."""
        if not self._is_held:
            super().disable_bracketed_paste()


class Scrollback:
    """Keeps lines until they are printed above the windows."""

    def __init__(self, output: FrameOutput, app: Application[Any]) -> None:
        self._output = output
        self._app = app
        self._waiting: list[str] = []

    @property
    def count(self) -> int:
        return len(self._waiting)

    def add(self, *lines: str) -> None:
        self._waiting += lines

    def print(self, most: int | None = None) -> None:
        """Print the first lines, `most` or all, in one blocking write with the windows below them."""
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


# Rows that a drawing gains when the window becomes narrower, in terminals that reflow long rows.
#
# Without this, the upper rows would stay on the screen as a second copy. In a terminal that cuts rows off instead,
# going up so far would erase rows that are not ours. So only terminals count that are known to reflow.

_PROGRAMS = frozenset({"iTerm.app", "WezTerm", "ghostty", "vscode", "Apple_Terminal", "tmux"})
_VARIABLES = ("TMUX", "VTE_VERSION", "KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "ALACRITTY_WINDOW_ID")


def reflows(env: Mapping[str, str]) -> bool:
    """Return True if the terminal is known to reflow long rows when it becomes narrower."""
    return env.get("TERM_PROGRAM", "") in _PROGRAMS or any(env.get(name) for name in _VARIABLES)


@dataclass(frozen=True, slots=True)
class DrawnFrame:
    """Drawn rows on the screen, down to the caret."""

    columns: int
    """Width of the terminal when it was drawn."""
    row_cells: Sequence[int] = ()
    """Used cells of each row above the caret's."""
    caret_cell: int = 0

    def rows_more(self, columns: int) -> int:
        """Return the number of rows gained between the first one and the caret, if a row now has `columns`."""
        if columns >= self.columns or columns < 1:
            return 0
        return sum(max(cells - 1, 0) // columns for cells in self.row_cells) + self.caret_cell // columns


class LastDrawing:
    """Follows the drawings of an application, and tells the windows if all of their rows were seen."""

    def __init__(self, app: Application[Any], output: FrameOutput, windows: Windows) -> None:
        self.has_been = anyio.Event()
        """Set after the first drawing."""
        self._app = app
        self._output = output
        self._windows = windows
        self._drawn = DrawnFrame(0)
        self._size: Size | None = None
        """Size of the terminal when the last drawing began; it may change meanwhile."""
        app.before_render += lambda _: self._begin()
        app.after_render += lambda _: self._note()
        app.key_processor.before_key_press += lambda _: self._note_key()

    def rows_more(self) -> int:
        """Return the number of rows gained since the last drawing; only once for each change of the width."""
        drawn, self._drawn = self._drawn, DrawnFrame(0)
        return drawn.rows_more(self._output.get_size().columns)

    def _begin(self) -> None:
        self._size = self._output.get_size()
        self._windows.focus()

    def _note(self) -> None:
        """Remember the lengths of the rows on the screen, and note that they were seen."""
        self.has_been.set()
        self._windows.note_drawn()
        screen = self._app.renderer.last_rendered_screen
        if screen is not None:
            caret = screen.get_cursor_position(self._app.layout.current_window)
            rows = (screen.data_buffer[row].items() for row in range(caret.y))
            cells = [max((cell for cell, char in row if char.char.strip()), default=-1) + 1 for row in rows]
            self._drawn = DrawnFrame(self._output.get_size().columns, cells, caret.x)
        if self._windows.focus():  # only the drawing has told where the caret is now
            self._app.invalidate()

    def _note_key(self) -> None:
        """Note a key; rows that were seen in another size of the terminal may be gone."""
        if self._output.get_size() != self._size:
            self._windows.forget_drawn()
        self._windows.contents.key_pressed()
        self._windows.focus()  # the last key may have answered the dialog without a drawing since


FRAME_S = 0.1
"""Seconds between two drawings of rows that change over time."""

ESCAPE_S = 0.04
"""Seconds that an ESC waits for the rest of a key of several bytes; an interrupt should act within 0.06 s. Then the
parser says that nothing else belongs to it, so no key binding waits again."""

_ROWS_AT_ONCE = 100
"""Most rows in one write, which blocks: keys are handled before the next, even if the terminal is slow."""
_ROWS_AHEAD = 300
"""Rows that may wait to be printed before the turn's events have to wait."""

_GO_ON_S = 0.2
"""Seconds within which SIGCONT arrives after a stopped program continues."""
_CLOSE_S = 1.0
"""Most seconds for closing the screen; a terminal that takes no output must not keep panpan from ending."""


class TerminalApp:
    """Shows lines and windows, and takes keys, for as long as panpan runs."""

    def __init__(
        self,
        output: FrameOutput,
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
        """Set when panpan continues after it was stopped."""
        self._scope = anyio.CancelScope(shield=True)
        """Scope of the application; only `_close` cancels it, so that the terminal is restored last of all."""
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
        """Set after the first drawing, when the user can see the input box."""
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
        """NORMAL or INSERT; empty if the vi keys are off."""
        if self._app.editing_mode is not EditingMode.VI:
            return ""
        return "NORMAL" if self._app.vi_state.input_mode is InputMode.NAVIGATION else "INSERT"

    def use_theme(self, theme: Theme) -> None:
        """Draw completions in another theme."""
        self._box.menu.use_theme(theme)
        self._color_depth = None if theme.has_colour else ColorDepth.DEPTH_1_BIT  # None: as many as the terminal has
        self.refresh()

    def use(self, contents: Contents) -> None:
        """Show other contents around the input from the next frame on, with their key bindings."""
        self._windows.use(contents)
        self.refresh()

    def show(self, *lines: str) -> None:
        """Put whole lines into the scrollback; they appear with the next frame."""
        self._scrollback.add(*lines)

    def send(self, sequence: bytes) -> None:
        """Send the terminal a sequence that leaves its contents as they are, such as a bell or a title."""
        self._output.write_raw(sequence.decode())
        self._output.flush()

    async def drain(self) -> None:
        """Let keys be handled, and wait while the terminal is behind with the output."""
        await checkpoint()
        while self._scrollback.count > _ROWS_AHEAD and self._app.is_running and not self.is_handed_over:  # noqa: ASYNC110
            await anyio.sleep(FRAME_S)

    def refresh(self) -> None:
        """Redraw the windows with the next frame."""
        self._is_dirty = True

    @asynccontextmanager
    async def shown(self) -> AsyncGenerator[None, None]:
        """Show the screen and handle keys inside the block, which is cancelled if the terminal is closed."""
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
        """Remove the windows, even if the block was cancelled."""
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
        """Print the lines that are waiting now, and handle keys in between."""
        for at in range(0, count := self._scrollback.count, _ROWS_AT_ONCE):
            if not self.is_handed_over:
                self._scrollback.print(min(_ROWS_AT_ONCE, count - at))
                await checkpoint()

    @asynccontextmanager
    async def released(self) -> AsyncGenerator[None, None]:
        """Hand the terminal over to another program inside the block; lines shown meanwhile are printed afterwards.

        Ctrl+C then belongs to that program, although panpan also gets the signal (`is_handed_over`).
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
        """Stop panpan and its process group, as Ctrl+Z stops other programs, until the shell continues it.

        Returns:
            True if it was stopped; the system does not stop a program that no shell could continue.
        """
        async with self.released():
            self._goes_on = anyio.Event()
            os.kill(0, signal.SIGTSTP)
            with anyio.move_on_after(_GO_ON_S):  # counted after it has continued
                await self._goes_on.wait()
        return self._goes_on.is_set()

    def continued(self) -> None:
        """Take the terminal back from the shell and redraw, after panpan was stopped; called at SIGCONT."""
        self._goes_on.set()
        if self.is_handed_over or not self._app.is_running:
            return
        with suppress(termios.error):  # the terminal is gone
            self._app.input.raw_mode().__enter__()  # without `__exit__`, which would restore the shell's settings
        self._output.write_raw("\r")
        self._app.renderer.reset()  # forgets the position of the windows
        self._app._redraw()
