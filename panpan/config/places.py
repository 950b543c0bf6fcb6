"""Places of the files that users bring along, such as skills and commands: one list for all kinds of them.

The rule: a file of a project has the bytes that the user has trusted. Of a project that is not trusted, none counts.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from panpan.config.project_files import canonical_or_same
from panpan.config.trust import NO_TRUST, ProjectTrust
from panpan.errors import ToolError
from panpan.system.files.canonical import is_below, user_home
from panpan.system.files.read_file import read_users_file
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from panpan.config.plugins.store import LoadedPlugin, PluginPlace

Kind: TypeAlias = Literal["hooks", "commands", "skills", "output-styles", "agents"]

PLACES: Mapping[Kind, Sequence[str]] = {
    "hooks": (
        "~/.claude/settings.json", "~/.panpan/hooks.json",
        ".claude/settings.json", ".claude/settings.local.json", ".panpan/hooks.json",
    ),
    "commands": ("~/.claude/commands", "~/.panpan/commands", ".claude/commands", ".panpan/commands"),
    "skills": (
        "~/.agents/skills", "~/.claude/skills", "~/.panpan/skills",
        ".agents/skills", ".claude/skills", ".panpan/skills",
    ),
    "output-styles": (
        "~/.claude/output-styles", "~/.panpan/output-styles", ".claude/output-styles", ".panpan/output-styles",
    ),
    "agents": (
        "~/.agents/agents", "~/.claude/agents", "~/.panpan/agents",
        ".gemini/agents", ".opencode/agents", "agents", ".agents/agents", ".claude/agents", ".panpan/agents",
    ),
}  # fmt: skip
"""Files and folders of each kind, the weakest first. `~/.panpan` is the panpan home, wherever that is; without `~` a
place is in the project, and has a row in `project_files`."""

NAMES: Mapping[Kind, str] = {
    "hooks": "*", "commands": "*.md", "skills": "SKILL.md", "output-styles": "*.md", "agents": "*.md",
}  # fmt: skip
"""Names of the files in these folders; a folder with a file of such an exact name is one thing, and has no more."""

MAX_BYTES = 1_000_000
"""Most bytes of one file."""
MAX_DEPTH = 5
"""Levels of folders in a place of the user."""
MAX_FOLDERS = 5_000
"""Most folders to look at in a place of the user."""


@dataclass(frozen=True, slots=True)
class BroughtFile:
    """A file that a user has brought along."""

    kind: Kind
    name: str
    """Its path: absolute, or from the root of the project."""
    data: bytes
    is_users: bool
    """True if it is the user's own, and neither the project's nor a plug-in's."""
    plugin: "PluginPlace | None" = None
    """The plug-in that it is of."""
    given_name: str = ""
    """Name that its plug-in gives it, without that of the plug-in; empty if the file has its own."""
    is_strict: bool = False
    """True if what its specification forbids costs the file."""
    has_lines: bool = True
    """False if its name has the line already."""


