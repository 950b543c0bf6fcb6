"""Slash commands where there are only lines: what they show is printed, and a list is chosen from by number or name."""

import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from panpan.app import slash_commands
from panpan.cli_kit.failures import StdoutWriter
from panpan.cli_kit.questions import TerminalQuestions
from panpan.errors import ConfigError
from panpan.faces.terminal.commands.choice_commands import SCREEN_COMMANDS
from panpan.faces.terminal.commands.registry import all_commands, command_in, find, help_command, unknown
from panpan.faces.terminal.rendering.cells import LEAST_WIDTH
from panpan.faces.terminal.rendering.displays import display_rows, show_displays
from panpan.faces.terminal.screen.theme import Theme
from panpan.session.command import Command, Look, Next, Option, OptionSearch, Questions, Terminal, say
from panpan.session.session import Session
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.content import Display
from panpan.types.messages import UserMessage

KEYS: Sequence[tuple[str, str]] = (
    ("Enter", "send; lines that are pasted together are one prompt"),
    ("Ctrl+C", "interrupt; at the prompt: drop the line; twice: quit"),
    ("Ctrl+D", "quit, as exit does; panpan -c resumes"),
    ("y, a, l, n", "answer a question: yes, always, always the like, no; anything else is a no with your words"),
    ("/", "at the beginning: a command"),
    ("!", "at the beginning: run a shell command; the model gets its output"),
    ("@", "a file or folder"),
)
_MOST_READ = 100
"""Lines of a long text that are printed."""
_MOST_DIGITS = 2
"""Of a number in a list; what is longer is a name, such as the beginning of an id."""


class LineTerminal:
    """What a command may use of a terminal that only gets lines.

    Args:
        session: The one that it is about.
        env: The environment that panpan was started in.
        theme: How things look.
        show: Prints a line.
        command: The command that runs.
        numbers: What the user picked of its lists, one after the other, from 1; behind them he wants to see the list.
        waited_s: Seconds that the session has waited for the user's answers.
    """

    def __init__(
        self,
        session: Session,
        env: Mapping[str, str],
        theme: Theme,
        show: Callable[[str], None],
        command: Command,
        numbers: Sequence[int],
        waited_s: float,
    ) -> None:
        self.session = session
        self.env = env
        self.theme = theme
        self.prompts: list[str | UserMessage] = []
        """What the model is to be asked when the command is over."""
        self.waited_s = waited_s
        """Seconds that the session has waited for the user's answers."""
        self.then: Next | None = None
        """What comes after this session; None: it goes on."""
        self._show = show
        self._command = command
        self._numbers = list(numbers)
        self._picked = list[int]()

    @property
    def width(self) -> int:
        return shutil.get_terminal_size().columns

    def show(self, *lines: str) -> None:
        for line in lines:
            self._show(line)

    def display(self, *shapes: Display) -> None:
        show_displays(self, shapes)

    async def choose(self, title: str, options: Sequence[Option], search: OptionSearch | None = None) -> int | None:
        """Return what the user picked by its number; else print the list, and how to pick from it."""
        number = self._numbers.pop(0) if self._numbers else None
        if number is not None and 1 <= number <= len(options):
            self._picked.append(number)
            return number - 1
        if number is not None:
            say(self, f"there is no number {number} in this list:", "bad")
        say(self, title, "strong")
        for number, option in enumerate(options, 1):
            say(self, f"{number:3}. {option.label}{' (now)' if option.is_current else ''}")
            if option.detail:
                say(self, f"     {option.detail}", "dim")
        say(self, " ".join([f"/{self._command.name}", *map(str, self._picked), "NUMBER picks one"]), "dim")
        return None

    async def show_panel(self, sections: Mapping[str, Display]) -> None:
        for number, (title, shape) in enumerate(sections.items()):
            say(self, f"\n{title}" if number else title, "strong")
            self.display(shape)

    async def watch(self, look: Look) -> None:
        await self.show_panel(await look())

    async def read(self, *shapes: Display, from_end: bool = False) -> None:
        """Print all, or the end of it."""
        rows = [row for shape in shapes for row in display_rows(shape, max(self.width, LEAST_WIDTH), self.theme)]
        if from_end and (above := len(rows) - _MOST_READ) > 0:
            say(self, f"… {above:,} more lines above", "dim")
            rows = rows[-_MOST_READ:]
        self.show(*rows)

    def questions(self) -> AbstractAsyncContextManager[Questions]:
        return nullcontext(TerminalQuestions(is_plain=True))

    def submit(self, prompt: str | UserMessage) -> None:
        self.prompts.append(prompt)

    def hand_back(self, text: str) -> None:
        """Show it, so that it can be copied: there is no input that could hold it."""
        say(self, "what you said:", "dim")
        self.show(*clean_for_terminal(text).splitlines())

    def leave(self, then: Next) -> None:
        self.then = then


