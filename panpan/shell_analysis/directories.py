"""Where each command of a line runs: the working directory, as `cd` changes it on the way.

The rule: where a command runs counts as known only where every way through the line leads to one of a few directories.
It is assumed that the shell starts in its physical directory with neither CDPATH nor OLDPWD nor functions in its
environment; whoever starts it has to see to that.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from panpan.shell_analysis.facts import SimpleCommand
from panpan.shell_analysis.shell_changes import may_change_shell
from panpan.system.files.home import user_home
from panpan.types.dataclass import dataclass

_MOVES = frozenset({"cd", "pushd"})
_RUN_BUILTINS = frozenset({"builtin", "command", "eval"})
_FLAG = re.compile("-[LPe@]+|--")
"""A word that is no place to `cd`, which leads home without one."""
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
    commands: "tuple[SimpleCommand | Group, ...]"


@dataclass(frozen=True, slots=True)
class Group:
    """Pipelines in parentheses or braces."""

    pipelines: tuple[Pipeline, ...]
    is_subshell: bool
    opened: SimpleCommand | None = None
    """Where it is redirected, a command without words that is so: the files are opened before anything in it runs."""


Read: TypeAlias = Callable[[SimpleCommand], SimpleCommand]
"""Returns a command with more of its words known, once it is known where it runs."""


def with_directories(pipelines: Iterable[Pipeline], read: Read = lambda command: command) -> tuple[SimpleCommand, ...]:
    """Return the simple commands in their order, each with the directory in which it runs, and as `read` returns it."""
    walk = _Walk(read)
    walk.place(pipelines, frozenset({"."}))
    return tuple(walk.placed)


def with_likely_directories(commands: Sequence[SimpleCommand]) -> tuple[SimpleCommand, ...]:
    """Return commands so that those that may run anywhere are looked for wherever a `cd` of the line leads."""
    if all(command.directories for command in commands):
        return tuple(commands)
    places = ["."]
    for command in commands:
        words = command.words[1:] if command.words and command.words[0].text in _RUN_BUILTINS else command.words
        if words and words[0].text in _MOVES:
            texts = [word.text or word.home_path for word in words[1:]]
            targets = [text for text in texts if not _FLAG.fullmatch(text)] or [str(user_home())]
            joined = [posixpath.normpath(posixpath.join(place, target)) for place in places for target in targets]
            places = list(dict.fromkeys([*places, *joined]))[:MOST_DIRECTORIES]
    if places == ["."]:
        return tuple(commands)
    likely = tuple(places)
    return tuple(command if command.directories else replace(command, likely=likely) for command in commands)


class _Walk:
    """One walk through a line."""

    def __init__(self, read: Read) -> None:
        self.placed: list[SimpleCommand] = []
        self._read = read

    def place(self, pipelines: Iterable[Pipeline], start: Places) -> tuple[Places, Places]:
        """Add the commands of a list, and return where the shell is when it has succeeded and has failed."""
        succeeded: Places = start
        failed: Places = frozenset()
        for pipeline in pipelines:
            match pipeline.joint:
                case "&&":
                    here, succeeded_before, failed_before = succeeded, frozenset[str | None](), failed
                case "||":
                    here, succeeded_before, failed_before = failed, succeeded, frozenset[str | None]()
                case _:
                    here, succeeded_before, failed_before = succeeded | failed, frozenset[str | None](), frozenset()
            good, bad = self._run(pipeline.commands, here)
            if pipeline.is_negated:
                good, bad = bad, good
            succeeded, failed = succeeded_before | good, failed_before | bad
        return succeeded, failed

    def _run(self, commands: "Sequence[SimpleCommand | Group]", here: Places) -> tuple[Places, Places]:
        """Add the commands of a pipeline, and return where the shell is when it has succeeded and failed."""
        after = here, here
        for command in commands:
            if isinstance(command, SimpleCommand):
                after = _after(self._add(command, here), here)
                continue
            if command.opened is not None:
                self._add(command.opened, here)
            good, bad = self.place(command.pipelines, here)
            bad = bad if command.opened is None else bad | here  # where a file could not be opened, nothing ran
            after = (here, here) if command.is_subshell else (good, bad)
        return after if len(commands) == 1 else (here, here)  # each part of a pipeline runs in a subshell

    def _add(self, command: SimpleCommand, here: Places) -> SimpleCommand:
        directories = _known(here)
        if command.directories != directories:
            command = replace(command, directories=directories)
        self.placed.append(self._read(command))
        return self.placed[-1]


def _known(places: Places) -> tuple[str, ...] | None:
    """Return where the shell may be; None where that may be anywhere, or is nowhere since nothing leads here."""
    known = tuple(sorted(place for place in places if place is not None))
    return known if len(known) == len(places) and 0 < len(known) <= MOST_DIRECTORIES else None


def _after(command: SimpleCommand, here: Places) -> tuple[Places, Places]:
    """Return where the shell is when a command has succeeded, and where when it has failed."""
    match command.words[0].text if command.words else "":
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
