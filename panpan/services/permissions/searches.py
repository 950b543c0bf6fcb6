"""Searches through folders that hold a file which may not be read.

A rule such as `Read(.env)` names the file, and a search names the folder it lies in; without this the search would show
what the rule withholds. The look around is bounded, and what it could not see counts as withheld.
"""

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import anyio.to_thread

from panpan.services.permissions.path_pattern import PathPattern
from panpan.services.permissions.rules import Rule
from panpan.services.permissions.subject import Subject

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
    readers = [
        rule for rule in rules if isinstance(rule.specifier, PathPattern) and rule.tool in ("Read", subject.tool)
    ]
    if not readers:
        return None
    return await anyio.to_thread.run_sync(partial(_look, readers, subject, glob), abandon_on_cancel=True)


def _look(rules: Sequence[Rule], subject: Subject, glob: str | None) -> str | None:
    folders = [use.path for use in subject.uses if use.path.is_dir()]
    for count, path in enumerate((file for folder in folders for file in _files(folder)), 1):
        if count > _MOST_FILES:
            return f"the folder is too large to tell whether {rules[0]} names a file in it; {_ADVICE}"
        for rule in rules:
            if _names(rule, path, subject.root) and _is_searched(path, glob):
                return f"{rule} names {path}, which the search would read; {_ADVICE}"
    return None


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files below `folder`, links to files among them; folders that are links are not entered."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        for name in names:
            yield Path(parent, name)


def _names(rule: Rule, path: Path, root: Path) -> bool:
    return isinstance(rule.specifier, PathPattern) and rule.specifier.restricts([path], root)


def _is_searched(path: Path, glob: str | None) -> bool:
    if not isinstance(glob, str) or not glob or _NOT_ONE_NAME & set(glob):
        return True
    try:
        # Wider than the search's own reading of the glob: the name alone, at any depth.
        return PathPattern(glob.rsplit("/", 1)[-1] or "*").restricts([Path("/", path.name)], Path("/"))
    except ValueError:
        return True
