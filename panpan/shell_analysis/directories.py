"""The folders of a line: the directory of each of its commands, and the folder in a word such as `$HOME`.

The rule: where a command runs counts as known only where every way through the line leads to one of a few directories.
It is assumed that the shell starts in its physical directory with neither CDPATH nor OLDPWD nor functions in its
environment; the code that starts it ensures that. Words are read for judging alone, and that never makes a line more
harmless, since what runs is the line as it is written: where it is not certain which folder a word will be, it is the
likeliest path, and says that it is a guess.
"""

import posixpath
import pwd
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from panpan.shell_analysis.facts import SimpleCommand, Word
from panpan.shell_analysis.shell_changes import may_change_shell
from panpan.shell_analysis.words import NotPlainError, with_braces_expanded, word_at, word_of
from panpan.system.files.canonical import user_home
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

_MOVES = frozenset({"cd", "pushd"})
_RUN_BUILTINS = frozenset({"builtin", "command", "eval"})
_FLAG = compile_late("-[LPe@]+|--")
"""A word that is no place to `cd`, which leads home without one."""
MOST_DIRECTORIES = 8
"""Most directories in which a command may run; with more, they count as unknown."""

Places: TypeAlias = frozenset[str | None]
"""The directories in which the shell may be. None is any directory; an empty set means that it never gets here."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands joined by pipes, and the joint before them."""

    joint: str
    """Joint before the pipeline: `&&` or `||`, and `;` for `;` and line ends."""
    is_negated: bool
    commands: "tuple[SimpleCommand | Group, ...]"


@dataclass(frozen=True, slots=True)
class Group:
    """Pipelines in parentheses or braces."""

    pipelines: tuple[Pipeline, ...]
    is_subshell: bool
    opened: SimpleCommand | None = None
    """For a group with redirects, a command without words that has them: the files are opened before anything in it
    runs."""


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
            bad = bad if command.opened is None else bad | here  # if a file could not be opened, nothing ran
            after = (here, here) if command.is_subshell else (good, bad)
        return after if len(commands) == 1 else (here, here)  # each part of a pipeline runs in a subshell

    def _add(self, command: SimpleCommand, here: Places) -> SimpleCommand:
        directories = _known(here)
        if command.directories != directories:
            command = replace(command, directories=directories)
        self.placed.append(self._read(command))
        return self.placed[-1]


def _known(places: Places) -> tuple[str, ...] | None:
    """Return where the shell may be; None if that may be anywhere, or is nowhere since nothing leads here."""
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
    """True if nothing follows: with a redirect that fails, `--help` or two operands, bash goes on."""
    operands = [word.text or "" for word in command.words[1:]]
    return not command.redirects and len(operands) <= 1 and all(text.isdecimal() for text in operands)


def _moved(place: str | None, cd: SimpleCommand) -> str | None:
    """Return where `cd` leads; bash joins and shortens the path as text before it goes there."""
    operands = cd.words[1:]
    if operands and operands[0].text == "--":
        operands = operands[1:]
    elif operands and (operands[0].text or "").startswith("-"):
        return None  # the previous directory, or an option
    target = operands[0].text if len(operands) == 1 else None
    if not target or (place is None and not target.startswith("/")):
        return None
    path = posixpath.normpath(posixpath.join(place or "", target))
    return f"./{path}" if path.startswith("~") else path


