"""What becomes of a line that was sent: a command, a shell command of the user's own, or a prompt."""

from collections.abc import Sequence

from panpan.errors import PanpanError
from panpan.services.keys_in_results import provider_keys
from panpan.services.mentions import with_mentions
from panpan.system.terminal_text import clean_for_terminal
from panpan.ui.repl.commands.command import Command, Leave, Terminal
from panpan.ui.repl.commands.registry import find, unknown
from panpan.ui.repl.inbox import Sent
from panpan.ui.repl.shell_line import ShellLine
from panpan.ui.repl.turn_runner import TurnRunner

LEAVING = {"exit", "quit", "q"}
ASKING_FOR_HELP = {"help", "?"}


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

    async def handle(self, sent: Sent) -> None:
        """Do what a text asks for; what goes wrong is said in one line."""
        try:
            await self._handle(sent)
        except PanpanError as error:
            self._say(str(error))

    async def _handle(self, sent: Sent) -> None:
        line = sent.text.strip()
        match line.lower():
            case word if word in LEAVING:
                self._terminal.leave(Leave())
            case word if word in ASKING_FOR_HELP:
                await self._command("/help")
            case _ if line.startswith("/") and not _is_path(line):
                await self._command(line)
            case _ if line.startswith("!") and len(line) > 1:
                await self._shell.run(line[1:].strip())
            case _:
                await self._prompt(sent)

    async def _command(self, line: str) -> None:
        found = find(self._commands, line)
        if found is None:
            self._say(unknown(self._commands, line))
            return
        command, rest = found
        if self._terminal.is_busy and not command.is_immediate:
            self._say(f"/{command.name} has to wait until the turn is over; Esc ends it")
            return
        self._terminal.show("", self._terminal.theme.paint("user", f"❯ {clean_for_terminal(line)}"))
        await command.run(self._terminal, rest)

    async def _prompt(self, sent: Sent) -> None:
        parts = self._terminal.session.parts
        keys = provider_keys(self._terminal.env, parts.settings)
        message, notes = await with_mentions(sent.text, parts.tool_context, keys=keys, gate=parts.gate)
        for note in notes:
            self._say(note)
        if sent.is_for_later:
            self._turns.submit(message)
        else:
            self._turns.steer(message)

    def _say(self, text: str) -> None:
        self._terminal.show(
            *(self._terminal.theme.paint("warn", line) for line in clean_for_terminal(text).split("\n"))
        )


def _is_path(line: str) -> bool:
    """Return whether a line begins with a path, as a pasted one does, and not with a command."""
    return "/" in line[1:].split(maxsplit=1)[0] if len(line) > 1 else True
