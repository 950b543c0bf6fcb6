"""The files that a pattern such as `src/*.py` in a command line would name, and what lies in folders that it searches.

The rule: more may be found than the shell would take, never less. What lies in the folder when the command runs may be
another thing; the sandbox is there for that.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import translate
from itertools import product, repeat
from pathlib import Path

from panpan.errors import ToolError
from panpan.permissions.reach.folder_walk import entries_of, not_as_it_is, walk_folders
from panpan.shell_analysis.facts import SIGNED_NAME
from panpan.types.dataclass import dataclass

MOST_NAMES = 200_000
"""Names that are looked at in folders, which takes a second or so."""
_NAMES_FOR_A_FOLDER = 20
"""That may be looked at in the time that it takes to open one."""
_MOST_LIVE_PARTS = 50
"""Of a pattern: people write two or three."""
_LEAVES_OUT_DOTS = re.compile(r"^\\?\.\[[!^]\.")
"""A pattern as people write it in order not to match `..`."""
_PART = re.compile(r"(\[(?:[A-Za-z0-9_.]|[A-Za-z0-9]-[A-Za-z0-9])+\])|\\(.)|([*?\[])|(.)", re.DOTALL)


class TooManyNamesError(ToolError):
    """A pattern cannot be looked up in bounded time; says which."""


def look_for_odd_names(folders: Iterable[Path], odd: re.Pattern[str]) -> str | None:
    """Return which name in the folders xargs, or the program that it runs, would take for something else, or None.

    Args:
        folders: Where to look.
        odd: Found in such names, with all that leads to them from their folder.
    """
    count = 0
    for folder in folders:
        skipped = len(str(folder))
        for _, subs, others in walk_folders([folder]):
            count += len(subs) + len(others)
            if count > MOST_NAMES:
                return "the folder is too large to tell how xargs would take the names in it; name a narrower one"
            for entry in (*subs, *others):
                if odd.search(entry.path[skipped:].lstrip("/")):
                    return not_as_it_is(entry.path)
    return None


def look_for_signed_names(patterns: Iterable[str], folders: Iterable[Path]) -> str | None:
    """Return which name that a pattern matches in the folders may be a flag, or None.

    Raises:
        TooManyNamesError: They lead through too many folders, or too large ones.
    """
    for pattern, folder in product(patterns, folders):
        for path in matches(pattern, folder):
            if SIGNED_NAME.search(str(path.relative_to(folder))):
                return f"{pattern} matches {path}, which the program may take for a flag; put ./ before it"
    return None


def links_below(
    folders: Iterable[Path],
    only_names: Sequence[str] = (),
    *,
    leaves_out_hidden: bool = False,
    only_tracked: bool = False,
) -> Iterator[Path | None]:
    """Yield the links in the folders and below, and None for each name that is none.

    Args:
        folders: Where to look.
        only_names: Patterns, of which the names of the links that are meant fit one; empty for all.
        leaves_out_hidden: Whether what begins with a dot is not searched.
        only_tracked: Whether what git does not track is not, either.
    """
    is_meant = names_filter(only_names)
    for _, subs, others in walk_folders(folders, leaves_out_hidden=leaves_out_hidden, only_tracked=only_tracked):
        yield from repeat(None, len(subs))
        for entry in others:
            yield Path(entry.path) if entry.is_symlink() and is_meant(entry.name) else None


def names_filter(only_names: Sequence[str]) -> Callable[[str], object]:
    """Return what is true of a name that fits one of the patterns; of every name, if there are none."""
    return re.compile("|".join(map(translate, only_names)) if only_names else "").match


@dataclass(frozen=True, slots=True)
class Matched:
    """Some of what a pattern matches, in one folder."""

    folder: str
    files: Sequence[str] = ()
    """The names of regular files."""
    others: Sequence[str] = ()
    """All else, links among it, each with all that leads there."""

    @property
    def paths(self) -> Iterator[str]:
        """All of them, each with all that leads there."""
        yield from self.others
        yield from (os.path.join(self.folder, name) for name in self.files)  # noqa: PTH118 - as in `_matches`


def matches(pattern: str, cwd: Path, *, is_wide: bool = False) -> Iterator[Path]:
    """Yield the paths that a pattern of the shell may match; the rest is as in `matched`."""
    return (Path(path) for found in matched(pattern, cwd, is_wide=is_wide) for path in found.paths)


def matched(pattern: str, cwd: Path, *, is_wide: bool = False) -> Iterator[Matched]:
    """Yield what a pattern of the shell may match, folder by folder.

    Args:
        pattern: With a backslash before each character that means itself; relative to `cwd` or absolute.
        cwd: Where the command runs.
        is_wide: Whether the shell may have been told to pass over case, and to match hidden names, too.

    Raises:
        TooManyNamesError: It leads through too many folders, or too large ones; what came before is true.
    """
    parts = [_Part(part, is_wide=is_wide) for part in pattern.split("/") if part]
    left = MOST_NAMES

    def entries(folder: str) -> Sequence[os.DirEntry[str]]:
        nonlocal left
        found = entries_of(folder)
        left -= len(found) + _NAMES_FOR_A_FOLDER
        if left < 0:
            raise TooManyNamesError(f"{pattern} leads to too many files to look at each of them")
        return found

    if sum(part.is_live for part in parts) > _MOST_LIVE_PARTS:
        raise TooManyNamesError(f"{pattern} has too many parts to look up what it matches")
    yield from _matches("/" if pattern.startswith("/") else str(cwd), parts, entries)


class _Part:
    """One component of a pattern, ready to be compared."""

    def __init__(self, text: str, *, is_wide: bool) -> None:
        self.regex, self.is_live = _regex(text, is_wide)
        self.name = re.sub(r"\\(.)", r"\1", text)
        """What it is where nothing in it is live."""
        self._takes_hidden = is_wide or text.startswith((".", "\\."))
        is_dotted = self.is_live and text.startswith((".", "\\.")) and _LEAVES_OUT_DOTS.search(text) is None
        self.dots = tuple(name for name in (".", "..") if is_dotted and self.regex.fullmatch(name))
        """Which of these it matches for bash before 5.2."""

    def fits(self, name: str) -> bool:
        """Return whether a live one may match a name."""
        return self.regex.fullmatch(name) is not None and (self._takes_hidden or not name.startswith("."))


def _matches(
    folder: str, parts: Sequence[_Part], entries: Callable[[str], Sequence[os.DirEntry[str]]]
) -> Iterator[Matched]:
    at = next((at for at, part in enumerate(parts) if part.is_live), len(parts))
    path = os.path.join(folder, *(part.name for part in parts[:at]))  # noqa: PTH118 - strings, of which there are many
    if at == len(parts):
        if os.path.lexists(path):
            yield Matched(folder, others=(path,))
        return
    part, *rest = parts[at:]
    around = [os.path.join(path, name) for name in part.dots]  # noqa: PTH118 - as above, and Path would shorten it
    fitting = [entry for entry in entries(path) if part.fits(entry.name)]
    if rest:
        for place in (*around, *(entry.path for entry in fitting if _may_hold_more(entry))):
            yield from _matches(place, rest, entries)
        return
    files: list[str] = []
    others: list[str] = [place for place in around if place.endswith("/..")]
    for entry in fitting:
        if _is_regular_file(entry):
            files.append(entry.name)
        else:
            others.append(entry.path)
    yield Matched(path, files, others)


def _may_hold_more(entry: os.DirEntry[str]) -> bool:
    """Return whether it is a folder, or a link that leads to one."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_regular_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file(follow_symlinks=False)
    except OSError:
        return False


def _regex(part: str, is_wide: bool) -> tuple[re.Pattern[str], bool]:
    """Return what names fit, and whether there is anything live in it."""
    regex = ""
    is_live = False
    flags = re.DOTALL | (re.IGNORECASE if is_wide else re.NOFLAG)
    for found in _PART.finditer(part):
        bracket, escaped, special, plain = found.groups()
        is_live = is_live or bool(bracket or special)
        if special == "[":  # a bracket that is read in one way or another; anything may follow
            return re.compile(f"{regex}.*", flags), True
        if bracket:
            # Of a range, what is no ASCII may be in it or not, by the language of the user.
            regex += f"(?:[{bracket[1:-1]}]|[^\\x00-\\x7f])"
        else:
            regex += {"*": ".*", "?": "."}[special] if special else re.escape(escaped or plain)
    return re.compile(regex, flags), is_live
