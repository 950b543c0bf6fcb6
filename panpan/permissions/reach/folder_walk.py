"""All that lies below a folder, as a search comes by it: what folders hold, and what git ignores or tracks of them.

The rule: links are never followed, and what cannot be read holds nothing. Where hidden names are left out, more may be
there than a search would come by, never less: one that an ignore file may take in again with a `!` is there.

The rule: where that cannot be told, every file counts.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase, translate
from itertools import product, repeat
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from panpan.errors import ToolError
from panpan.permissions.reach.located import repository_around
from panpan.shell_analysis.facts import SIGNED_NAME
from panpan.system.files.canonical import canonical_path, user_home
from panpan.system.git.git_places import GitIndex
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late


class TrackedFiles:
    """The files of one repository that git tracks, and the folders that lead to them.

    Args:
        folder: A canonical folder in it.
    """

    def __init__(self, folder: Path) -> None:
        # An index elsewhere, such as a submodule's, is not searched for; the index of the repository around does not
        # apply.
        index = GitIndex.around(folder)
        index = index if index is not None and index.top == repository_around(folder) else None
        self.names = index.names() if index is not None else None
        """Names as the index has them; None if it cannot be read."""
        self._top = f"{index.top}/" if index is not None else ""
        self._places = frozenset(_with_folders(self.names or ()))

    def relative_to(self, folder: Path) -> Iterator[str]:
        """Yield the names of what is tracked below a canonical folder, relative to it."""
        before = f"{folder}/".removeprefix(self._top)
        return (name.removeprefix(before) for name in self.names or () if name.startswith(before))

    def may_lead_to(self, path: str) -> bool:
        """Return whether git may track what lies at the absolute `path`, or something below it."""
        if self.names is None or not path.isascii() or not path.startswith(self._top):
            return True  # git may write a name with an accent in several ways
        return path.removeprefix(self._top).casefold() in self._places


@dataclass(frozen=True, slots=True)
class Doubt:
    """Something that makes it unsure what a search reads."""

    text: str
    advice: str = ""
    """Alternative for the model."""


def why_unclear(folders: Iterable[Path], odd_names: re.Pattern[str] | None = None) -> Doubt | None:
    """Return why it is not sure that git, asked for what it tracks in these folders, names only what lies there.

    Args:
        folders: Canonical folders, from which git starts.
        odd_names: Found in names that would not arrive as they are; a file need not be there for git to name it.
    """
    for folder in folders:
        tracked = TrackedFiles(folder)
        names = tracked.names
        if names is None:
            return Doubt(f"panpan cannot tell which files git tracks in {folder}", _BY_FIND)
        if odd := next((name for name in names if name.startswith("/") or ".." in name.split("/")), None):
            return Doubt(f"git would name {odd}, which is elsewhere")
        here = tracked.relative_to(folder) if odd_names is not None else ()
        if odd_names is not None and (odd := next(filter(odd_names.search, here), None)):
            return _not_as_it_is(str(folder / odd))
    return None


_BY_FIND = "use find with -exec … {} +"


def _not_as_it_is(path: str) -> Doubt:
    """Return the reason for which a path may not be handed on by xargs."""
    return Doubt(f"xargs would not take the name {path} as it is", _BY_FIND)


def _with_folders(names: Iterable[str]) -> Iterator[str]:
    """Yield names and all that leads to them, without regard to case."""
    folders: set[str] = set()
    for name in names:
        yield name.casefold()
        folder = os.path.dirname(name)  # noqa: PTH120 - strings, of which there are many
        if folder and folder not in folders:
            parts = PurePosixPath(folder)
            folders |= {str(parts), *(str(parent) for parent in parts.parents)}
    yield from (folder.casefold() for folder in folders)


_IGNORE_FILES = (".gitignore", ".ignore", ".rgignore")
_EXCLUDE = ".git/info/exclude"
_MOST_BYTES = 100_000
"""Most bytes that are read of an ignore file; a larger one may take in anything."""
_ODD = frozenset("[]{}\\")
_EXCLUDES_FILE = compile_late(r"^\s*excludesfile\s*=\s*\"?\s*(\S+?)\s*\"?\s*$", re.IGNORECASE | re.MULTILINE)


Entries: TypeAlias = Sequence[os.DirEntry[str]]


def walk_folders(
    tops: Iterable[Path],
    *,
    leaves_out_hidden: bool = False,
    enters_git: bool = True,
    only_tracked: bool = False,
) -> Iterator[tuple[str, Entries, Entries]]:
    """Yield some folders and each one below them, with the folders in it and with all else, links among that.

    Args:
        tops: Where to begin.
        leaves_out_hidden: Whether what begins with a dot is left out, as ripgrep does where no flag says otherwise.
        enters_git: Whether `.git` counts as a folder to look into.
        only_tracked: Whether what git does not track is left out, and what leads to nothing else.
    """
    for top in tops:
        place = canonical_path(top) if only_tracked else top
        tracked = TrackedFiles(place) if only_tracked else None
        yield from _walk(place, leaves_out_hidden, () if enters_git else (".git",), tracked)


def _walk(
    top: Path, leaves_out_hidden: bool, closed: Sequence[str], tracked: TrackedFiles | None
) -> Iterator[tuple[str, Entries, Entries]]:
    taken_in = tuple(_taken_in_above(top)) if leaves_out_hidden else ()
    waiting: list[tuple[str, Sequence[str]]] = [(str(top), taken_in)]
    while waiting:
        folder, patterns = waiting.pop()
        entries = entries_of(folder)
        if tracked is not None:
            entries = [entry for entry in entries if tracked.may_lead_to(entry.path)]
        if leaves_out_hidden:
            names = {entry.name for entry in entries if entry.name.startswith(".")}
            if names:
                patterns = (*patterns, *_taken_in_by(_ignore_files(Path(folder), names)))
                entries = [entry for entry in entries if entry.name not in names or _is_taken_in(entry.name, patterns)]
        folders = list(filter(_is_folder, entries))
        others = [entry for entry in entries if not _is_folder(entry)] if folders else entries
        yield folder, folders, others
        waiting += [(entry.path, patterns) for entry in folders if entry.name not in closed]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def entries_of(folder: str) -> list[os.DirEntry[str]]:
    """Return what is in a folder; nothing if that cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _is_taken_in(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name.casefold(), pattern) for pattern in patterns)


