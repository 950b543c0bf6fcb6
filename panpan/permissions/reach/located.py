"""A path of a call, and where it really is; and the places in a repository from which git shows files.

And the places from which it takes what it shows, where a repository leads to another one.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

from panpan.core.effects import PathUse
from panpan.errors import ToolError
from panpan.shell_analysis.facts import LineFacts
from panpan.system.files.canonical import canonical_path
from panpan.system.files.paths import Location, PathResolver
from panpan.system.files.protected import may_be_protected
from panpan.system.git.git_places import places_elsewhere
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class LocatedUse:
    """A path that the call would touch, and where it really is."""

    use: PathUse
    location: Location
    spellings: tuple[Path, ...]
    """The canonical path, and the absolute path as written where that differs."""
    is_shallow: bool = False
    """True if nothing is touched that lies in it, if it is a folder."""
    command: str = ""
    """The simple command of a line that touches it; empty for other calls."""

    @property
    def path(self) -> Path:
        """The canonical path."""
        return self.location.path

    @property
    def is_write(self) -> bool:
        """True if the call would change it."""
        return self.use.access == "write"

    @property
    def is_open(self) -> bool:
        """True if the path may be touched without a question about where it lies."""
        return self.location.is_inside if self.is_write else self.location.is_readable

    @property
    def needs_a_person(self) -> bool:
        """True if no rule, mode or flag may open it: it may hold secrets, or is protected and would be changed."""
        return self.location.is_secret or (self.is_write and self.location.is_protected)


@dataclass(frozen=True, slots=True)
class PlainFiles:
    """Regular files in one folder. None is protected, and the call may touch all of them without asking."""

    access: Literal["read", "write"]
    folders: tuple[Path, ...]
    """The canonical folder, and the folder as written where that differs."""
    is_inside: bool
    commands: Mapping[str, str]
    """Simple command of a line that touches the file, by name."""

    @property
    def is_write(self) -> bool:
        """True if the call would change them."""
        return self.access == "write"

    def use(self, name: str) -> LocatedUse:
        """Return one of them, as it would be located alone."""
        spellings = tuple(folder / name for folder in self.folders)
        location = Location(spellings[0], self.is_inside, is_readable=True, protection=None)
        return LocatedUse(PathUse(str(spellings[-1]), self.access), location, spellings, command=self.commands[name])


_Found: TypeAlias = tuple[Location, tuple[Path, ...]]


class Locator:
    """Locates the paths of one call; what leads to a folder is looked up once for all that lies in it.

    Args:
        paths: Knows where paths lead.
    """

    def __init__(self, paths: PathResolver) -> None:
        self._paths = paths
        self._folders: dict[str, _PlainFolder | None] = {}
        self._found: dict[str, _Found] = {}

    def locate_use(self, use: PathUse, *, is_shallow: bool = False, command: str = "") -> LocatedUse:
        """Return the path with where it really is; the rest is as in `LocatedUse`.

        Raises:
            ToolError: It cannot be used.
        """
        absolute = self._paths.absolute(use.path)
        if absolute not in self._found:
            self._found[absolute] = self._judged(absolute)
        return LocatedUse(use, *self._found[absolute], is_shallow, command)

    def plain_files(self, folder: PathUse, commands: Mapping[str, str]) -> PlainFiles:
        """Return those of the regular files in a folder that are as plain as it is; none if it is not.

        Args:
            folder: The folder, with what is done to the files.
            commands: For each name the simple command that does it.
        """
        plain = None
        with suppress(ToolError):
            plain = self._plain_folder(self._paths.absolute(folder.path))
        if plain is None or not (plain.is_inside if folder.access == "write" else plain.is_readable):
            return PlainFiles(folder.access, (), is_inside=False, commands={})
        kept = {name: command for name, command in commands.items() if plain.decides_about(name)}
        folders = (plain.path,) if plain.written is None else (plain.path, plain.written)
        return PlainFiles(folder.access, folders, plain.is_inside, kept)

    def _judged(self, absolute: str) -> _Found:
        """Return where a path leads, with its spellings; the call will find that very place there."""
        known = self._paths.recall(absolute)
        found = self._as_in_folder(absolute) if known is None else None
        found = found or self._alone(absolute, known)
        self._paths.remember(absolute, found[0])
        return found

    def _alone(self, absolute: str, known: Location | None) -> _Found:
        location = known or self._paths.locate(absolute)
        written = Path(os.path.normpath(absolute))
        return location, (location.path,) if written == location.path else (location.path, written)

    def _as_in_folder(self, absolute: str) -> _Found | None:
        """Return the same where its folder and its name tell."""
        folder, _, name = absolute.rpartition("/")
        if name in ("", ".", ".."):
            return None
        plain = self._plain_folder(folder)
        if plain is None or not plain.decides_about(name):
            return None
        path = plain.path / name
        if _may_be_link(path):
            return None
        spellings = (path,) if plain.written is None else (path, plain.written / name)
        return Location(path, plain.is_inside, plain.is_readable, None, is_shown=plain.is_shown), spellings

    def _plain_folder(self, folder: str) -> "_PlainFolder | None":
        folder = folder.removesuffix("/.") or "/"
        if folder not in self._folders:
            self._folders[folder] = self._look_up(folder)
        return self._folders[folder]

    def _look_up(self, folder: str) -> "_PlainFolder | None":
        try:
            location = self._paths.locate(folder)
        except ToolError:
            return None
        if location.is_protected or location.is_secret:
            return None
        written = Path(os.path.normpath(folder))
        other = written if written != location.path else None
        apart = self._paths.exceptional_names(location.path)
        return _PlainFolder(location.path, other, location.is_inside, location.is_readable, location.is_shown, apart)


@dataclass(frozen=True, slots=True)
class _PlainFolder:
    """A folder that is not protected."""

    path: Path
    written: Path | None
    """Path as written, if it is another one."""
    is_inside: bool
    is_readable: bool
    is_shown: bool
    exceptional_names: frozenset[str]
    """Names in it that are judged by themselves, whatever they are called."""

    def decides_about(self, name: str) -> bool:
        """Return whether what has this name, and is no link, is judged as the folder is."""
        return name not in self.exceptional_names and not may_be_protected(name)


def locate_use(use: PathUse, paths: PathResolver) -> LocatedUse:
    """Return the path with where it really is.

    Raises:
        ToolError: It cannot be used.
    """
    return Locator(paths).locate_use(use)


def _may_be_link(path: Path) -> bool:
    """Return whether it is a link, or may be one; a missing file is none."""
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True


def repository_around(folder: Path) -> Path:
    """Return the top of the repository that the canonical `folder` lies in; the folder itself where it lies in none."""
    return next((top for top in (folder, *folder.parents) if (top / ".git").exists()), folder)


def git_path_uses(facts: LineFacts, cwd: Path, locator: Locator) -> Iterator[LocatedUse]:
    """Yield the files of repositories that a line has git show, and the other repositories that these are taken from.

    Args:
        facts: What the line would do.
        cwd: Where it starts.
        locator: Locates them.

    Raises:
        ToolError: It cannot be told where a repository takes from what it shows.
    """
    for effect in facts.effects:
        folders = effect.git_folders or [effect.read_details.asks_git_in or "."]
        for folder in folders if effect.read_details.asks_git_in else ():
            for place in places_elsewhere(canonical_path(cwd / folder)):
                yield locator.locate_use(PathUse(str(place.path), "read"), command=effect.command.source)
        for folder in folders if effect.read_details.git_paths else ():
            top = repository_around(canonical_path(cwd / folder))
            for path in effect.read_details.git_paths:
                with suppress(ToolError):  # not a path that could be shown
                    yield locator.locate_use(PathUse(str(top / path), "read"), command=effect.command.source)