_DECIDING = frozenset({"CDPATH", "HOME", "IFS", "OLDPWD", "PWD"})
"""Variables that decide which folder it is, or where a word ends."""
_SETS_NAMED = frozenset({
    "declare", "export", "getopts", "let", "local", "mapfile", "printf", "read", "readarray", "readonly", "set",
    "typeset", "unset", "wait",
})  # fmt: skip
"""Builtins that change no variables but those that they name."""
_CHANGES_OF_FOLDER = frozenset({"cd", "popd", "pushd"})
_NAMES = "HOME|PWD|OLDPWD"
_PLACED = rf"""
    \$(?P<name>{_NAMES})(?![A-Za-z0-9_])
    | \$\{{(?P<braced>{_NAMES})(?P<more>[^}}\w'"`$\\][^}}'"`$\\]*)?\}}
    | (?P<pwd>\$\(pwd(?:[ ]-[LP])?\)|`pwd`)
    | (?P<other>[^'"\\$`~]+|.)
"""
_BARE = compile_late(rf"(?P<literal>'[^']*'|\$'(?:[^'\\]|\\.)*'|\\.)|(?P<quote>\")|{_PLACED}", re.DOTALL | re.VERBOSE)
_IN_QUOTES = compile_late(rf"(?P<literal>\\.)|(?P<quote>\")|{_PLACED}", re.DOTALL | re.VERBOSE)
_TILDE = compile_late(r"~([^/:'\"\\$`*?\[{},]*)(?=[/:,}]|$)")
_BEFORE_TILDE = frozenset("=:{,")
_USER = compile_late(r"[A-Za-z_][\w.-]*\$?", re.ASCII)
_SPLIT = compile_late(r"[\s*?\[\\]")
"""Characters of a folder that make several words or a pattern of it outside quotes."""
_SPECIAL_IN_QUOTES = compile_late(r'(["\\$`])')
_QUOTE = compile_late(r"""["'\\]""")
_NEEDLESS_QUOTES = compile_late(r"""(["'])([\w./+-]+)\1""")
"""Quotes that keep nothing from being expanded, and braces from being read."""
_BEFORE_PATH = compile_late(r"(?:-[A-Za-z]+|.*[=:,@{\s<>])?[\"']?", re.DOTALL)
_BEHIND_FOLDER = compile_late(r"[\"']?(?:[/:,;}\s)]|$)")
_ASSIGNED = compile_late(r"[ \t]*[A-Za-z_]\w*(?:\[[^]]*\])?\+?=", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder that the shell puts in place of a variable or a tilde."""

    path: str
    is_certain: bool = True


class FolderPlacer:
    """Puts folders into the words of one line, whose commands it is given in their order.

    Args:
        commands: Those of the line, as they were read.
        start: The absolute path of the folder in which the line starts; empty if that is not known.
        may_differ: Whether other variables may be set by then, such as HOME.
    """

    def __init__(self, commands: Sequence[SimpleCommand], start: str, *, may_differ: bool = False) -> None:
        self.may_differ = may_differ or any(map(_changes_folders, commands))
        """True if the line, or a line around it, may set one of the variables that decide."""
        self.moves = any(_moves(command) for command in commands)
        """True if the shell may leave the folder in which the line starts."""
        self._start = start
        self._moved: list[SimpleCommand] = []

    def all(self, commands: Iterable[SimpleCommand]) -> tuple[SimpleCommand, ...]:
        """Return commands with the words as they will be; those that were placed before stay as they are."""
        return tuple(map(self.placed, commands))

    def placed(self, command: SimpleCommand) -> SimpleCommand:
        """Return the next command of the line with the words as they will be, as far as that is known."""
        words = tuple(word for written in command.words for word in self._words(written, command))
        redirects = tuple(
            replace(redirect, target=made[0]) if len(made := self._words(redirect.target, command)) == 1 else redirect
            for redirect in command.redirects
        )
        assigned = tuple(word for value in _values(command) for word in self._words(value, command))
        if (words, redirects, assigned) != (command.words, command.redirects, command.assigned):
            command = replace(command, words=words, redirects=redirects, assigned=assigned)
        if _moves(command) and command not in self._moved:
            self._moved.append(command)
        return command

    def _words(self, word: Word, command: SimpleCommand) -> Sequence[Word]:
        if word.text is not None or word.is_glob:
            return (word,)
        if word.at_home:
            return (Word(word.source, word.home_path, is_guess=self.may_differ),)
        made = self._source(word.source, command)
        if made is None:
            return (word,)
        source, is_certain = made
        bare = _NEEDLESS_QUOTES.sub(r"\2", source) if "{" in source else source
        words = with_braces_expanded(word_of(source if _QUOTE.search(bare) else bare))
        if any(one.text is None and not one.is_glob for one in words):
            return (word,)
        return [replace(one, source=word.source, is_guess=not is_certain) for one in words]

    def _source(self, source: str, command: SimpleCommand) -> tuple[str, bool] | None:
        """Return how a word would be written with the folders in it, and whether they are certain."""
        made: list[str] = []
        is_certain, is_quoted, at = True, False, 0
        while at < len(source):
            if not is_quoted and source[at] == "~" and (at == 0 or source[at - 1] in _BEFORE_TILDE):
                tilde = _TILDE.match(source, at)
                folder = self._of_tilde(tilde[1], command) if tilde else _Folder("~")
                if folder is None:
                    return None
                end = tilde.end() if tilde else at + 1
                made.append(shlex.quote(folder.path))
                is_certain = is_certain and folder.is_certain and _stands_alone(folder, source, at, end)
                at = end
                continue
            found = (_IN_QUOTES if is_quoted else _BARE).match(source, at)
            if found is None:
                return None
            if found["quote"]:
                is_quoted = not is_quoted
            name = found["name"] or found["braced"] or ("PWD" if found["pwd"] else "")
            if name:
                folder = self._of_variable(name, command)
                stays_whole = is_quoted or self._stays_whole(folder, command)
                made.append(_SPECIAL_IN_QUOTES.sub(r"\\\1", folder.path) if is_quoted else shlex.quote(folder.path))
                is_certain = is_certain and folder.is_certain and stays_whole and not found["more"]
                is_certain = is_certain and _stands_alone(folder, source, at, found.end())
            else:
                made.append(found[0])
            at = found.end()
        return "".join(made), is_certain

    def _of_tilde(self, text: str, command: SimpleCommand) -> _Folder | None:
        """Return the folder for a tilde followed by this text; None if it is unknown."""
        if text in ("", "+", "-"):
            return self._of_variable({"": "HOME", "+": "PWD", "-": "OLDPWD"}[text], command)
        if not _USER.fullmatch(text):
            return None  # the directory stack
        try:
            return _Folder(pwd.getpwnam(text).pw_dir)
        except KeyError:
            return _Folder(f"~{text}")  # bash leaves it like this

    def _of_variable(self, name: str, command: SimpleCommand) -> _Folder:
        match name:
            case "HOME":
                folder = _Folder(str(user_home()))
            case "PWD" if command.directories is None:
                folder = _Folder(self._absolute("."), is_certain=not self.moves)
            case "PWD":
                here = command.directories or ()
                folder = _Folder(self._absolute(here[0]) if len(here) == 1 else ".")
            case _:
                folder = self._before(command)
        return replace(folder, is_certain=folder.is_certain and not self.may_differ)

    def _before(self, command: SimpleCommand) -> _Folder:
        """Return where the shell was before its last `cd`; a guess where it may have been elsewhere, or nowhere."""
        last = self._moved[-1] if self._moved else None
        left = (last.directories or (".",))[0] if last else "."
        is_sure = last is not None and last.words[0].text == "cd" and last.directories == (left,)
        now = command.directories or ()
        has_left = len(now) == 1 and now != (left,)
        return _Folder(self._absolute(left), is_certain=is_sure and has_left and len(self._moved) == 1)

    def _absolute(self, folder: str) -> str:
        """Return a folder as an absolute path; where the line starts nowhere known, relative to that."""
        return posixpath.normpath(posixpath.join(self._start, folder)) if self._start else "."

    def _stays_whole(self, folder: _Folder, command: SimpleCommand) -> bool:
        """Return whether the shell makes one word of a folder outside of quotes."""
        parts = (folder.path,) if folder.path != "." else (self._start or " ", *(command.directories or ()))
        return not any(_SPLIT.search(part) for part in parts)


def _stands_alone(folder: _Folder, source: str, at: int, end: int) -> bool:
    """Return whether `.` can replace the folder, with nothing around it that would be a part of its name."""
    is_alone = _BEFORE_PATH.fullmatch(source, 0, at) and _BEHIND_FOLDER.match(source, end)
    return folder.path != "." or is_alone is not None


def _moves(command: SimpleCommand) -> bool:
    return bool(command.words) and command.words[0].text in _CHANGES_OF_FOLDER


def _changes_folders(command: SimpleCommand) -> bool:
    """Return whether a command may set a variable that decides which folder a word means."""
    if not _DECIDING.isdisjoint(command.assignments):
        return True
    if not command.words or not may_change_shell(command) or _moves(command):
        return False
    if command.words[0].text not in _SETS_NAMED:
        return True
    names = [word.source.partition("=")[0] for word in command.words[1:]]
    return any("$" in name or "`" in name or any(one in name for one in _DECIDING) for name in names)


def _values(command: SimpleCommand) -> Iterator[Word]:
    """Yield the values of the variables that a command sets; of what cannot be read, each piece."""
    if not command.assignments:
        return
    source, at = command.source, 0
    while found := _ASSIGNED.match(source, at):
        at = found.end()
        if at == len(source) or source[at].isspace():
            continue
        try:
            word = word_at(source, at)
        except NotPlainError:
            break
        yield word
        at += len(word.source)
    else:
        if at:
            return
    rest = source[at:]
    pieces = rest.removeprefix("(").removesuffix(")") if rest.startswith("(") else rest
    yield from map(word_of, pieces.split())
