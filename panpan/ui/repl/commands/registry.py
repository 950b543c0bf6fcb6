"""All slash commands, and how one is found."""

from collections.abc import Sequence

from panpan.system.terminal_text import clean_line
from panpan.ui.repl.commands.agents_command import AGENTS_COMMANDS
from panpan.ui.repl.commands.branch_commands import BRANCH_COMMANDS
from panpan.ui.repl.commands.command import Command
from panpan.ui.repl.commands.compact_command import COMPACT_COMMANDS
from panpan.ui.repl.commands.export_command import EXPORT_COMMANDS
from panpan.ui.repl.commands.help_command import KEYS, help_command
from panpan.ui.repl.commands.lsp_command import LSP_COMMANDS
from panpan.ui.repl.commands.missing_commands import MISSING_COMMANDS
from panpan.ui.repl.commands.model_commands import MODEL_COMMANDS
from panpan.ui.repl.commands.panpan_commands import PANPAN_COMMANDS
from panpan.ui.repl.commands.permission_commands import PERMISSION_COMMANDS
from panpan.ui.repl.commands.prompt_commands import PROMPT_COMMANDS
from panpan.ui.repl.commands.screen_commands import SCREEN_COMMANDS
from panpan.ui.repl.commands.session_commands import SESSION_COMMANDS
from panpan.ui.repl.commands.show_commands import SHOW_COMMANDS
from panpan.ui.repl.commands.task_commands import TASK_COMMANDS
from panpan.ui.repl.commands.todos_command import TODOS_COMMANDS
from panpan.ui.repl.commands.undo_commands import UNDO_COMMANDS

_LIKE_ENOUGH = 60
"""Of 100, as rapidfuzz has it; what is less alike would be no help."""
_MOST_NAMES = 3
_MEANT_COMMANDS = {"exit": "/exit", "quit": "/exit", "q": "/exit", "help": "/help", "?": "/help"}
"""What a line means that is one of these words and nothing else."""


def all_commands() -> list[Command]:
    """Return every command, in the order of its name."""
    commands = [
        *SESSION_COMMANDS,
        *AGENTS_COMMANDS,
        *BRANCH_COMMANDS,
        *COMPACT_COMMANDS,
        *EXPORT_COMMANDS,
        *LSP_COMMANDS,
        *SHOW_COMMANDS,
        *PANPAN_COMMANDS,
        *MODEL_COMMANDS,
        *PERMISSION_COMMANDS,
        *PROMPT_COMMANDS,
        *SCREEN_COMMANDS,
        *TASK_COMMANDS,
        *UNDO_COMMANDS,
        *TODOS_COMMANDS,
        *MISSING_COMMANDS,
    ]
    commands.append(help_command(commands, KEYS))
    return sorted(commands, key=lambda command: command.name)


def command_in(text: str) -> str | None:
    """Return the command that a text is, with its slash; None where it is none."""
    line = text.strip()
    if meant := _MEANT_COMMANDS.get(line.lower()):
        return meant
    return line if line.startswith("/") and not _is_path(line) else None


def find(commands: Sequence[Command], line: str) -> tuple[Command, str] | None:
    """Return the command that a line calls, and the rest of the line; None where there is none of that name.

    Args:
        commands: Those to choose from.
        line: What was typed, with its slash.
    """
    name, rest = _name_and_rest(line)
    command = next((command for command in commands if name in (command.name, *command.aliases)), None)
    return None if command is None else (command, rest)


def unknown(commands: Sequence[Command], line: str) -> str:
    """Return a sentence for a line that calls no command: what there is of nearly that name."""
    from rapidfuzz import fuzz, process

    name, _ = _name_and_rest(line)
    names = [name for command in commands for name in (command.name, *command.aliases)]
    found = process.extract(name, names, scorer=fuzz.WRatio, limit=_MOST_NAMES, score_cutoff=_LIKE_ENOUGH)
    near = " or ".join(f"/{name}" for name, _, _ in found)
    hint = f"did you mean {near}?" if near else "/help lists what there is"
    return f"there is no command /{clean_line(name)[:40]}; {hint}"


def _name_and_rest(line: str) -> tuple[str, str]:
    name, *rest = line.strip().removeprefix("/").split(maxsplit=1) or [""]
    return name.lower(), rest[0] if rest else ""


def _is_path(line: str) -> bool:
    """Return whether a line begins with a path, as a pasted one does, and not with a command."""
    return "/" in line[1:].split(maxsplit=1)[0] if len(line) > 1 else True
