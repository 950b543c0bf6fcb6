"""The user's own shell commands, `!` and a command: they run here, and the model gets what they printed."""

from collections.abc import Callable, Sequence
from time import monotonic

import anyio

from panpan.capabilities.shell.user_commands import USER_COMMAND_TIMEOUT_S, run_user_command
from panpan.errors import PanpanError
from panpan.faces.terminal.commands.screen_commands import Screen
from panpan.faces.terminal.rendering.text_rows import output_of_users_command
from panpan.faces.terminal.rendering.tool import LiveOutput, running_line
from panpan.faces.terminal.screen.canvas import say
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.messages import UserMessage

_LIVE_LINES = 3
_SHOWN_ROWS = 40
"""Of what a command printed; the model gets more."""


class _Running:
    """A command that runs, and what it has printed."""

    def __init__(self, command: str) -> None:
        self.command = command
        self.output = LiveOutput()
        self.began_s = monotonic()
        self.scope = anyio.CancelScope()


class ShellLine:
    """Runs one command at a time.

    Args:
        terminal: Where its output goes.
        tell_model: Gets the message that says what was run and printed.
        has_ended: Called when a command has ended and the model was told.
    """

    def __init__(
        self, terminal: Screen, tell_model: Callable[[UserMessage], None], has_ended: Callable[[], None]
    ) -> None:
        self._terminal = terminal
        self._tell_model = tell_model
        self._has_ended = has_ended
        self._running: _Running | None = None
        self._has_begun = anyio.Event()

    @property
    def is_running(self) -> bool:
        """Whether a command runs, or is about to."""
        return self._running is not None

    def begin(self, command: str) -> None:
        """Begin a command; none may run."""
        assert self._running is None, "one command at a time"
        self._terminal.show(self._terminal.theme.paint("user", f"! {clean_for_terminal(command)}"))
        self._running = _Running(command)
        self._has_begun.set()

    def interrupt(self) -> bool:
        """Stop the command that runs; return whether there was one that had not been told to end before."""
        if self._running is None or self._running.scope.cancel_called:
            return False
        self._running.scope.cancel("the user interrupted it")
        return True

    async def run(self) -> None:
        """Run what is begun, until cancelled."""
        while True:
            await self._has_begun.wait()
            self._has_begun = anyio.Event()
            if self._running is not None:
                await self._run(self._running)
                self._running = None
                self._has_ended()

    async def _run(self, running: _Running) -> None:
        """Run a command, show what it printed, and let the model have it."""
        try:
            result = await run_user_command(
                running.command, self._terminal.session.agent.context, running.output.feed, scope=running.scope
            )
            terminal = self._terminal
            printed = "\n".join(result.lines)
            terminal.show(*output_of_users_command(printed, terminal.width, terminal.theme, _SHOWN_ROWS))
            self._tell_model(result.message)
        except PanpanError as error:
            say(self._terminal, str(error), "warn")

    def live_lines(self, width: int) -> Sequence[str]:
        """Return rows for the command that runs."""
        if (running := self._running) is None:
            return ()
        theme, now_s = self._terminal.theme, monotonic()
        return [
            running_line(
                "!", running.command, now_s, now_s - running.began_s, width, theme, timeout_s=USER_COMMAND_TIMEOUT_S
            ),
            *running.output.preview(_LIVE_LINES, width, theme),
        ]
