"""Searches through folders that hold a file which may not be read: one that a rule names, or one for secrets.

A rule such as `Read(.env)` names the file, and a search names the folder it lies in; without this the search would show
what the rule withholds. The look around is bounded, and what it could not see counts as withheld.
"""

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import anyio.to_thread

from panpan.services.permissions.path_pattern import PathPattern
from panpan.services.permissions.rules import Rule
from panpan.services.permissions.subject import Subject
from panpan.system.paths import PathResolver
from panpan.system.protected import may_name_secrets
from panpan.tools.shell.read_only import read_only_paths
from panpan.tools.shell.simple_words import split_commands

_MOST_FILES = 20_000
_MOST_NAMES = 200_000
"""Files among which one for secrets is looked for by its name, which takes a second or so."""
_RECURSIVE = re.compile(r"\S+ (?:.* )?-(?:\w*[rR]|-\w*recursive)")
_SEARCH_PROGRAMS = frozenset({"grep", "egrep", "fgrep", "rg", "diff"})
_NOT_ONE_NAME = frozenset("!{},; \t\n")
"""Characters with which a glob may mean more than one pattern says; then every file counts as searched."""
_ADVICE = "search a narrower path, or with a glob that leaves it out"


async def withheld_file(rules: Sequence[Rule], subject: Subject, glob: str | None) -> str | None:
    """Return why the search may show what a rule withholds, or None where it does not.

    Args:
        rules: Rules that deny or ask.
        subject: The search.
        glob: Names that the search is limited to.
    """
    folders = _searched_folders(subject)
    if not folders:
        return None
    readers = [
        rule for rule in rules if isinstance(rule.specifier, PathPattern) and rule.tool in ("Read", subject.tool)
    ]
    if not readers:
        return None
    return await anyio.to_thread.run_sync(partial(_look, readers, folders, subject.root, glob), abandon_on_cancel=True)


async def secret_file(subject: Subject, paths: PathResolver) -> str | None:
    """Return why a search in the shell would show a file for secrets, or None; Grep leaves such files out itself."""
    folders = _searched_folders(subject) if subject.command is not None else []
    if not folders:
        return None
    return await anyio.to_thread.run_sync(partial(_look_for_secrets, folders, paths), abandon_on_cancel=True)


def _look_for_secrets(folders: Sequence[Path], paths: PathResolver) -> str | None:
    count = 0
    for parent, _, names in (found for folder in folders for found in os.walk(folder)):
        count += len(names)
        if count > _MOST_NAMES:
            return "the folder is too large to tell whether it holds files for secrets; use Grep, which leaves them out"
        suspects = [parent, *(f"{parent}/{name}" for name in names if may_name_secrets(name))]
        for suspect in map(Path, suspects):
            if not paths.may_show(suspect):
                return f"{suspect} may hold secrets, and the search would read it; use Grep, which leaves it out"
    return None


def _searched_folders(subject: Subject) -> list[Path]:
    """Return the folders whose files the call would show; listing their names shows no file."""
    folders = [use.path for use in subject.uses if use.path.is_dir()]
    if subject.tool == "Grep":
        return folders
    if subject.command is None or not subject.is_read_only:
        return []
    commands = [words for words in split_commands(subject.command) or () if words[0] in _SEARCH_PROGRAMS]
    if any(searches_where_it_runs(words) for words in commands):
        folders.append(subject.cwd)
    return folders if commands else []


def searches_where_it_runs(words: tuple[str, ...]) -> bool:
    """Return whether the command looks through the working directory because it names no path.

    A flag behind the pattern is among the paths, since some systems read it as one: it may be no path at all.
    """
    is_recursive = words[0] == "rg" or _RECURSIVE.match(" ".join(words)) is not None
    paths = read_only_paths(shlex.join(words)) or ()
    return is_recursive and (not paths or any(path.startswith("-") for path in paths))


def _look(rules: Sequence[Rule], folders: Sequence[Path], root: Path, glob: str | None) -> str | None:
    for count, path in enumerate((file for folder in folders for file in _files(folder)), 1):
        if count > _MOST_FILES:
            return f"the folder is too large to tell whether {rules[0]} names a file in it; {_ADVICE}"
        for rule in rules:
            if _names(rule, path, root) and _is_searched(path, glob):
                return f"{rule} names {path}, which the search would read; {_ADVICE}"
    return None


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files below `folder`, links to files among them; folders that are links are not entered."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        for name in names:
            yield Path(parent, name)


def _names(rule: Rule, path: Path, root: Path) -> bool:
    return isinstance(rule.specifier, PathPattern) and rule.specifier.restricts_file(path, root)


def _is_searched(path: Path, glob: str | None) -> bool:
    if not isinstance(glob, str) or not glob or _NOT_ONE_NAME & set(glob):
        return True
    try:
        # Wider than the search's own reading of the glob: the name alone, at any depth.
        return PathPattern(glob.rsplit("/", 1)[-1] or "*").restricts_file(Path("/", path.name), Path("/"))
    except ValueError:
        return True
