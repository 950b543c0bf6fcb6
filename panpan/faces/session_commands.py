"""Slash commands without a terminal: with -p, on a pipe, in stream-json, and from Python.

Their output is returned as text. A command with a list returns the list and how to pick from it by number.
"""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from panpan.app import slash_commands
from panpan.config.project_limits import STRICTNESS
from panpan.errors import ConfigError
from panpan.faces.terminal.commands.registry import all_commands, command_in, find, help_command, unknown, with_further
from panpan.faces.terminal.rendering.cells import LEAST_WIDTH
from panpan.faces.terminal.rendering.displays import option_rows, printed_rows_of, show_displays
from panpan.faces.terminal.screen.theme import Theme
from panpan.session.command import (
    Command,
    CommandResult,
    Next,
    Option,
    OptionSearch,
    PanelSource,
    Questions,
    Terminal,
    say,
)
from panpan.session.session import Session
from panpan.types.content import Display
from panpan.types.messages import UserMessage

_MOST_DIGITS = 2
"""Most digits of a list number; a longer word is a name, such as the beginning of an id."""


class TextTerminal:
    """Terminal of a command that nobody can answer; numbers after the command's name pick from its lists.

    Args:
        session: The session that the command is for.
        env: The environment that panpan was started in.
        name: Name of the running command.
        numbers: Choice in each of its lists, in order, from 1. A list without a number is shown.
    """

    theme = Theme("plain", has_sequences=False)
    waited_s = 0.0

    def __init__(self, session: Session, env: Mapping[str, str], name: str, numbers: Sequence[int] = ()) -> None:
        self.session = session
        self.env = env
        self.rows: list[str] = []
        """Rows that were shown."""
        self.prompts: list[str | UserMessage] = []
        """Prompts for the model when the command is over."""
        self._name = name
        self._numbers = list(numbers)
        self._picked = list[int]()

    @property
    def width(self) -> int:
        return shutil.get_terminal_size().columns

    def show(self, *lines: str) -> None:
        self.rows += lines

    def display(self, *shapes: Display) -> None:
        show_displays(self, shapes)

    async def choose(self, title: str, options: Sequence[Option], search: OptionSearch | None = None) -> int | None:
        """Return the index of the picked option; without a number, show the list and how to pick from it."""
        number = self._numbers.pop(0) if self._numbers else None
        if number is not None and 1 <= number <= len(options):
            self._picked.append(number)
            return number - 1
        if number is not None:
            say(self, f"there is no number {number} in this list:", "bad")
        say(self, title, "strong")
        self.show(*option_rows(options, max(self.width, LEAST_WIDTH), self.theme))
        say(self, " ".join([f"/{self._name}", *map(str, self._picked), "NUMBER picks one"]), "dim")
        return None

    async def show_panel(self, sections: Mapping[str, Display]) -> None:
        for number, (title, shape) in enumerate(sections.items()):
            say(self, f"\n{title}" if number else title, "strong")
            self.display(shape)

    async def watch(self, look: PanelSource) -> None:
        await self.show_panel(await look())

    async def read(self, *shapes: Display, from_end: bool = False) -> None:
        """Show everything, or with `from_end` the last rows."""
        self.show(*printed_rows_of(shapes, self.width, self.theme, from_end=from_end))

    def questions(self) -> AbstractAsyncContextManager[Questions]:
        raise ConfigError(f"/{self._name} needs an answer; run panpan in a terminal")

    def submit(self, prompt: str | UserMessage) -> None:
        self.prompts.append(prompt)

    def prefill_input(self, text: str) -> None:
        """Show nothing: the sender has the text."""

    def leave(self, then: Next) -> None:
        """Do nothing: without a screen, a session ends with its input."""


class SessionCommands:
    """Runs slash commands for a session; implements `SlashCommands`.

    Args:
        env: The environment that panpan was started in.
        further: Commands that only this session has.
    """

    def __init__(self, env: Mapping[str, str], further: Sequence[Command] = ()) -> None:
        self._env = env
        every = with_further(all_commands(slash_commands()), further)
        here = [_never_looser(one) for one in every if not (one.needs_terminal or one.name == "help")]
        here.append(help_command(here, ()))
        self._here = sorted(here, key=lambda command: command.name)
        self._elsewhere = [one for one in every if one.needs_terminal]

    @property
    def names(self) -> Sequence[str]:
        return [command.name for command in self._here]

    @property
    def listed(self) -> Sequence[Command]:
        """The same with what lists tell of them, sorted by name."""
        return self._here

    def line_in(self, text: str) -> str | None:
        return command_in(text, self._every) if text.lstrip().startswith("/") else None

    async def run(self, line: str, session: Session) -> CommandResult:
        if (found := find(self._here, line)) is None:
            raise ConfigError(self._why_not(line))
        command, rest = found
        are_numbers = command.has_picker and all(
            word.isdecimal() and len(word) <= _MOST_DIGITS for word in rest.split() or [""]
        )
        numbers = [*map(int, rest.split())] if are_numbers else ()
        terminal = TextTerminal(session, self._env, command.name, numbers)
        await command.run(terminal, "" if are_numbers else rest)
        return CommandResult("\n".join(terminal.rows), tuple(terminal.prompts))

    def _why_not(self, line: str) -> str:
        if (found := find(self._elsewhere, line)) is None:
            return unknown(self._here, line)
        return (
            f"/{found[0].name} needs a terminal; "
            "type it where panpan was started on one, not with -p, a pipe or panpan attach"
        )

    @property
    def _every(self) -> Sequence[Command]:
        return [*self._here, *self._elsewhere]


def _never_looser(command: Command) -> Command:
    """Return the command, wrapped so that it cannot loosen the permission mode.

    Text that does not come from a terminal may be anybody's, such as that of a chat or an issue.
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
