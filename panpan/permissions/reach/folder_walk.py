"""All that lies below a folder, as a search comes by it: what folders hold, and what git ignores or tracks of them.

The rule: links are never followed, and what cannot be read holds nothing. Where hidden names are left out, more may be
there than a search would come by, never less: one that an ignore file may take in again with a `!` is there.

The rule: where that cannot be told, every file counts.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from panpan.permissions.reach.located import repository_around
from panpan.system.files.canonical import canonical_path, user_home
from panpan.system.git.git_places import GitIndex


class TrackedFiles:
    """The files of one repository that git tracks, and the folders that lead to them.

    Args:
        folder: A canonical folder in it.
    """

    def __init__(self, folder: Path) -> None:
        # What lies elsewhere, as of a submodule, is not looked for; it is not that of the repository around, either.
        index = GitIndex.around(folder)
        index = index if index is not None and index.top == repository_around(folder) else None
        self.names = index.names() if index is not None else None
        """As the index has them; None where it cannot be read."""
        self._top = f"{index.top}/" if index is not None else ""
        self._places = frozenset(_with_folders(self.names or ()))

    def relative_to(self, folder: Path) -> Iterator[str]:
        """Yield the names of what is tracked below a canonical folder, relative to it."""
        before = f"{folder}/".removeprefix(self._top)
        return (name.removeprefix(before) for name in self.names or () if name.startswith(before))

    def may_lead_to(self, path: str) -> bool:
        """Return whether git may track what lies at the absolute `path`, or something below it."""
        if self.names is None or not path.isascii() or not path.startswith(self._top):
            return True  # git may write a name with an accent in more than one way
        return path.removeprefix(self._top).casefold() in self._places


def why_unclear(folders: Iterable[Path], odd_names: re.Pattern[str] | None = None) -> str | None:
    """Return why it is not sure that git, asked for what it tracks in these folders, names only what lies there.

    Args:
        folders: Canonical folders, from which git starts.
        odd_names: Found in names that would not arrive as they are; a file need not be there for git to name it.
    """
    for folder in folders:
        tracked = TrackedFiles(folder)
        names = tracked.names
        if names is None:
            return f"which files git tracks in {folder} cannot be told; use find with -exec … {{}} +"
        if odd := next((name for name in names if name.startswith("/") or ".." in name.split("/")), None):
            return f"git would name {odd}, which lies elsewhere"
        here = tracked.relative_to(folder) if odd_names is not None else ()
        if odd_names is not None and (odd := next(filter(odd_names.search, here), None)):
            return not_as_it_is(str(folder / odd))
    return None


def not_as_it_is(path: str) -> str:
    """Return the reason for which a path may not be handed on by xargs."""
    return f"xargs would not take the name {path} as it is; use find with -exec … {{}} +"


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
"""Of an ignore file; a larger one may take in anything."""
_ODD = frozenset("[]{}\\")
_EXCLUDES_FILE = re.compile(r"^\s*excludesfile\s*=\s*\"?\s*(\S+?)\s*\"?\s*$", re.IGNORECASE | re.MULTILINE)


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
    """Return what is in a folder; nothing where that cannot be read."""
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
    """Return what a file begins with; None where there is none."""
    try:
        if not file.is_file():
            return None
        with file.open(encoding="utf-8", errors="replace") as stream:
            return stream.read(_MOST_BYTES)
    except OSError:
        return None
