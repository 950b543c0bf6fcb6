"""List of all slash commands, and their lookup."""

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

from panpan.faces.terminal.commands.choice_commands import MODEL_COMMANDS, SCREEN_COMMANDS, look_of
from panpan.faces.terminal.commands.config_command import CONFIG_COMMANDS
from panpan.faces.terminal.commands.copy_command import COPY_COMMANDS
from panpan.faces.terminal.commands.session_commands import SESSION_COMMANDS
from panpan.faces.terminal.commands.show_commands import SHOW_COMMANDS
from panpan.session.command import Command, Terminal
from panpan.system.text.terminal_text import clean_line

KEYS: Sequence[tuple[str, str]] = (
    ("Enter", "send; while a turn runs, the model gets it at the next round"),
    ("Alt+Enter", "queue it for after the turn"),
    ("Alt+Up", "take the last queued message back; in an empty input Up does, too"),
    ("Ctrl+J, Shift+Enter, \\ Enter", "a new line"),
    ("Esc", "interrupt what runs"),
    ("Esc Esc", "clear the input; Ctrl+S brings it back. In an empty one: go back to an earlier message"),
    ("Ctrl+C", "clear the input, then interrupt; twice: leave"),
    ("Ctrl+S", "stash the draft, or bring it back"),
    ("Ctrl+D", "quit, if the input is empty"),
    (
        "Ctrl+O",
        "show output and thoughts whole, and fold them again; later, the last turn and all before it in a pager",
    ),
    ("Ctrl+B", "move the running command to the background, or list background tasks"),
    ("Ctrl+T", "hide or show the todo list"),
    ("Ctrl+R", "search your history"),
    ("Ctrl+Z", "suspend panpan; fg resumes it"),
    ("Ctrl+G", "write in $EDITOR"),
    ("Ctrl+V", "attach the image in the clipboard"),
    ("Ctrl+L", "empty the screen"),
    ("Shift+Tab", "the next permission mode"),
    ("Alt+P", "choose the model"),
    ("Alt+T", "switch thinking on or off"),
    ("Tab, Enter", "in a list: accept the selection; Enter also runs a command"),
    ("R", "while a retry waits and the input is empty: try now"),
    ("!", "at the beginning: run a shell command"),
    ("#", "at the beginning, with a blank: keep the line as a rule for the model"),
    ("/", "at the beginning: a command"),
    ("@", "a file or folder"),
    ("?", "on an empty line: this help"),
)


KEYS_OF_LINES: Sequence[tuple[str, str]] = (
    ("Enter", "send; lines that are pasted together are one prompt"),
    ("Ctrl+C", "interrupt; at the prompt: drop the line; twice: quit"),
    ("Ctrl+D", "quit, as exit does; panpan -c resumes"),
    ("y, a, l, n", "answer a question: yes, always, always the like, no; anything else is a no with your words"),
    ("/", "at the beginning: a command"),
    ("!", "at the beginning: run a shell command; the model gets its output"),
    ("#", "at the beginning, with a blank: keep the line as a rule for the model"),
    ("@", "a file or folder"),
)


def help_command(others: Iterable[Command], keys: Sequence[tuple[str, str]]) -> Command:
    """Return the command that lists `others` and itself, and explains the keys."""

    async def show(terminal: Terminal, rest: str) -> None:
        from panpan.types.content import table  # the first screen needs this module, but no displays

        listed = table((_usage(command), _line(command)) for command in commands)
        titles = ("Keys", "Commands") if rest == "keys" else ("Commands", "Keys")
        here = keys if look_of(terminal) is not None else KEYS_OF_LINES
        sections = {"Commands": listed, "Keys": table(here)}
        await terminal.show_panel({title: sections[title] for title in titles if keys or title == "Commands"})

    what = "Show the commands and the keys" if keys else "Show the commands"
    arguments = "[keys]" if keys else ""
    command = Command("help", what, show, arguments=arguments, aliases=("h",), is_immediate=True, is_panel=True)
    commands = sorted([*others, command], key=lambda command: command.name)
    return command


def _usage(command: Command) -> str:
    return f"/{command.name} {command.arguments}".rstrip()


def _line(command: Command) -> str:
    also = ", ".join(f"/{alias}" for alias in command.aliases)
    return f"{command.help} (also {also})" if also else command.help


