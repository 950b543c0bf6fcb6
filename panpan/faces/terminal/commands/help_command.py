"""/help: the commands, and the keys."""

from collections.abc import Iterable, Sequence

from panpan.core.command import Command, Terminal
from panpan.faces.terminal.commands.layout import say_pairs
from panpan.faces.terminal.screen.canvas import say

KEYS: Sequence[tuple[str, str]] = (
    ("Enter", "send; while a turn runs, the model gets it at the next round"),
    ("Alt+Enter", "queue it for after the turn"),
    ("Alt+Up", "take the last queued message back; in an empty input Up does, too"),
    ("Ctrl+J, Shift+Enter, \\ Enter", "a new line"),
    ("Esc", "interrupt what runs"),
    ("Esc Esc", "clear the input; Ctrl+S brings it back. In an empty one: go back to an earlier message"),
    ("Ctrl+C", "clear the input, then interrupt; twice: leave"),
    ("Ctrl+S", "put what is typed aside; in an empty input, bring it back"),
    ("Ctrl+D", "leave, where the input is empty"),
    ("Ctrl+O", "show output and thoughts whole, and fold them again; later, the whole conversation in a pager"),
    ("Ctrl+B", "let what runs go on in the background, until panpan ends; where nothing can, show what is there"),
    ("Ctrl+T", "hide what the model has set out to do, or show it again"),
    ("Ctrl+R", "search what was typed before"),
    ("Ctrl+Z", "back to the shell; fg goes on"),
    ("Ctrl+G", "write in $EDITOR"),
    ("Ctrl+V", "mention the picture in the clipboard"),
    ("Ctrl+L", "empty the screen"),
    ("Shift+Tab", "the next permission mode"),
    ("Alt+P", "choose the model"),
    ("Alt+T", "let the model think first, or no more"),
    ("Tab, Enter", "in the list of commands or files: take what is selected; a command runs with Enter"),
    ("R", "while a retry waits and the input is empty: try now"),
    ("!", "at the beginning: run a shell command"),
    ("/", "at the beginning: a command"),
    ("@", "a file or folder"),
    ("?", "on an empty line: this help"),
)


def help_command(others: Iterable[Command], keys: Sequence[tuple[str, str]]) -> Command:
    """Return the command that lists `others` and itself, and says what the keys do."""

    async def show(terminal: Terminal, rest: str) -> None:
        say(terminal, "Commands", "strong")
        say_pairs(terminal, [(_usage(command), _line(command)) for command in commands if not command.is_missing])
        if missing := [command for command in commands if command.is_missing]:
            say(terminal, "\nNot there yet", "strong")
            say_pairs(terminal, [(_usage(command), _line(command)) for command in missing])
        if keys:
            say(terminal, "\nKeys", "strong")
            say_pairs(terminal, keys)

    what = "Show the commands and the keys" if keys else "Show the commands"
    command = Command("help", what, show, aliases=("h",), is_immediate=True)
    commands = sorted([*others, command], key=lambda command: command.name)
    return command


def _usage(command: Command) -> str:
    return f"/{command.name} {command.arguments}".rstrip()


def _line(command: Command) -> str:
    also = ", ".join(f"/{alias}" for alias in command.aliases)
    return f"{command.help} (also {also})" if also else command.help
