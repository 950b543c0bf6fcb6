"""The user's own shell commands, `!` and a command: they run here, and the model gets what they printed."""

from collections.abc import Sequence
from time import monotonic

import anyio

from panpan.services.user_commands import run_user_command
from panpan.system.terminal_text import clean_for_terminal
from panpan.ui.repl.commands.command import Terminal
from panpan.ui.repl.rendering.live_output import LiveOutput
from panpan.ui.repl.rendering.tool import running_line
from panpan.ui.repl.turn_runner import TurnRunner

_LIVE_LINES = 3
_SHOWN_LINES = 40
"""Of what a command printed; the model gets more."""


class ShellLine:
    """Runs one command at a time.

    Args:
        terminal: Where its output goes.
        turns: Told of it, where a turn runs.
    """

    def __init__(self, terminal: Terminal, turns: TurnRunner) -> None:
        self._terminal = terminal
        self._turns = turns
        self._scope: anyio.CancelScope | None = None
        self.output: LiveOutput | None = None
        """What the running command has printed."""
        self.began_s = 0.0
        self._command = ""

    async def run(self, command: str) -> None:
        """Run a command, show what it prints, and let the model have it."""
        theme = self._terminal.theme
        self._terminal.show(theme.paint("user", f"! {clean_for_terminal(command)}"))
        self.output, self.began_s, self._command = LiveOutput(), monotonic(), command
        self._scope = anyio.CancelScope()
        try:
            result = await run_user_command(
                command, self._terminal.session.parts.tool_context, self.output.feed, scope=self._scope
            )
        finally:
            self._scope = self.output = None
        lines = result.lines
        hidden = len(lines) - _SHOWN_LINES
        shown = [f"… {hidden} lines before", *lines[-_SHOWN_LINES:]] if hidden > 0 else lines
        self._terminal.show(*(f"  {line}" for line in shown))
        self._turns.note(result.message)

    @property
    def is_running(self) -> bool:
        """Whether a command runs."""
        return self._scope is not None

    def live_lines(self, width: int) -> Sequence[str]:
        """Return rows for the command that runs."""
        if self.output is None:
            return ()
        theme, now_s = self._terminal.theme, monotonic()
        return [
            running_line("!", self._command, now_s, now_s - self.began_s, width, theme),
            *self.output.preview(_LIVE_LINES, width, theme),
        ]

    def interrupt(self) -> bool:
        """Stop the command that runs; return whether there was one that had not been told to end before."""
        if self._scope is None or self._scope.cancel_called:
            return False
        self._scope.cancel("the user interrupted it")
        return True