@dataclass(frozen=True)
class Places:
    """The places of one run."""

    home: Path | None = None
    """The panpan home; None: nothing of the user's counts."""
    trust: ProjectTrust = NO_TRUST
    """The project."""
    plugin_folders: Sequence[Path] = ()
    """Folders of plug-ins that count besides those that are enabled."""
    only: "Sequence[LoadedPlugin]" = ()
    """Plug-ins that count in place of all others."""
    without_mcp: Sequence[Path] = ()
    """Those of `plugin_folders` whose MCP servers do not count."""

    @cached_property
    def _plugins(self) -> "tuple[Sequence[LoadedPlugin], Sequence[str]]":
        if self.only:
            return self.only, ()
        if not self.plugin_folders and (self.home is None or not os.path.lexists(self.home / "plugins/plugins.json")):
            return (), ()
        from panpan.config.plugins.enabled import load_plugins  # few have any

        return load_plugins(self.home, self.plugin_folders, self.without_mcp)

    @property
    def plugins(self) -> "Sequence[LoadedPlugin]":
        """The plug-ins that are on."""
        return self._plugins[0]

    @property
    def program_folders(self) -> Sequence[Path]:
        """Folders with programs of plug-ins, which commands may call by their names."""
        return [one.place.root / "bin" for one in self.plugins if one.plugin.of_kind("programs")]

    @property
    def readable_folders(self) -> Sequence[Path]:
        """Folders that tools and commands may read wherever they are: skills that count, with scripts, and plug-ins."""
        folders = [one.place.root for one in self.plugins]
        for place in PLACES["skills"]:
            if place.startswith("~"):
                folders += [_users_path(place, self.home)] if self.home is not None else []
            elif _below(place, self.trust.believed):
                folders.append(self.trust.files.root / place)
        found = [canonical_or_same(folder) for folder in folders if folder.is_dir()]
        return [folder for folder in found if not self._holds_others(folder)]

    def _holds_others(self, folder: Path) -> bool:
        """True for a folder that a link leads to, and that is or holds more than skills: the home, or panpan's own."""
        home = canonical_or_same(self.home) if self.home is not None else None
        if is_below(canonical_or_same(user_home()), folder) or (home is not None and is_below(home, folder)):
            return True
        own = [home / "skills", home / "plugins" / "files"] if home is not None else []
        return home is not None and is_below(folder, home) and not any(is_below(folder, place) for place in own)

    @property
    def plugin_problems(self) -> Sequence[str]:
        """Plug-ins that are on and cannot be used, each with the reason."""
        return self._plugins[1]

    def files(self, kinds: Sequence[Kind], problems: list[str]) -> Iterator[BroughtFile]:
        """Yield the files that count, the weakest first: those of plug-ins, of the user, and of a trusted project.

        Args:
            kinds: Kinds of files; of the same origin, those of a later kind are stronger.
            problems: Gets a sentence for each file or folder that cannot be read.
        """
        for kind in kinds:
            yield from self._of_plugins(kind, problems)
        for kind in kinds:
            for place in PLACES[kind]:
                if place.startswith("~") and self.home is not None:
                    yield from _of_user(kind, _users_path(place, self.home), problems)
        left_out = self.trust.files.left_out if self.trust.is_trusted else {}
        for kind in kinds:
            for place in PLACES[kind]:
                problems += [f"{name}: it is not used: {left_out[name]}" for name in _below(place, left_out)]
                for name in _below(place, self.trust.believed):
                    yield BroughtFile(kind, name, self.trust.believed[name], is_users=False)

    def _of_plugins(self, kind: Kind, problems: list[str]) -> Iterator[BroughtFile]:
        for one in self.plugins:
            for part in one.plugin.of_kind(kind):
                path = f"{one.place.root}/{part.path}"
                try:
                    data = one.content.read(part.path) if part.content is None else part.content
                except ToolError as error:
                    problems.append(f"{path}: it is not used: {error}")
                    continue
                is_strict = one.plugin.format == "agent-plugins"
                yield BroughtFile(kind, path, data, False, one.place, part.name, is_strict)

    def waiting(self, *kinds: Kind) -> Sequence[str]:
        """Return the files of a project that would count if it were trusted."""
        if self.trust.is_trusted:
            return ()
        every = [place for kind in kinds for place in PLACES[kind]]
        return [name for place in every for name in _below(place, self.trust.files.content)]

    def told_waiting(self, what: str, *kinds: Kind) -> Sequence[str]:
        """Return a sentence for the user about such files; none if there are none, or the user has said no."""
        waiting = self.waiting(*kinds)
        if not waiting or not self.trust.may_be_asked:
            return ()
        of = f"{waiting[0]} and {len(waiting) - 1} more" if len(waiting) > 1 else waiting[0]
        return (clean_line(f"{what} of the project wait until you trust it: panpan trust ({of})"),)


def _below(place: str, names: Iterable[str]) -> Sequence[str]:
    """Return the names of a place and of what is in it, sorted."""
    return sorted(name for name in names if name == place or name.startswith(f"{place}/"))


def _users_path(place: str, home: Path | None) -> Path:
    in_home = place.removeprefix("~/.panpan/")
    return home / in_home if home is not None and in_home != place else user_home() / place.removeprefix("~/")


def _of_user(kind: Kind, place: Path, problems: list[str]) -> Iterator[BroughtFile]:
    found: Iterable[str] = files_below(place, NAMES[kind], problems)
    if place.suffix == ".json":
        found = [str(place)] if os.path.lexists(place) else []
    for path in found:
        try:
            data = read_users_file(path, max_bytes=MAX_BYTES)
        except ToolError as error:
            problems.append(f"{path}: it is not used: {str(error).replace(path, 'it', 1)}")
            continue
        yield BroughtFile(kind, path, data, is_users=True)


def files_below(place: Path, pattern: str, problems: list[str]) -> Iterator[str]:
    """Yield the files of a folder and the folders in it, sorted; links are followed, since they are the user's.

    Args:
        place: The folder; it need not exist.
        pattern: Names of the files, with wildcards.
        problems: Gets a sentence for each folder that cannot be read.
    """
    folders = [(str(place), 0)]
    seen = 0
    while folders:
        folder, depth = folders.pop()
        if (seen := seen + 1) > MAX_FOLDERS:
            problems.append(f"{place}: it has more than {MAX_FOLDERS:,} folders; the others are not looked at")
            return
        try:
            with os.scandir(folder) as entries:
                found = sorted((entry for entry in entries if not entry.name.startswith(".")), key=_name)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            problems.append(f"{folder}: it cannot be read: {error.strerror}")
            continue
        files = [entry.path for entry in found if fnmatchcase(entry.name, pattern) and not _is_folder(entry)]
        yield from files
        if depth < MAX_DEPTH and not (files and "*" not in pattern):
            folders += [(entry.path, depth + 1) for entry in reversed(found) if _is_folder(entry)]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads nowhere
        return False


def _name(entry: os.DirEntry[str]) -> str:
    return entry.name
