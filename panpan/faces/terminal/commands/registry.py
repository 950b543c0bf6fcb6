"""All slash commands, and how one is found."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from panpan.capabilities.background.task_commands import TASK_COMMANDS
from panpan.capabilities.compaction.compact_command import COMPACT_COMMANDS
from panpan.capabilities.language_servers.lsp_command import LSP_COMMANDS
from panpan.capabilities.snapshots.undo_commands import UNDO_COMMANDS
from panpan.capabilities.subagents.agents_command import AGENTS_COMMANDS
from panpan.capabilities.todos.todos_command import TODOS_COMMANDS
from panpan.core.command import Command
from panpan.faces.terminal.commands.branch_commands import BRANCH_COMMANDS
from panpan.faces.terminal.commands.export_command import EXPORT_COMMANDS
from panpan.faces.terminal.commands.help_command import KEYS, help_command
from panpan.faces.terminal.commands.missing_commands import MISSING_COMMANDS
from panpan.faces.terminal.commands.model_commands import MODEL_COMMANDS
from panpan.faces.terminal.commands.panpan_commands import PANPAN_COMMANDS
from panpan.faces.terminal.commands.prompt_commands import PROMPT_COMMANDS
from panpan.faces.terminal.commands.screen_commands import SCREEN_COMMANDS
from panpan.faces.terminal.commands.session_commands import SESSION_COMMANDS
from panpan.faces.terminal.commands.show_commands import SHOW_COMMANDS
from panpan.permissions.permission_commands import PERMISSION_COMMANDS
from panpan.system.text.terminal_text import clean_line

_NEARLY = 0.75
"""Likeness from 0 to 1 (difflib) below which a word is no mistyped command."""
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


def command_in(text: str, commands: Sequence[Command]) -> str | None:
    """Return the command that a text is meant as, with its slash; None where it is a prompt.

    A first word that names a command, stands alone, or is nearly the name of one is meant as a command. `/etc/hosts is
    wrong` and `/tmp is full` are prompts.

    Args:
        text: What the user said.
        commands: Those that there are.
    """
    line = text.strip()
    if meant := _MEANT_COMMANDS.get(line.lower()):
        return meant
    return line if line.startswith("/") and _is_meant_as_command(line, commands) else None


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
    """Return a sentence for a line that calls no command, with the names that begin like it or are nearly it."""
    name, _ = _name_and_rest(line)
    begin_so = [known for known in _names(commands) if len(name) > 1 and known.startswith(name)]
    near = get_close_matches(name, _names(commands), n=_MOST_NAMES, cutoff=_NEARLY)
    found = list(dict.fromkeys([*begin_so, *near]))[:_MOST_NAMES]
    hint = f"did you mean {' or '.join(f'/{one}' for one in found)}?" if found else "/help lists what there is"
    return f"there is no command /{clean_line(name)[:40]}; {hint}"


def _names(commands: Sequence[Command]) -> Sequence[str]:
    """Return names and aliases without those of one letter, which are near to any word."""
    return [name for command in commands for name in (command.name, *command.aliases) if len(name) > 1]


def _name_and_rest(line: str) -> tuple[str, str]:
    name, *rest = line.strip().removeprefix("/").split(maxsplit=1) or [""]
    return name.lower(), rest[0] if rest else ""


def _is_meant_as_command(line: str, commands: Sequence[Command]) -> bool:
    first, *rest = line.split(maxsplit=1)
    if first == "/" or "/" in first[1:]:  # a path, as pasted ones begin with
        return False
    if not rest or find(commands, line) is not None:
        return True
    close = get_close_matches(first[1:].lower(), _names(commands), n=1, cutoff=_NEARLY)
    return not Path(first).exists() and bool(close)
