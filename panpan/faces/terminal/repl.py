"""The REPL of one session on a screen, and one session after the other."""

import signal
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio

from panpan.cli_kit.questions import TerminalQuestions
from panpan.config.locations import Locations
from panpan.core.background import Background
from panpan.faces.session_change import SessionChange
from panpan.faces.terminal.background_watch import BackgroundWatch, ExitRequest
from panpan.faces.terminal.commands.choice_commands import ScreenLook
from panpan.faces.terminal.commands.registry import LateCommands, with_further
from panpan.faces.terminal.dialogs.panel import PanelDialog, watch_panel
from panpan.faces.terminal.dialogs.pick import pick_option
from panpan.faces.terminal.dialogs.question_dialogs import QuestionDialogs
from panpan.faces.terminal.prompt_queue import PromptQueue
from panpan.faces.terminal.rendering.cells import say
from panpan.faces.terminal.rendering.displays import show_displays
from panpan.faces.terminal.screen.screen import Screen
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.terminal.session_client import SessionClient
from panpan.faces.terminal.views.turn_view import greeting
from panpan.faces.turn_text import WaitingTime
from panpan.hub.hub import Hub
from panpan.session.command import Command, Leave, Next, Option, OptionSearch, PanelSource, Questions
from panpan.session.session import Session
from panpan.types.content import Display
from panpan.types.messages import UserMessage

WARM_UP_S = 0.3
"""Seconds from the start to loading the SDK, which keeps a processor busy while the user types the first keys."""


class Repl:
    """One session on a screen; also the terminal that commands use.

    Args:
        hub: The hub of an open session.
        screen: Shows the session.
        env: The environment that panpan was started in.
        commands: Slash commands of the session.
        waiting: Time spent waiting for the user.
    """

    def __init__(
        self,
        hub: Hub,
        screen: Screen,
        env: Mapping[str, str],
        commands: Sequence[Command],
        waiting: WaitingTime,
    ) -> None:
        self.session = session = hub.session
        self.env = env
        self._hub = hub
        self._screen = screen
        self._waiting = waiting
        self._waited_before_s = waiting.answered_s
        self._prompts = PromptQueue(self, self._connect, screen.view, commands, screen.return_prompt)
        self._exit_request = ExitRequest(session, self._prompts, self)
        self._background = BackgroundWatch(
            session.find(Background), lambda line: say(self, f"\n{line}", "dim"), self._wake, screen.refresh
        )

    async def run(self, first_prompt: str | None, *, shows_past: bool) -> Next:
        """Show the session until the user leaves it, and return the next step.

        Args:
            first_prompt: Sent at once.
            shows_past: True to show its last turns again; False if they are still on the screen.
        """
        self.show(*greeting(self.session, self.width, self.theme))
        if self.look is None:  # elsewhere the empty input says it
            say(self, "/help lists commands and keys", "dim")
        async with self._screen.serving(self._prompts, self._exit_request, first_prompt):
            if shows_past:
                await self._screen.view.show_past(self.session.conversation.messages)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._prompts.run)
                tasks.start_soon(self._background.run)
                tasks.start_soon(self._warm_up)
                await self._exit_request.wait()
                tasks.cancel_scope.cancel("the user left")
        return self._exit_request.then

    def _connect(self, is_held_up: Callable[[], bool]) -> SessionClient:
        screen, shown = self._screen, Locations.find(self.session.info.cwd, self.env).shown
        dialogs = QuestionDialogs(screen, self._waiting, shown)
        return SessionClient(self._hub, screen.view, dialogs, screen.return_prompt, is_held_up, screen.refresh)

    async def _warm_up(self) -> None:
        await anyio.sleep(WARM_UP_S)
        await self.session.prepare()

    def _wake(self) -> None:
        if self.look is not None:  # a screen of lines prints nothing while the user types
            self._prompts.wake()

    @property
    def look(self) -> ScreenLook | None:
        return self._screen.look

    @property
    def theme(self) -> Theme:
        return self._screen.theme

    @property
    def width(self) -> int:
        return self._screen.width

    @property
    def waited_s(self) -> float:
        return self._waiting.answered_s - self._waited_before_s

    def show(self, *lines: str) -> None:
        self._screen.show(*lines)

    def echo(self, *lines: str) -> None:
        self._screen.echo(*lines)

    def display(self, *shapes: Display) -> None:
        show_displays(self, shapes)

    async def choose(self, title: str, options: Sequence[Option], search: OptionSearch | None = None) -> int | None:
        return await pick_option(self._screen, title, options, search)

    async def show_panel(self, sections: Mapping[str, Display]) -> None:
        await self._screen.ask(PanelDialog(sections, room=lambda: self._screen.room))

    async def watch(self, look: PanelSource) -> None:
        await watch_panel(self._screen, look)

    @asynccontextmanager
    async def questions(self) -> AsyncGenerator[Questions, None]:
        async with self._screen.released():
            yield TerminalQuestions(is_plain=self.look is None)

    def submit(self, prompt: str | UserMessage) -> None:
        self._prompts.submit(prompt)

    def prefill_input(self, text: str) -> None:
        self._screen.prefill_input(text)

    async def read(self, *shapes: Display, from_end: bool = False) -> None:
        await self._screen.read(*shapes, from_end=from_end)

    def leave(self, then: Next) -> None:
        """Close the session, after asking the user about background tasks."""
        self._exit_request.request(then)

    @property
    def is_busy(self) -> bool:
        return self._prompts.is_busy

    def interrupt(self, number: int) -> bool:
        """Stop the running work for a signal; return True if something runs that was not stopped before.

        A SIGINT stops nothing if it was for the program that has the terminal.
        """
        is_elsewhere = number == signal.SIGINT and self._screen.interrupted()
        return is_elsewhere or self._prompts.interrupt()