class LineCommands:
    """Runs commands, and prints what they show as it comes.

    Args:
        out: Standard output.
        env: The environment that panpan was started in.
        has_colour: True if headings are bold and notes dim.
    """

    def __init__(self, out: StdoutWriter, env: Mapping[str, str], *, has_colour: bool) -> None:
        self._out = out
        self._env = env
        self._theme = Theme("plain", has_sequences=has_colour)
        self._commands = line_commands()

    def line_in(self, text: str) -> str | None:
        return command_in(text, self._commands)

    async def run(self, line: str, session: Session, waited_s: float = 0.0) -> LineTerminal:
        """Run the command of a line, and return the terminal that it ran on.

        Args:
            line: What was typed, with its slash.
            session: The one that it is about.
            waited_s: Seconds that it has waited for the user's answers.

        Raises:
            ConfigError: There is no such command.
            PanpanError: It could not do what it was asked for.
        """
        send, receive = anyio.create_memory_object_stream[str](float("inf"))
        work = run_line(
            self._commands,
            line,
            session,
            env=self._env,
            theme=self._theme,
            show=send.send_nowait,
            waited_s=waited_s,
        )
        return await _printed(work, send, receive, self._out)


async def run_line(
    commands: Sequence[Command],
    line: str,
    session: Session,
    *,
    env: Mapping[str, str],
    theme: Theme,
    show: Callable[[str], None],
    waited_s: float = 0.0,
) -> LineTerminal:
    """Run the command of a line, and return the terminal that it ran on.

    Args:
        commands: Those that there are.
        line: What was typed, with its slash.
        session: The one that it is about.
        env: The environment that panpan was started in.
        theme: How things look.
        show: Takes each line that it shows.
        waited_s: Seconds that the session has waited for the user's answers.

    Raises:
        ConfigError: There is no such command.
        PanpanError: It could not do what it was asked for.
    """
    found = find(commands, line)
    if found is None:
        raise ConfigError(unknown(commands, line))
    command, rest = found
    is_number = command.offers_choice and all(
        word.isdecimal() and len(word) <= _MOST_DIGITS for word in rest.split() or [""]
    )
    numbers = [*map(int, rest.split())] if is_number else ()
    terminal = LineTerminal(session, env, theme, show, command, numbers, waited_s)
    await command.run(terminal, "" if is_number else rest)
    return terminal


async def _printed(
    work: Awaitable[LineTerminal],
    send: MemoryObjectSendStream[str],
    receive: MemoryObjectReceiveStream[str],
    out: StdoutWriter,
) -> LineTerminal:
    done: list[LineTerminal] = []
    failures: list[Exception] = []

    async def do() -> None:
        with send:
            try:
                done.append(await work)
            except Exception as error:  # raised again below: what was shown before it comes first
                failures.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(do)
        with receive:
            async for line in receive:
                await out.write(f"{line}\n")
    if failures:
        raise failures[0]
    return done[0]


def line_commands() -> list[Command]:
    """Return the commands, in the order of their names; those about the screen say that there is none."""
    about_screen = {command.name for command in SCREEN_COMMANDS}
    commands = [
        replace(command, help=f"{command.help} (not with lines only)", run=_without_screen(command.name))
        if command.name in about_screen
        else command
        for command in all_commands(slash_commands())
        if command.name != "help"
    ]
    commands.append(help_command(commands, KEYS))
    return sorted(commands, key=lambda command: command.name)


def _without_screen(name: str) -> Callable[[Terminal, str], Awaitable[None]]:
    async def tell(terminal: Terminal, rest: str) -> None:
        say(terminal, f"/{name} changes nothing here: panpan prints lines only; without --plain it has a screen")

    return tell
