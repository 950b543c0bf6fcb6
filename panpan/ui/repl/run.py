"""Runs the REPL: one session after the other on one terminal, which is left as it was found."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread
from anyio.lowlevel import checkpoint
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyPress

from panpan.config.settings import UiSettings
from panpan.core.single_exception import unwrap_single_exception
from panpan.errors import PanpanError
from panpan.services.sessions.session import Session
from panpan.system.redact import Redactor
from panpan.types.permission import PermissionMode
from panpan.ui.repl.asking import Asking
from panpan.ui.repl.commands.command import Leave, Next, OpenSession
from panpan.ui.repl.commands.registry import all_commands
from panpan.ui.repl.input.history import open_history
from panpan.ui.repl.input.multiline import use_shift_enter
from panpan.ui.repl.input.paste import Pastes
from panpan.ui.repl.notify import keep_title, restore_title
from panpan.ui.repl.repl import Desk, Repl
from panpan.ui.repl.steady_output import SteadyOutput
from panpan.ui.repl.terminal_colours import choose_theme, query_background
from panpan.ui.signals import Received, watch_signals
from panpan.ui.stdout import drop_terminal

HUNG_UP = 129
"""Exit code where the terminal was closed: 128 and SIGHUP, as shells count."""

QUERY_S = 0.1
"""How long the terminal may take to say its background colour; most answer within 0.01 s."""

_NEW_ROW = "\r\x1b[K"
"""What was typed while panpan started stands there as an echo; it is read, and shown where it belongs."""


@dataclass(frozen=True, slots=True)
class ReplSetup:
    """What the REPL is started with."""

    open_first: Callable[[Asking], AbstractAsyncContextManager[Session]]
    """Opens the session that the command line asks for."""
    open_other: Callable[[Asking, str | None], AbstractAsyncContextManager[Session]]
    """Opens another one: that of an id, or a new one."""
    env: Mapping[str, str]
    history_file: Path
    redactor: Redactor
    """Takes secrets out of the history."""
    rule_place: str
    """Where "always" is kept, as it is shown."""
    warn: Callable[[str], None]
    """Tells the user what he should know before there is a screen."""
    first_prompt: str | None = None


async def run_repl(setup: ReplSetup) -> int:
    """Run sessions until the user leaves, and return the exit code.

    Raises:
        PanpanError: The first session could not be opened.
    """
    received = Received()
    sessions = _Sessions(setup)
    with unwrap_single_exception(), _kept_title(setup.env):
        async with anyio.create_task_group() as tasks:
            stop = tasks.cancel_scope.cancel
            tasks.start_soon(partial(watch_signals, received, interrupt=sessions.interrupt, stop=stop))
            await checkpoint()  # from here on a signal leaves the terminal as it was
            await sessions.run()
            stop("the user left")
    return received.exit_code or (HUNG_UP if sessions.is_terminal_gone else 0)


class _Sessions:
    """One session after the other on one terminal."""

    def __init__(self, setup: ReplSetup) -> None:
        self._setup = setup
        self._asking = Asking(setup.rule_place, setup.warn)
        self._repl: Repl | None = None
        self.is_terminal_gone = False

    def interrupt(self) -> bool:
        """End the turn that runs; return whether there was one."""
        return self._repl is not None and self._repl.interrupt()

    async def run(self) -> None:
        """Show sessions until the user leaves.

        Raises:
            PanpanError: The first one could not be opened.
        """
        opening = self._setup.open_first(self._asking)
        desk: Desk | None = None
        prompt, way_back = self._setup.first_prompt, ""
        while True:
            async with opening as session:
                desk = desk or await _desk(self._setup, session.settings.ui, self._asking)
                self._repl = Repl(session, desk)
                then = await _without_crash(self._repl, prompt)
                self.is_terminal_gone = self._repl.is_terminal_gone
                if session.conversation.messages:
                    way_back = f"to go on from here: panpan -c, or panpan -r {session.info.id}"
            if isinstance(then, Leave):
                break
            present_id = session.info.id if session.conversation.messages else None
            prompt, opening = None, self._other(then, present_id, session.permission_mode)
        if way_back:
            desk.output.write_raw(f"{way_back}\r\n")
            desk.output.flush()

    @asynccontextmanager
    async def _other(
        self, wanted: OpenSession, present_id: str | None, mode: PermissionMode
    ) -> AsyncGenerator[Session, None]:
        """Open another session; the present one again, where that cannot be opened.

        A new one keeps the mode: nobody who cleared the conversation in plan mode has left it.
        """
        async with AsyncExitStack() as stack:
            try:
                session = await stack.enter_async_context(self._setup.open_other(self._asking, wanted.resume))
            except PanpanError as error:
                self._asking.tell(f"{error}; going on with the session as it was")
                session = await stack.enter_async_context(self._setup.open_other(self._asking, present_id))
            if wanted.resume is None:
                session.set_permission_mode(mode)
            yield session


async def _without_crash(repl: Repl, prompt: str | None) -> Next:
    """Show a session until the user leaves it.

    Raises:
        BaseException: What went wrong in a key binding or while drawing, which would only be logged otherwise.
    """
    crashes: list[BaseException] = []

    def note_crash(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        is_of_library = any(name in context for name in ("asyncgen", "transport", "protocol"))
        if isinstance(crash := context.get("exception"), BaseException) and not is_of_library:
            crashes.append(crash)
            repl.leave(Leave())

    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    loop.set_exception_handler(note_crash)
    try:
        then = await repl.run(prompt)
    finally:
        loop.set_exception_handler(before)
    if crashes:
        raise crashes[0]
    return then


async def _desk(setup: ReplSetup, ui: UiSettings, asking: Asking) -> Desk:
    """Return the terminal as it is, with colours that suit it."""
    answer = await to_thread.run_sync(query_background, sys.stdin.fileno(), sys.stdout.fileno(), QUERY_S)
    output = SteadyOutput(sys.stdout, setup.env.get("TERM"))
    output.write_raw(_NEW_ROW)
    keyboard = Vt100Input(sys.stdin)
    use_shift_enter(keyboard)
    store_typeahead(keyboard, _keys_of(keyboard, answer.typed))
    return Desk(
        output=output,
        keyboard=keyboard,
        env=setup.env,
        history=open_history(setup.history_file, setup.redactor, asking.tell),
        pastes=Pastes(),
        commands=all_commands(),
        asking=asking,
        theme=choose_theme(ui.theme, setup.env, answer.background),
        has_vi_keys=ui.vim,
    )


def _keys_of(keyboard: Vt100Input, typed: str) -> list[KeyPress]:
    """Return the keys that a text from the terminal is."""
    keyboard.vt100_parser.feed(typed)
    return keyboard.flush_keys()


@contextmanager
def _kept_title(env: Mapping[str, str]) -> Iterator[None]:
    """Leave the window's title as it was."""
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
