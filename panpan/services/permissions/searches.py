"""Searches through folders that hold a file which may not be read: one that a rule names, or one for secrets.

A rule such as `Read(.env)` names the file, and a search names the folder it lies in; without this the search would show
what the rule withholds. The look around is bounded, and what it could not see counts as withheld.
"""

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain
from pathlib import Path

import anyio.to_thread

from panpan.services.permissions.live_patterns import (
    MOST_NAMES,
    look_for_links,
    look_for_odd_names,
    look_through_patterns,
    matches,
)
from panpan.services.permissions.path_pattern import PathPattern
from panpan.services.permissions.rules import Rule
from panpan.services.permissions.subject import Subject
from panpan.system.canonical import canonical_path
from panpan.system.paths import PathResolver
from panpan.system.protected import may_name_secrets
from panpan.tools.shell.analysis.facts import Effect

_MOST_FILES = 20_000
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
    patterns = _patterns(subject)
    if not folders and not patterns:
        return None
    readers = [
        rule for rule in rules if isinstance(rule.specifier, PathPattern) and rule.tool in ("Read", subject.tool)
    ]
    if not readers:
        return None
    return await anyio.to_thread.run_sync(
        partial(_look, readers, folders, patterns, subject, glob), abandon_on_cancel=True
    )


async def secret_file(subject: Subject, paths: PathResolver) -> str | None:
    """Return why the shell would show a file for secrets, or what lies elsewhere, or None.

    It does so in a search, or for a pattern such as `*`. Grep leaves such files out itself, and what git tracks is no
    secret.
    """
    if not subject.only_looks:
        return None
    searching = [effect for effect in subject.effects if effect.asks_git_in is None and effect.placed_searches]
    patterns = _patterns(subject)
    if not searching and not patterns:
        return None

    def look() -> str | None:
        reasons = (_look_through(effect, subject.cwd, paths) for effect in searching)
        return look_through_patterns(patterns, subject.cwd, paths) or next(filter(None, reasons), None)

    return await anyio.to_thread.run_sync(look, abandon_on_cancel=True)


def _look_through(search: Effect, cwd: Path, paths: PathResolver) -> str | None:
    """Return why what is in the folders of a search may not be shown, or not as it would be, or None."""
    folders = _folders_of(search, cwd)
    return (
        (look_for_odd_names(folders) if search.splits_names else None)
        or (look_for_links(folders, paths, search.only_names) if search.follows_links else None)
        or _look_for_secrets(folders, paths, search.only_names)
    )


def _look_for_secrets(folders: Sequence[Path], paths: PathResolver, only_names: str) -> str | None:
    count = 0
    for parent, _, names in (found for folder in folders for found in os.walk(folder)):
        count += len(names)
        if count > MOST_NAMES:
            return "the folder is too large to tell whether it holds files for secrets; use Grep, which leaves them out"
        named = [name for name in names if fnmatchcase(name, only_names)] if only_names else names
        suspects = [*([parent] if named else ()), *(f"{parent}/{name}" for name in named if may_name_secrets(name))]
        for suspect in map(Path, suspects):
            if not paths.may_show(suspect):
                return f"{suspect} may hold secrets, and the search would read it; use Grep, which leaves it out"
    return None


def _searched_folders(subject: Subject) -> list[Path]:
    """Return the folders whose files the call would show; listing their names shows no file."""
    if subject.tool == "Grep":
        return [use.path for use in subject.uses if use.path.is_dir()]
    if not subject.only_looks:
        return []
    return list(dict.fromkeys(path for effect in subject.effects for path in _folders_of(effect, subject.cwd)))


def _folders_of(search: Effect, cwd: Path) -> list[Path]:
    found = dict.fromkeys(canonical_path(cwd / path) for path in search.placed_searches)
    return [path for path in found if path.is_dir()]


def _patterns(subject: Subject) -> list[str]:
    """Return the patterns that the shell would replace by the names of files."""
    if not subject.only_looks:
        return []
    return [pattern for effect in subject.effects for pattern in effect.placed_globs]


def _look(
    rules: Sequence[Rule], folders: Sequence[Path], patterns: Sequence[str], subject: Subject, glob: str | None
) -> str | None:
    root = subject.root
    matched = (canonical_path(path) for pattern in patterns for path in matches(pattern, subject.cwd))
    searched = (file for folder in folders for file in _files(folder))
    for count, path in enumerate(chain(matched, searched), 1):
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
