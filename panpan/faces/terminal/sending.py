"""What becomes of a line that was sent: a command, a shell command of the user's own, or a prompt."""

from collections.abc import Sequence

from anyio.lowlevel import checkpoint_if_cancelled

from panpan.core.command import Command, Terminal
from panpan.errors import PanpanError
from panpan.faces.terminal.commands.registry import command_in, find, unknown
from panpan.faces.terminal.inbox import Sent
from panpan.faces.terminal.screen.canvas import say
from panpan.faces.terminal.shell_line import ShellLine
from panpan.faces.terminal.turn_runner import TurnRunner
from panpan.system.text.terminal_text import clean_for_terminal


class Sending:
    """Decides who gets a line.

    Args:
        terminal: What commands may use.
        commands: All there are.
        turns: Runs prompts.
        shell: Runs the user's own commands.
    """

    def __init__(self, terminal: Terminal, commands: Sequence[Command], turns: TurnRunner, shell: ShellLine) -> None:
        self._terminal = terminal
        self._commands = commands
        self._turns = turns
        self._shell = shell

    def has_to_wait(self, sent: Sent) -> bool:
        """Whether it has to wait for the shell command that runs, as all but what a command does at any time."""
        if not self._shell.is_running:
            return False
        line = command_in(sent.text, self._commands)
        if line is None:
            return True
        found = find(self._commands, line)
        return found is not None and not found[0].is_immediate

    async def handle(self, sent: Sent) -> None:
        """Do what a text asks for; what goes wrong is said in one line."""
        line = sent.text.strip()
        try:
            if (command := command_in(line, self._commands)) is not None:
                await self._command(command)
            elif line.startswith("!") and len(line) > 1:
                self._shell.begin(line[1:].strip())
            else:
                await self._prompt(sent)
        except PanpanError as error:
            self._warn(str(error))

    async def _command(self, line: str) -> None:
        found = find(self._commands, line)
        if found is None:
            self._warn(unknown(self._commands, line))
            return
        command, rest = found
        if self._turns.is_busy and not command.is_immediate:
            self._warn(f"/{command.name} has to wait until the turn is over; Esc ends it")
            return
        self._terminal.show("", self._terminal.theme.paint("user", f"❯ {clean_for_terminal(line)}"))
        await command.run(self._terminal, rest)

    async def _prompt(self, sent: Sent) -> None:
        message = await self._terminal.session.prepared(sent.text)
        await checkpoint_if_cancelled()  # from here on it is the turn that an interrupt ends
        if sent.is_for_later:
            self._turns.submit(message)
        else:
            self._turns.steer(message)

    def _warn(self, text: str) -> None:
        say(self._terminal, text, "warn")
