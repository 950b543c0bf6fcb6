"""Whether the user trusts a project: its folder, and exactly what its executable settings say now.

The rule: trust belongs to one canonical root and to the bytes of the files that `project_files` lists. It is never
inherited: a repository in a trusted folder, the same folder under another name, and a file that changed are not
trusted. What cannot be read, of the project or of what the user said, is not trusted either.
"""

import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Any, Self, TypeAlias

from panpan.config.keys import shown
from panpan.config.locations import PROJECTS_FOLDER, Locations, project_slug
from panpan.config.project_files import ProjectFiles, canonical_or_same, read_project_files
from panpan.config.trust_difference import FileChange, KnownFile, changes_since, known_files
from panpan.errors import ConfigError, ToolError
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.canonical import is_below
from panpan.system.files.home import user_home
from panpan.system.files.private import make_private_folder
from panpan.system.files.read_file import read_regular_file
from panpan.types.dataclass import dataclass

TRUST_FILE = "trust.json"
_MAX_BYTES = 32_000_000
"""More than the kept text of one project comes to, as JSON."""
_MAX_PROJECTS = 10_000


@dataclass(frozen=True, slots=True)
class Trusted:
    """The user trusts the project as it is."""

    is_for_this_run: bool = False
    """Whether a flag said so, which holds for no other run."""


@dataclass(frozen=True, slots=True)
class Untrusted:
    """The user does not trust the project."""

    is_refused: bool = False
    """Whether he was asked about it as it is now, and said no."""
    problem: str = ""
    """Why it cannot be told; empty where it can."""


@dataclass(frozen=True, slots=True)
class Changed:
    """The user trusted the project, and then its executable settings changed."""

    changes: Sequence[FileChange]


TrustState: TypeAlias = Trusted | Untrusted | Changed


@dataclass(frozen=True, slots=True)
class ProjectTrust:
    """What a project brings along, and whether it is believed."""

    files: ProjectFiles
    state: TrustState

    @property
    def is_trusted(self) -> bool:
        """Whether what the project says counts."""
        return isinstance(self.state, Trusted)

    @property
    def may_be_asked(self) -> bool:
        """Whether the user could trust it and has not said no."""
        refused = isinstance(self.state, Untrusted) and self.state.is_refused
        return not self.is_trusted and not refused and not self.files.problems

    @property
    def believed(self) -> Mapping[str, bytes]:
        """The files that count, by their names from the root; none unless the project is trusted."""
        return self.files.content if self.is_trusted else {}

    def for_this_run(self) -> Self:
        """Return the same, trusted as it is, where it can be."""
        return self if self.files.problems else replace(self, state=Trusted(is_for_this_run=not self.is_trusted))


NO_TRUST = ProjectTrust(ProjectFiles(Path("/")), Untrusted())
"""Where nothing was read, nothing is believed."""


def trust_of(locations: Locations) -> ProjectTrust:
    """Read what a project brings along, and what the user said of it."""
    files = read_project_files(locations.project_root, locations.home)
    return ProjectTrust(files, TrustStore(locations.home).state(files))


@dataclass(frozen=True, slots=True)
class Decision:
    """What the user said of a project."""

    root: str
    is_trusted: bool
    files: Mapping[str, KnownFile]

    @classmethod
    def of(cls, kept: Any) -> Self:
        """Return what was kept.

        Raises:
            ValueError: It is no decision.
        """
        match kept:
            case {"version": 1, "root": str(root), "is_trusted": bool(is_trusted), "files": dict(files)}:
                return cls(root, is_trusted, {name: _known_file(file) for name, file in files.items()})
        raise ValueError("it is not what panpan writes")


def _known_file(kept: Any) -> KnownFile:
    match kept:
        case {"digest": str(digest), "text": str() | None as text}:
            return KnownFile(digest, text)
    raise ValueError("it is not what panpan writes")


class TrustStore:
    """What the user said of projects, a private file for each, so that two panpans never write over another's answer.

    Args:
        home: The panpan home.
    """

    def __init__(self, home: Path) -> None:
        self._folder = home / PROJECTS_FOLDER

    def state(self, files: ProjectFiles) -> TrustState:
        """Return whether the project is trusted as it was read."""
        if files.problems:
            name, problem = next(iter(files.problems.items()))
            return Untrusted(problem=f"{shown(name)} cannot be read whole: {shown(problem)}")
        try:
            decision = self._decision(self._path(files.root))
        except ConfigError as exc:
            return Untrusted(problem=str(exc))
        if decision is None or decision.root != str(files.root):
            return Untrusted()
        changes = changes_since(decision.files, files)
        if decision.is_trusted:
            return Changed(changes) if changes else Trusted()
        return Untrusted(is_refused=not changes)

    def keep(self, files: ProjectFiles, *, is_trusted: bool) -> None:
        """Remember the user's answer about these files; it takes the place of an earlier one.

        Raises:
            ConfigError: There is something that could not be read, or the answer cannot be written.
        """
        if is_trusted and files.problems:
            name, problem = next(iter(files.problems.items()))
            raise ConfigError(f"{shown(files.root)} cannot be trusted: {shown(name)}: {shown(problem)}")
        path = self._path(files.root)
        kept = {"version": 1, **asdict(Decision(str(files.root), is_trusted, known_files(files)))}
        try:
            make_private_folder(path.parent)
            write_atomic(path, (json.dumps(kept, indent=1) + "\n").encode(), mode=0o600, follow_symlinks=True)
        except ToolError as exc:
            raise ConfigError(f"your answer could not be kept: {shown(exc)}") from exc

    def remove(self, root: Path) -> bool:
        """Forget what the user said of a project; return whether there was something.

        Raises:
            ConfigError: It cannot be removed.
        """
        path = self._path(root)
        try:
            path.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as exc:
            raise ConfigError(f"{shown(path)} cannot be removed: {exc.strerror}") from exc
        return True

    def trusted_roots(self) -> Iterator[Path]:
        """Yield the roots of all projects that the user trusted, whether they changed since or not."""
        try:
            with os.scandir(self._folder) as entries:
                slugs = sorted(entry.name for entry in islice(entries, _MAX_PROJECTS))
        except OSError:
            return
        for slug in slugs:
            try:
                decision = self._decision(self._folder / slug / TRUST_FILE)
            except ConfigError:
                continue  # asked about again when somebody works there
            if decision is not None and decision.is_trusted and project_slug(Path(decision.root)) == slug:
                yield Path(decision.root)

    def _path(self, root: Path) -> Path:
        return self._folder / project_slug(root) / TRUST_FILE

    def _decision(self, path: Path) -> Decision | None:
        """Return what was kept.

        Raises:
            ConfigError: It cannot be read or understood, or somebody else may have written it.
        """
        try:
            status = path.lstat()
            is_ours = status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            if not stat.S_ISREG(status.st_mode) or not is_ours:
                raise ToolError("others may have written it")
            return Decision.of(json.loads(read_regular_file(path, max_bytes=_MAX_BYTES, follow_symlinks=True)))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as exc:
            raise ConfigError(f"{shown(path)} cannot be read: {exc.strerror}") from exc
        except (ToolError, ValueError, RecursionError) as exc:
            raise ConfigError(f"{shown(path)} is not believed: {shown(exc)}; remove it") from exc


def wide_root(root: Path) -> str:
    """Return what a project's root is, where it is more than a project: the user's home, or a folder around it."""
    home = canonical_or_same(user_home())
    if root == Path(root.anchor):
        return "the root of the file system"
    if root == home:
        return "your whole home folder"
    return "a folder with your home folder in it" if is_below(home, root) else ""
