"""Runs the REPL: first the input box, then the sessions; the terminal is left as it was found.

The rule: import nothing here that the first screen does not need. `ReplSetup.load` imports the rest in a thread while
the user already types.
"""

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

import anyio
from anyio import to_thread
from anyio.lowlevel import checkpoint
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyPress

from panpan.cli_kit.failures import drop_terminal
from panpan.cli_kit.signals import Received, watch_signals
from panpan.config.ui_look import UiLook
from panpan.errors import unwrap_single_exception
from panpan.faces.terminal.input.draft import Draft, Pastes
from panpan.faces.terminal.input.input_box import InputBox, PromptHistory
from panpan.faces.terminal.input.key_parser import use_key_parser
from panpan.faces.terminal.input.keys import DeferredKeyActions
from panpan.faces.terminal.screen.notify import keep_title, restore_title
from panpan.faces.terminal.screen.terminal_app import FrameOutput, TerminalApp, reflows
from panpan.faces.terminal.screen.theme import choose_theme, query_background
from panpan.faces.terminal.terminal_state import Look, TerminalState
from panpan.types.dataclass import dataclass

HUNG_UP = 129
"""Exit code if the terminal was closed: 128 + SIGHUP, as in shells."""

QUERY_S = 0.1
"""Seconds to wait for the terminal's background colour; most terminals answer within 0.01 s."""

_NEW_ROW = "\r\x1b[K"
"""Clears the row: it holds the echo of keys typed while panpan started, which the input box shows again."""


class ShownSessions(Protocol):
    """Shows sessions, one after the other."""

    async def run(self, first_prompt: str | None) -> None:
        """Show sessions until the user leaves."""

    def interrupt(self, number: int) -> bool:
        """Stop the running work for a signal; return True if there was any."""
        ...

    @property
    def is_busy(self) -> bool:
        """True if a turn or a command runs."""
        ...

    @property
    def resume_hint(self) -> str:
        """Line that says how to resume the last session; empty if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class ReplSetup:
    """Parameters of the REPL."""

    env: Mapping[str, str]
    look: UiLook
    load: Callable[[TerminalState], ShownSessions]
    """Imports and returns the object that shows sessions; takes most of a second, and is called in a thread."""
    first_prompt: str | None = None


async def run_repl(setup: ReplSetup) -> int:
    """Take keys, open sessions until the user leaves, and return the exit code.

    Raises:
        PanpanError: The first session could not be opened.
    """
    received, crashes = Received(), list[BaseException]()
    with unwrap_single_exception(), _kept_title(setup.env):
        async with anyio.create_task_group() as tasks:
            stop = tasks.cancel_scope.cancel
            run = _Run(setup, stop)
            tasks.start_soon(
                partial(watch_signals, received, interrupt=run.interrupt, stop=stop, is_busy=lambda: run.is_busy)
            )
            tasks.start_soon(run.watch_stops)
            await checkpoint()  # from here on a signal finds its receiver and leaves the terminal as it was
            with _crashes_noted(crashes, stop):
                await run.run()
            stop("the user left")
    if crashes:
        raise crashes[0]
    return received.exit_code or (HUNG_UP if run.is_terminal_gone else 0)


class _Run:
    """The terminal, and the sessions on it once they are loaded."""

    def __init__(self, setup: ReplSetup, stop: Callable[[], object]) -> None:
        self._setup = setup
        self._state = _terminal_state(setup, stop)
        self._sessions: ShownSessions | None = None

    @property
    def is_terminal_gone(self) -> bool:
        return self._state.app.is_terminal_gone

    def interrupt(self, number: int) -> bool:
        return self._sessions is not None and self._sessions.interrupt(number)

    @property
    def is_busy(self) -> bool:
        return self._sessions is not None and self._sessions.is_busy

    async def watch_stops(self) -> None:
        """Redraw whenever the process continues after it was stopped, until cancelled."""
        with anyio.open_signal_receiver(signal.SIGCONT) as signals:
            async for _ in signals:
                self._state.app.continued()

    async def run(self) -> None:
        """Show sessions until the user leaves, or the terminal is gone.

        Raises:
            PanpanError: The first session could not be opened.
        """
        try:
            async with self._state.app.shown():
                try:
                    await self._state.app.has_been_drawn.wait()
                    self._sessions = await to_thread.run_sync(self._setup.load, self._state)
                    await self._sessions.run(self._setup.first_prompt)
                finally:
                    self._state.keep_typed()
        finally:  # also where a signal ends it
            self._say_way_back()

    def _say_way_back(self) -> None:
        if self._sessions is not None and self._sessions.resume_hint:
            self._state.output.write_raw(f"{self._sessions.resume_hint}\r\n")
            self._state.output.flush()


def _terminal_state(setup: ReplSetup, stop: Callable[[], object]) -> TerminalState:
    """Return the state of the terminal, with a theme that suits its background."""
    answer = query_background(sys.stdin.fileno(), sys.stdout.fileno(), QUERY_S)
    look = setup.look
    theme = choose_theme(look.theme, setup.env, answer.background)
    output = FrameOutput(sys.stdout, setup.env.get("TERM"))
    output.write_raw(_NEW_ROW)
    keyboard = Vt100Input(sys.stdin)
    use_key_parser(keyboard)
    store_typeahead(keyboard, _keys_of(keyboard, answer.typed))
    box = InputBox(lambda: theme.paint("accent", "❯ "))
    draft = Draft(box, Pastes())
    waiting = DeferredKeyActions(draft, box.buffer, theme, stop)
    app = TerminalApp(output, keyboard, box, waiting.contents, theme, does_reflow=reflows(setup.env))
    app.use_vi_keys(is_on=look.vim)

    def warn(text: str) -> None:
        state.warn(text)

    history = PromptHistory(look.history_file, warn)
    shown = Look(theme, look.theme, answer.background, look.vim)
    state = TerminalState(setup.env, output, app, box, draft, history, waiting, shown)
    box.use_history(history)
    return state


def _keys_of(keyboard: Vt100Input, typed: str) -> list[KeyPress]:
    keyboard.vt100_parser.feed(typed)
    return keyboard.flush_keys()


@contextmanager
def _crashes_noted(crashes: list[BaseException], stop: Callable[[], object]) -> Iterator[None]:
    """Stop the REPL if a key binding or drawing raises; the event loop would only log the error."""

    def note(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        is_of_library = any(name in context for name in ("asyncgen", "transport", "protocol"))
        if isinstance(crash := context.get("exception"), BaseException) and not is_of_library:
            crashes.append(crash)
            stop()

    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    loop.set_exception_handler(note)
    try:
        yield
    finally:
        loop.set_exception_handler(before)


@contextmanager
def _kept_title(env: Mapping[str, str]) -> Iterator[None]:
    sys.stdout.buffer.write(keep_title(env))
    sys.stdout.buffer.flush()
    try:
        yield
    finally:
        try:
            sys.stdout.buffer.write(restore_title(env))
            sys.stdout.buffer.flush()
        except OSError:  # the terminal is gone
            drop_terminal()
