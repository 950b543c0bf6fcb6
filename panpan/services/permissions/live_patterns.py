"""The files that a pattern such as `src/*.py` in a command line would name, and whether each may be shown.

The rule: more may be found than the shell would take, never less. What lies in the folder when the command runs may be
another thing; the sandbox is there for that.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from panpan.errors import ToolError
from panpan.system.paths import PathResolver
from panpan.tools.shell.analysis.facts import ODD_NAME

MOST_NAMES = 200_000
"""Names that are looked at in folders, which takes a second or so."""
_MOST_FILES = 20_000
"""Of which it is asked what they are."""
_PART = re.compile(r"\\(.)|([*?\[])|(.)", re.DOTALL)


def look_through_patterns(patterns: Sequence[str], cwd: Path, paths: PathResolver) -> str | None:
    """Return why what the patterns match may not be shown, or None where all of it may."""
    for pattern in patterns:
        for count, path in enumerate(matches(pattern, cwd), 1):
            if count > _MOST_FILES:
                return f"too many files match {pattern} to tell whether all of them may be shown; name a narrower one"
            if reason := _closed(path, paths):
                return f"{path}, which {pattern} matches, {reason}"
    return None


def look_for_odd_names(folders: Iterable[Path]) -> str | None:
    """Return which name in the folders xargs, or the program that it runs, would take for something else, or None."""
    for count, (parent, name) in enumerate(_names_in(folders), 1):
        if count > MOST_NAMES:
            return "the folder is too large to tell how xargs would take the names in it; name a narrower one"
        if ODD_NAME.search(name):
            return f"xargs would not take the name {parent}/{name} as it is; use find with -exec … {{}} +"
    return None


def look_for_links(folders: Iterable[Path], paths: PathResolver, only_names: str = "") -> str | None:
    """Return why what links in the folders lead to may not be shown, or None where all of it may.

    Args:
        folders: Where to look, below them too.
        paths: Knows what may be shown.
        only_names: A pattern for the names of the links that would be followed; empty for all.
    """
    looked_at = 0
    for count, (parent, name) in enumerate(_names_in(folders), 1):
        is_meant = not only_names or fnmatchcase(name, only_names)
        looked_at += is_meant
        if count > MOST_NAMES or looked_at > _MOST_FILES:
            return "the folder is too large to tell whether links in it lead elsewhere; name single files"
        if is_meant and (path := Path(parent, name)).is_symlink() and (reason := _closed(path, paths)):
            return f"{path}, a link that would be followed, {reason}"
    return None


def _names_in(folders: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Yield the folder and the name of all that lies below the folders."""
    for folder in folders:
        for parent, subs, names in os.walk(folder):
            yield from ((parent, name) for name in (*subs, *names))


def matches(pattern: str, cwd: Path) -> Iterator[Path]:
    """Yield the files that a pattern of the shell may match.

    Args:
        pattern: With a backslash before each character that means itself; relative to `cwd` or absolute.
        cwd: Where the command runs.
    """
    parts = [part for part in pattern.split("/") if part]
    yield from _matches(Path("/") if pattern.startswith("/") else cwd, parts)


def _matches(folder: Path, parts: Sequence[str]) -> Iterator[Path]:
    if not parts:
        if os.path.lexists(folder):
            yield folder
        return
    regex, is_live = _regex(parts[0])
    if not is_live:
        yield from _matches(folder / re.sub(r"\\(.)", r"\1", parts[0]), parts[1:])
        return
    try:
        names = [path.name for path in folder.iterdir()]
    except OSError:
        return
    for name in names:
        if regex.fullmatch(name) and (parts[0].startswith((".", "\\.")) or not name.startswith(".")):
            yield from _matches(folder / name, parts[1:])


def _regex(part: str) -> tuple[re.Pattern[str], bool]:
    """Return what names fit, and whether there is anything live in it; a bracket fits whatever follows."""
    regex = ""
    is_live = False
    for found in _PART.finditer(part):
        escaped, special, plain = found.groups()
        is_live = is_live or special is not None
        if special == "[":
            return re.compile(f"{regex}.*", re.DOTALL | re.IGNORECASE), True
        regex += {"*": ".*", "?": "."}[special] if special else re.escape(escaped or plain)
    return re.compile(regex, re.DOTALL | re.IGNORECASE), is_live


def _closed(path: Path, paths: PathResolver) -> str | None:
    try:
        location = paths.locate(str(path))
    except ToolError as exc:
        return f"cannot be used: {exc}"
    if location.is_secret:
        return f"is protected, since it {location.protection or 'may hold secrets'}"
    return None if location.is_readable else "lies outside the workspace"
