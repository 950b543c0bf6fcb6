"""/help: the commands, and the keys."""

from collections.abc import Iterable, Sequence

from panpan.ui.repl.canvas import say
from panpan.ui.repl.commands.command import Command, Terminal
from panpan.ui.repl.commands.layout import say_pairs

KEYS: Sequence[tuple[str, str]] = (
    ("Enter", "send; while a turn runs, the model gets it at the next round"),
    ("Alt+Enter", "queue it for after the turn"),
    ("Alt+Up", "take the last queued message back"),
    ("Ctrl+J, Shift+Enter, \\ Enter", "a new line"),
    ("Esc", "interrupt what runs"),
    ("Esc Esc", "clear the input"),
    ("Ctrl+C", "clear the input, then interrupt; twice: leave"),
    ("Ctrl+D", "leave, where the input is empty"),
    ("Ctrl+O", "show output whole, and fold it again"),
    ("Ctrl+R", "search what was typed before"),
    ("Ctrl+G", "write in $EDITOR"),
    ("Shift+Tab", "the next permission mode"),
    ("Tab", "complete a command or path"),
    ("R", "while a retry waits and the input is empty: try now"),
    ("!", "at the beginning: run a shell command"),
    ("/", "at the beginning: a command"),
    ("@", "a file or folder"),
    ("?", "on an empty line: this help"),
)


def help_command(others: Iterable[Command]) -> Command:
    """Return the command that lists `others` and itself."""

    async def show(terminal: Terminal, rest: str) -> None:
        say(terminal, "Commands", "strong")
        say_pairs(terminal, [(_usage(command), _line(command)) for command in commands])
        say(terminal, "\nKeys", "strong")
        say_pairs(terminal, KEYS)

    command = Command("help", "Show the commands and the keys", show, is_immediate=True)
    commands = sorted([*others, command], key=lambda command: command.name)
    return command


def _usage(command: Command) -> str:
    return f"/{command.name} {command.arguments}".rstrip()


def _line(command: Command) -> str:
    also = ", ".join(f"/{alias}" for alias in command.aliases)
    return f"{command.help} (also {also})" if also else command.help