_NEARLY = 0.75
"""Least similarity from 0 to 1 (difflib) of a mistyped command."""
_MOST_NAMES = 3
_MEANT_COMMANDS = {"exit": "/exit", "quit": "/exit", "q": "/exit", "help": "/help", "?": "/help"}
"""Whole lines that mean a command."""


def all_commands(of_capabilities: Iterable[Command]) -> list[Command]:
    """Return every command of the faces and the capabilities, sorted by name."""
    commands = [
        *SESSION_COMMANDS,
        *SHOW_COMMANDS,
        *CONFIG_COMMANDS,
        *COPY_COMMANDS,
        *MODEL_COMMANDS,
        *SCREEN_COMMANDS,
        *of_capabilities,
    ]
    commands.append(help_command(commands, KEYS))
    return sorted(commands, key=lambda command: command.name)


def with_further(commands: Sequence[Command], further: Iterable[Command]) -> list[Command]:
    """Return commands and those that only this session has, whose names are not taken.

    A command that sends a prompt of ours gives way to one of the user's.
    """
    taken = {name for one in commands if not one.sends_itself for name in (one.name, *one.aliases)}
    added = {one.name: one for one in further if not taken & {one.name, *one.aliases}}
    if not added:
        return list(commands)
    every = [*(one for one in commands if one.name not in ("help", *added)), *added.values()]
    every.append(help_command(every, KEYS))
    return sorted(every, key=lambda command: command.name)


class LateCommands(Sequence[Command]):
    """Commands that are put together when one is looked for, since files may have to be read for that."""

    def __init__(self, make: Callable[[], Sequence[Command]]) -> None:
        self._make = make

    @cached_property
    def _all(self) -> Sequence[Command]:
        return self._make()

    def __getitem__(self, index: Any) -> Any:
        return self._all[index]

    def __len__(self) -> int:
        return len(self._all)


def note_in(text: str) -> str | None:
    """Return the command that a typed line means which begins with `# `; None if it means none, as several lines."""
    line = text.strip()
    is_note = line.startswith("# ") and "\n" not in line
    return f"/note {line.removeprefix('#').strip()}" if is_note else None


def command_in(text: str, commands: Sequence[Command]) -> str | None:
    """Return the command line that a text means, with its slash; None if the text is a prompt.

    A text means a command if its first word names one, nearly names one, or is the only word. `/etc/hosts is wrong` and
    `/tmp is full` are prompts.
    """
    line = text.strip()
    if meant := _MEANT_COMMANDS.get(line.lower()):
        return meant
    return line if line.startswith("/") and _is_meant_as_command(line, commands) else None


def find(commands: Sequence[Command], line: str) -> tuple[Command, str] | None:
    """Return the command that a line calls, and the rest of the line; None if there is no command of that name."""
    name, rest = _name_and_rest(line)
    command = next((command for command in commands if name in (command.name, *command.aliases)), None)
    return None if command is None else (command, rest)


def unknown(commands: Sequence[Command], line: str) -> str:
    """Return the error for a line that calls no command, with names that begin like it or are similar."""
    name, _ = _name_and_rest(line)
    begin_so = [known for known in _names(commands) if len(name) > 1 and known.startswith(name)]
    near = get_close_matches(name, _names(commands), n=_MOST_NAMES, cutoff=_NEARLY)
    found = list(dict.fromkeys([*begin_so, *near]))[:_MOST_NAMES]
    hint = f"did you mean {' or '.join(f'/{one}' for one in found)}?" if found else "/help lists the commands"
    return f"there is no command /{clean_line(name)[:40]}; {hint}"


def _names(commands: Sequence[Command]) -> Sequence[str]:
    """Return names and aliases without those of one letter, which are similar to any word."""
    return [name for command in commands for name in (command.name, *command.aliases) if len(name) > 1]


def _name_and_rest(line: str) -> tuple[str, str]:
    name, *rest = line.strip().removeprefix("/").split(maxsplit=1) or [""]
    return name.lower(), rest[0] if rest else ""


def _is_meant_as_command(line: str, commands: Sequence[Command]) -> bool:
    first, *rest = line.split(maxsplit=1)
    if first == "/" or "/" in first[1:]:  # a path, maybe pasted
        return False
    if not rest or find(commands, line) is not None:
        return True
    close = get_close_matches(first[1:].lower(), _names(commands), n=1, cutoff=_NEARLY)
    return not Path(first).exists() and bool(close)
