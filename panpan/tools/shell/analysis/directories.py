"""Where each command of a line runs: the working directory, as `cd` changes it on the way.

The rule: where a command runs counts as known only where every way through the line leads to one of a few directories.
It is assumed that the shell starts in its physical directory with neither CDPATH nor OLDPWD nor functions in its
environment; whoever starts it has to see to that.
"""

import posixpath
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

from panpan.tools.shell.analysis.facts import SimpleCommand
from panpan.tools.shell.analysis.shell_changes import may_change_shell
from panpan.types.dataclass import dataclass

MOST_DIRECTORIES = 8
"""In which a command may run for them to be known."""

Places: TypeAlias = frozenset[str | None]
"""The directories in which the shell may be; None stands for any, and no member means that it never gets here."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands joined by pipes, and how they follow what stands before them."""

    joint: str
    """What stands before it: `&&`, `||`, or `;` for this and line ends."""
    is_negated: bool
    commands: tuple[SimpleCommand, ...]


def with_directories(pipelines: Iterable[Pipeline]) -> tuple[SimpleCommand, ...]:
    """Return the commands in their order, each with the directory in which it runs."""
    placed: list[SimpleCommand] = []
    succeeded: Places = frozenset({"."})
    failed: Places = frozenset()
    for pipeline in pipelines:
        match pipeline.joint:
            case "&&":
                here, succeeded_before, failed_before = succeeded, frozenset[str | None](), failed
            case "||":
                here, succeeded_before, failed_before = failed, succeeded, frozenset[str | None]()
            case _:
                here, succeeded_before, failed_before = succeeded | failed, frozenset[str | None](), frozenset()
        directories = _known(here)
        placed += [_placed(command, directories) for command in pipeline.commands]
        good, bad = _after(pipeline.commands, here)
        if pipeline.is_negated:
            good, bad = bad, good
        succeeded, failed = succeeded_before | good, failed_before | bad
    return tuple(placed)


def _placed(command: SimpleCommand, directories: tuple[str, ...] | None) -> SimpleCommand:
    return command if command.directories == directories else replace(command, directories=directories)


def _known(places: Places) -> tuple[str, ...] | None:
    """Return where the shell may be; None where that may be anywhere, or is nowhere since nothing leads here."""
    known = tuple(sorted(place for place in places if place is not None))
    return known if len(known) == len(places) and 0 < len(known) <= MOST_DIRECTORIES else None


def _after(commands: tuple[SimpleCommand, ...], here: Places) -> tuple[Places, Places]:
    """Return where the shell is when a pipeline has succeeded, and where when it has failed."""
    if len(commands) != 1 or not commands[0].words:
        return here, here  # each part of a pipeline runs in a subshell
    command = commands[0]
    match command.words[0].text:
        case "cd":
            return frozenset(_moved(place, command) for place in here), here
        case "exit" if _surely_exits(command):
            return frozenset(), frozenset()
        case _:
            return (frozenset({None}), frozenset({None})) if may_change_shell(command) else (here, here)


def _surely_exits(command: SimpleCommand) -> bool:
    """Whether nothing follows: with a redirect that fails, `--help` or two operands, bash goes on."""
    operands = [word.text or "" for word in command.words[1:]]
    return not command.redirects and len(operands) <= 1 and all(text.isdecimal() for text in operands)


def _moved(place: str | None, cd: SimpleCommand) -> str | None:
    """Return where `cd` leads; bash joins and shortens the path as text before it goes there."""
    operands = cd.words[1:]
    if operands and operands[0].text == "--":
        operands = operands[1:]
    elif operands and (operands[0].text or "").startswith("-"):
        return None  # the directory before, or an option
    target = operands[0].text if len(operands) == 1 else None
    if not target or (place is None and not target.startswith("/")):
        return None
    path = posixpath.normpath(posixpath.join(place or "", target))
    return f"./{path}" if path.startswith("~") else path