def _taken_in_above(top: Path) -> Iterator[str]:
    """Yield what ignore files above a folder, and the user's own, take in again."""
    for folder in top.parents:
        yield from _taken_in_by(_ignore_files(folder, (*_IGNORE_FILES, ".git")))
    home = user_home()
    own = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git"
    settings = [text for file in (home / ".gitconfig", own / "config") if (text := _text(file))]
    named = [home / name.removeprefix("~/") for text in settings for name in _EXCLUDES_FILE.findall(text)]
    yield from _taken_in_by((own / "ignore", *named))


def _ignore_files(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    """Yield the ignore files of a folder in which there may be these names."""
    for name in names:
        if name in _IGNORE_FILES:
            yield folder / name
        elif name == ".git":
            yield folder / _EXCLUDE
            yield from _excludes_elsewhere(folder / name)


def _excludes_elsewhere(link: Path) -> Iterator[Path]:
    """Yield the ignore files of a repository that lies elsewhere, as that of a working tree beside the first one."""
    text = _text(link)
    if text and text.startswith("gitdir:"):
        place = link.parent / text.removeprefix("gitdir:").strip()
        yield place / "info/exclude"
        yield place / (_text(place / "commondir") or "").strip() / "info/exclude"


def _taken_in_by(files: Iterable[Path]) -> Iterator[str]:
    """Yield a pattern for each name that ignore files take in again, wherever it lies."""
    for file in files:
        text = _text(file)
        if text is None:
            continue
        if len(text) >= _MOST_BYTES:
            yield "*"
        for line in text.splitlines() if "!" in text else ():
            if (rule := line.lstrip("\ufeff \t")).startswith("!"):
                name = rule[1:].rstrip().rstrip("/").rpartition("/")[2]
                yield "*" if _ODD.intersection(name) else name.casefold()


def _text(file: Path) -> str | None:
    """Return what a file begins with; None if there is none."""
    try:
        if not file.is_file():
            return None
        with file.open(encoding="utf-8", errors="replace") as stream:
            return stream.read(_MOST_BYTES)
    except OSError:
        return None


MOST_NAMES = 200_000
"""Names that are looked at in folders, which takes a second or so."""
_NAMES_FOR_A_FOLDER = 20
"""Names that can be looked at in the time that it takes to open a folder."""
_MOST_LIVE_PARTS = 50
"""Most live parts of a pattern that is looked up; people write two or three."""
_LEAVES_OUT_DOTS = compile_late(r"^\\?\.\[[!^]\.")
"""A pattern as people write it in order not to match `..`."""
_PART = compile_late(r"(\[(?:[A-Za-z0-9_.]|[A-Za-z0-9]-[A-Za-z0-9])+\])|\\(.)|([*?\[])|(.)", re.DOTALL)


class TooManyNamesError(ToolError):
    """A pattern cannot be looked up in bounded time; says which."""


def look_for_odd_names(folders: Iterable[Path], odd: re.Pattern[str]) -> Doubt | None:
    """Return a name in the folders that xargs, or the program that it runs, would take for something else, or None.

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
                return Doubt(
                    "the folder is too large to tell how xargs would take the names in it", "name a narrower one"
                )
            for entry in (*subs, *others):
                if odd.search(entry.path[skipped:].lstrip("/")):
                    return _not_as_it_is(entry.path)
    return None


def look_for_signed_names(patterns: Iterable[str], folders: Iterable[Path]) -> Doubt | None:
    """Return a name that a pattern matches in the folders and that may be a flag, or None.

    Raises:
        TooManyNamesError: They lead through too many folders, or too large ones.
    """
    for pattern, folder in product(patterns, folders):
        for path in matches(pattern, folder):
            if SIGNED_NAME.search(str(path.relative_to(folder))):
                return Doubt(f"{pattern} matches {path}, which the program may take for a flag", "put ./ before it")
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
    """Yield the paths that a pattern of the shell may match; the rest is as in `match_pattern`."""
    return (Path(path) for found in match_pattern(pattern, cwd, is_wide=is_wide) for path in found.paths)


def match_pattern(pattern: str, cwd: Path, *, is_wide: bool = False) -> Iterator[Matched]:
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
        """Name that it matches if nothing in it is live."""
        self._takes_hidden = is_wide or text.startswith((".", "\\."))
        is_dotted = self.is_live and text.startswith((".", "\\.")) and _LEAVES_OUT_DOTS.search(text) is None
        self.dots = tuple(name for name in (".", "..") if is_dotted and self.regex.fullmatch(name))
        """The names `.` and `..`, as far as it matches them in bash before 5.2."""

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
        if special == "[":  # an ambiguous bracket: anything may follow
            return re.compile(f"{regex}.*", flags), True
        if bracket:
            # In a range, whether a non-ASCII character is inside depends on the user's locale.
            regex += f"(?:[{bracket[1:-1]}]|[^\\x00-\\x7f])"
        else:
            regex += {"*": ".*", "?": "."}[special] if special else re.escape(escaped or plain)
    return re.compile(regex, flags), is_live