class Sessions:
    """Shows sessions, one after the other.

    Args:
        screen_of: Returns the screen of a session, with its commands.
        env: The environment that panpan was started in.
        waiting: Time spent waiting for the user.
        commands: Built-in slash commands.
        open_first: Opens the session that the command line asks for.
        change: Opens other sessions.
    """

    def __init__(
        self,
        screen_of: Callable[[Hub, Sequence[Command]], Screen],
        env: Mapping[str, str],
        waiting: WaitingTime,
        commands: Sequence[Command],
        open_first: Callable[[], AbstractAsyncContextManager[Hub]],
        change: SessionChange,
    ) -> None:
        self._screen_of = screen_of
        self._env = env
        self._waiting = waiting
        self._commands = commands
        self._open_first = open_first
        self._change = change
        self._repl: Repl | None = None
        self.resume_hint = ""
        """Line that says how to resume the last session; empty if there is none."""

    def _commands_of(self, session: Session) -> Sequence[Command]:
        return LateCommands(lambda: with_further(self._commands, session.capabilities.session_commands))

    def interrupt(self, number: int) -> bool:
        """Stop the running work for a signal; return True if there was any."""
        return self._repl is not None and self._repl.interrupt(number)

    @property
    def is_busy(self) -> bool:
        return self._repl is not None and self._repl.is_busy

    @property
    def has_shown(self) -> bool:
        """True once a session was open."""
        return self._repl is not None

    async def run(self, first_prompt: str | None) -> None:
        """Show sessions until the user leaves.

        Args:
            first_prompt: Sent at once.

        Raises:
            PanpanError: The first session could not be opened.
            SessionHeldError: The next session can be joined in another panpan.
        """
        opening, prompt, shown_id = self._open_first(), first_prompt, ""
        while True:
            async with opening as hub:
                session = hub.session
                commands = self._commands_of(session)
                self._repl = Repl(hub, self._screen_of(hub, commands), self._env, commands, self._waiting)
                is_shown = session.info.id == shown_id  # the same again, since the wanted one could not be opened
                try:
                    then = await self._repl.run(prompt, shows_past=not is_shown)
                finally:  # also where a signal ends it
                    if session.conversation.messages:
                        self.resume_hint = f"resume with: panpan -c, or panpan -r {session.info.id}"
                shown_id = session.info.id
            if isinstance(then, Leave):
                return
            prompt, opening = None, self._change.to(then, session)
