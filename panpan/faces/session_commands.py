"""Slash commands that come from no terminal: with -p, on a pipe, in stream-json, and from Python.

What they show is returned as text. One that offers a list returns that, and how to pick from it by number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from panpan.app import slash_commands
from panpan.config.project_limits import STRICTNESS
from panpan.errors import ConfigError
from panpan.faces.plain.line_commands import run_line
from panpan.faces.terminal.commands.registry import all_commands, command_in, find, help_command, unknown, with_further
from panpan.faces.terminal.screen.theme import Theme
from panpan.session.command import Command, CommandResult, Terminal
from panpan.session.session import Session


class SessionCommands:
    """Runs slash commands for a session; implements `SlashCommands`.

    Args:
        env: The environment that panpan was started in.
        further: Commands of capabilities from outside.
    """

    def __init__(self, env: Mapping[str, str], further: Sequence[Command] = ()) -> None:
        self._env = env
        self._theme = Theme("plain", has_sequences=False)
        every = with_further(all_commands(slash_commands()), further)
        here = [_never_looser(one) for one in every if not (one.needs_terminal or one.is_missing or one.name == "help")]
        here.append(help_command(here, ()))
        self._here = sorted(here, key=lambda command: command.name)
        self._elsewhere = [one for one in every if one.needs_terminal or one.is_missing]

    @property
    def names(self) -> Sequence[str]:
        return [command.name for command in self._here]

    def line_in(self, text: str) -> str | None:
        return command_in(text, self._every) if text.lstrip().startswith("/") else None

    async def run(self, line: str, session: Session) -> CommandResult:
        if find(self._here, line) is None:
            raise ConfigError(self._why_not(line))
        shown: list[str] = []
        terminal = await run_line(self._here, line, session, env=self._env, theme=self._theme, show=shown.append)
        return CommandResult("\n".join(shown), tuple(terminal.prompts))

    def _why_not(self, line: str) -> str:
        if (found := find(self._elsewhere, line)) is None:
            return unknown(self._here, line)
        name = found[0].name
        if found[0].is_missing:
            return f"/{name} is not there yet; /help lists what there is"
        return f"/{name} needs a terminal; run panpan there, without -p and pipes"

    @property
    def _every(self) -> Sequence[Command]:
        return [*self._here, *self._elsewhere]


def _never_looser(command: Command) -> Command:
    """Return the command so that it leaves the permission mode as strict as it was.

    Text that comes from no terminal may be anybody's, such as that of a chat or an issue.
    """

    async def run(terminal: Terminal, rest: str) -> None:
        session = terminal.session
        before = session.permission_mode
        await command.run(terminal, rest)
        if STRICTNESS[session.permission_mode] < STRICTNESS[before]:
            wanted = session.permission_mode
            session.set_permission_mode(before)
            raise ConfigError(f"the mode stays {before} without a terminal; start with --permission-mode {wanted}")

    return replace(command, run=run)
