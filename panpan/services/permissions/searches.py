"""Searches through folders that hold a file which may not be read: one that a rule names, or one for secrets.

A rule such as `Read(.env)` names the file, and a search names the folder it lies in; without this the search would show
what the rule withholds. The look around is bounded, and what it could not see counts as withheld.
"""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

import anyio.to_thread

from panpan.services.permissions.live_patterns import look_for_links, look_through_patterns, matches
from panpan.services.permissions.path_pattern import PathPattern
from panpan.services.permissions.rules import Rule
from panpan.services.permissions.subject import Subject
from panpan.system.canonical import canonical_path
from panpan.system.paths import PathResolver
from panpan.system.protected import may_name_secrets

_MOST_FILES = 20_000
_MOST_NAMES = 200_000
"""Files among which one for secrets is looked for by its name, which takes a second or so."""
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
    if subject.facts is None or not subject.is_read_only:
        return None
    effects = subject.facts.effects
    folders = _searched_folders(subject, is_git_searched=False)
    linked = folders if any(effect.follows_links for effect in effects) else []
    patterns = _patterns(subject)
    if not folders and not patterns:
        return None

    def look() -> str | None:
        return (
            look_through_patterns(patterns, subject.cwd, paths)
            or look_for_links(linked, paths)
            or _look_for_secrets(folders, paths)
        )

    return await anyio.to_thread.run_sync(look, abandon_on_cancel=True)


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


def _searched_folders(subject: Subject, *, is_git_searched: bool = True) -> list[Path]:
    """Return the folders whose files the call would show; listing their names shows no file."""
    if subject.tool == "Grep":
        return [use.path for use in subject.uses if use.path.is_dir()]
    if subject.facts is None or not subject.is_read_only:
        return []
    found = (
        canonical_path(subject.cwd / path)
        for effect in subject.facts.effects
        if is_git_searched or effect.asks_git_in is None
        for path in effect.placed_searches
    )
    return [path for path in dict.fromkeys(found) if path.is_dir()]


def _patterns(subject: Subject) -> list[str]:
    """Return the patterns that the shell would replace by the names of files."""
    if subject.facts is None or not subject.is_read_only:
        return []
    return [pattern for effect in subject.facts.effects for pattern in effect.placed_globs]


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
