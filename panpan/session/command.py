"""Slash commands: their name, help and arguments, and the terminal that they run in.

A command shows shapes (`types/display.py`), and no face: each face draws them in its own way.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import field, replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

from panpan.types.dataclass import dataclass
from panpan.types.role import Role

if TYPE_CHECKING:
    from panpan.session.session import Session
    from panpan.types.content import Display
    from panpan.types.messages import UserMessage


@dataclass(frozen=True, slots=True)
class Leave:
    """End the program."""


@dataclass(frozen=True, slots=True)
class OpenSession:
    """Close this session and open another one."""

    resume: str | None = None
    """Id of the session; None opens a new one."""
    keeps_choices: bool = False
    """True if it contains the same conversation, as a copy of this one, so that choices made here count there too."""
    message: str = field(default="", compare=False)
    """Text for the user, shown once this session is left, since they may stay after all."""


Next: TypeAlias = Leave | OpenSession


@dataclass(frozen=True, slots=True)
class Option:
    """One line of a list to choose from."""

    label: str
    detail: str = ""
    is_current: bool = False
    key: str = ""
    """Key that picks it at once, as long as nothing is typed; empty if there is none."""


def number_options(options: Sequence[Option]) -> Sequence[Option]:
    """Return a few options, nine at most, that are picked by their numbers, counted from 1."""
    return [replace(option, key=str(number)) for number, option in enumerate(options, 1)]


OptionSearch: TypeAlias = Callable[[str], Awaitable[Mapping[int, Option]]]
"""Looks for more options, by what the user typed, and returns them by their place among all: such as have been offered
already, and new ones behind those."""


class Questions(Protocol):
    """Asks on a terminal that nothing else draws on meanwhile."""

    async def tell(self, text: str) -> None:
        """Print lines."""

    async def secret(self, question: str) -> str | None:
        """Return what the user types, unseen; None if they leave."""
        ...

    async def choose(self, title: str, options: Sequence[Option]) -> int | None:
        """Return which option the user picks; None if they leave."""
        ...


PanelSource: TypeAlias = Callable[[], Awaitable[Mapping[str, "Display"]]]
"""Returns shapes by their titles, as they are now."""


class Terminal(Protocol):
    """Interface for commands. The REPL implements it, and a fake does in tests."""

    session: "Session"

    @property
    def waited_s(self) -> float:
        """Seconds that this session has waited for the user's answers since it was opened."""
        ...

    @property
    def env(self) -> Mapping[str, str]:
        """The environment that panpan was started in; it tells the panpan home and which keys are there."""
        ...

    @property
    def width(self) -> int: ...

    def display(self, *shapes: "Display") -> None: ...

    async def choose(self, title: str, options: Sequence[Option], search: OptionSearch | None = None) -> int | None:
        """Let the user pick one and return its index, or None if they do not want to.

        `search` finds options that are not listed, while they type.
        """
        ...

    async def show_panel(self, sections: "Mapping[str, Display]") -> None:
        """Show shapes by their titles; a screen shows one at a time, and keeps none of them."""

    async def watch(self, look: "PanelSource") -> None:
        """Show what `look` returns again and again, its end first, until that is empty or the user leaves it.

        Where there are only lines, they have it once.
        """

    async def read(self, *shapes: "Display", from_end: bool = False) -> None:
        """Let the user read much, the end of it first where that matters more.

        Raises:
            ConfigError: There is no program for that.
        """

    def questions(self) -> AbstractAsyncContextManager[Questions]:
        """Give the terminal away to what asks by itself, as for a key that must not be seen."""
        ...

    def submit(self, prompt: "str | UserMessage") -> None:
        """Begin a turn, or queue it behind the one that runs."""
        ...

    def prefill_input(self, text: str) -> None:
        """Give the user a text to change and send again."""
        ...

    def leave(self, then: Next) -> None:
        """Close the session, and do what comes then."""
        ...


def say(terminal: Terminal, words: str, role: Role | None = None) -> None:
    """Show words of any origin, wrapped, in the colour of their role."""
    from panpan.types.content import text  # the first screen needs this module, but no displays

    terminal.display(text(words, role))


def say_pairs(terminal: Terminal, pairs: Iterable[tuple[str, str]]) -> None:
    """Show names and what belongs to each in two columns, the names in colour."""
    from panpan.types.content import table

    terminal.display(table(pairs))


@dataclass(frozen=True, slots=True)
class Command:
    """Command that the user types after a slash."""

    name: str
    """Name without the slash."""
    help: str
    """One line, for the list and the completion."""
    run: Callable[[Terminal, str], Awaitable[None]]
    """Function that gets the rest of the line, stripped. A `PanpanError` is shown as one line."""
    arguments: str = ""
    """Arguments as shown in lists, such as "[file]"."""
    needs_arguments: bool = False
    """True if it does nothing without arguments."""
    aliases: Sequence[str] = ()
    is_immediate: bool = False
    """True if it may run while a turn does."""
    is_panel: bool = False
    """True if it opens a panel, so that nothing of it stays on a screen."""
    sends_itself: bool = False
    """True if its line is what the user says to the model, and so is shown with that."""
    completions: "Callable[[Session], Sequence[str]]" = lambda session: ()
    """Possible arguments, for the completion."""
    has_picker: bool = False
    """True if it lets the user choose from a list, without arguments."""
    needs_terminal: bool = False
    """True if it is about the screen, or about the session on it, so that it is of no use in a script."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Result of a slash command."""

    text: str = ""
    """Text to show, a row a line, without colours, safe for a terminal."""
    prompts: "Sequence[str | UserMessage]" = ()
    """Prompts for the model, to be sent now."""


class SlashCommands(Protocol):
    """Finds and runs slash commands."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the commands that run without a terminal, without their slash."""
        ...

    def line_in(self, text: str) -> str | None:
        """Return the command that a text is meant as, with its slash; None if it is a prompt."""
        ...

    async def run(self, line: str, session: "Session") -> CommandResult:
        """Run the command of a line.

        Raises:
            ConfigError: There is no such command, or it needs a terminal.
            PanpanError: It could not do what it was asked for.
        """
        ...


class NoCommands:
    """A session without slash commands: every text is a prompt."""

    names: Sequence[str] = ()

    def line_in(self, text: str) -> str | None:
        return None

    async def run(self, line: str, session: "Session") -> CommandResult:
        return CommandResult()


class LoadedCommands:
    """Slash commands that are loaded with the first text that begins with a slash."""

    def __init__(self, load: Callable[[], SlashCommands]) -> None:
        self._load = load
        self._loaded: SlashCommands | None = None

    @property
    def names(self) -> Sequence[str]:
        return self._commands.names

    def line_in(self, text: str) -> str | None:
        return self._commands.line_in(text) if text.lstrip().startswith("/") else None

    async def run(self, line: str, session: "Session") -> CommandResult:
        return await self._commands.run(line, session)

    @property
    def _commands(self) -> SlashCommands:
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded
