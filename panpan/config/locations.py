"""Locations of panpan's files. All of them are below one folder, the panpan home, which `PANPAN_HOME` moves.

Nothing here makes a folder or opens a file: the first writer makes the folder, private, with `system.files`.
"""

import os
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from hashlib import blake2b
from pathlib import Path

from panpan.errors import ConfigError
from panpan.system.files.canonical import canonical_path, lost_link, user_home
from panpan.types.dataclass import dataclass

_READABLE_CHARS = 60
"""Characters of a project's path in its slug; with the digest far below the 255 bytes that a file name may have."""

PROJECTS_FOLDER = "projects"
"""Folder below the home with the user's files for each project."""

CRASH_FOLDER = "crashes"
"""Folder below the home with crash reports; a crash may come before the other locations are known."""


@dataclass(frozen=True, slots=True)
class Locations:
    """The folders and files of panpan for one project.

    Args:
        home: The panpan home, canonical; may not exist yet.
        project_root: The root folder of the project, canonical.
    """

    home: Path
    project_root: Path

    @classmethod
    def find(cls, cwd: Path, env: Mapping[str, str]) -> "Locations":
        """Return the locations for work that starts in `cwd`.

        Raises:
            ConfigError: The panpan home cannot be determined, or `cwd` is no folder.
        """
        return cls(panpan_home(env, cwd), find_project_root(cwd))

    @property
    def project_slug(self) -> str:
        """Name of the project's folder below the home."""
        return project_slug(self.project_root)

    @property
    def project_folder(self) -> Path:
        """Folder with the user's files for this project, outside it, so that no repository can write them."""
        return self.home / PROJECTS_FOLDER / self.project_slug

    @property
    def sessions_folder(self) -> Path:
        """Folder with one log for each session."""
        return self.project_folder / "sessions"

    @property
    def outputs_folder(self) -> Path:
        """Folder for tool output that is too large for a result."""
        return self.project_folder / "outputs"

    @property
    def history_file(self) -> Path:
        """File with the prompts that the user sent in this project."""
        return self.project_folder / "history"

    @property
    def user_settings(self) -> Path:
        """The user's settings for every project."""
        return self.home / "settings.toml"

    @property
    def project_settings(self) -> Path:
        """The project's own settings, which the author of the repository wrote."""
        return self.project_root / ".panpan" / "settings.toml"

    @property
    def local_settings(self) -> Path:
        """The user's own settings for this project, among them the permissions that they gave it."""
        return self.project_folder / "settings.toml"

    @property
    def plans_folder(self) -> Path:
        """Folder with one file for each plan of the model, the only files below the home that tools may write."""
        return self.home / "plans"

    @property
    def worktrees_folder(self) -> Path:
        """Folder with copies of the project in which subagents work."""
        return self.home / "worktrees" / self.project_slug

    @property
    def todos_folder(self) -> Path:
        """Folder with one todo list for each session."""
        return self.home / "todos"

    @property
    def packages_folder(self) -> Path:
        """Folder with the undo log of the last change to each environment."""
        return self.home / "packages"

    @property
    def tasks_folder(self) -> Path:
        """Folder with the records of background tasks, in one folder for each session."""
        return self.home / "tasks"

    @property
    def logins_folder(self) -> Path:
        """Folder with the user's log-ins to web sites, one file for each; they are as secret as passwords."""
        return self.home / "logins"

    @property
    def sockets_folder(self) -> Path:
        """Folder with a socket for each session that other terminals may join."""
        return self.home / "run"

    @property
    def search_index(self) -> Path:
        """Full-text index of the sessions of all projects; may be deleted at any time."""
        return self.home / "search.sqlite3"

    @property
    def feedback_folder(self) -> Path:
        """Folder with one file for each report that the user wrote for the authors of panpan."""
        return self.home / "feedback"

    @property
    def debug_folder(self) -> Path:
        """Folder with the logs of runs with `--debug`."""
        return self.home / "debug"

    def shown(self, path: Path) -> str:
        """Return the shortest way to write a canonical path: from the project (`./`), from `~`, or absolute."""
        ways = [str(path)]
        for name, folder in (("~", canonical_path(user_home())), (".", self.project_root)):
            if path.is_relative_to(folder):
                ways.append(f"{name}/{path.relative_to(folder)}")
        return min(ways, key=len)


def panpan_home(env: Mapping[str, str], cwd: Path) -> Path:
    """Return the canonical panpan home: `PANPAN_HOME` if it is set and not empty, else `~/.panpan`.

    Args:
        env: The environment; `HOME` is taken from it, too.
        cwd: Folder for a relative `PANPAN_HOME`.

    Raises:
        ConfigError: There is no home folder, or the path cannot be used. Or a link to it leads nowhere: denials in its
            settings must not be lost because of that.
    """
    chosen = env.get("PANPAN_HOME") or "~/.panpan"
    try:
        if chosen == "~" or chosen.startswith("~/"):
            place = Path(env.get("HOME") or Path.home()) / chosen[2:]
        else:
            place = cwd / Path(chosen).expanduser()
        if (lost := lost_link(place)) is not None:
            from panpan.config.keys import shown  # imports pydantic, which the start does not need

            raise ConfigError(
                f"the panpan home {chosen!r} cannot be used: the link {shown(lost)} leads nowhere; fix or remove it"
            )
        return place.resolve()
    except (OSError, RuntimeError, ValueError) as exc:
        raise ConfigError(f"the panpan home {chosen!r} cannot be used ({exc}); set PANPAN_HOME to a folder") from exc


def snapshots_folder(home: Path, root: Path) -> Path:
    """Return the folder for the snapshots of a folder of the workspace; both paths are canonical."""
    return home / PROJECTS_FOLDER / project_slug(root) / "snapshots"


def find_project_root(cwd: Path) -> Path:
    """Return the canonical root of the project around `cwd`: the nearest repository upwards, else `cwd` itself.

    A `.git` file counts like a folder, since work trees and submodules have one. git itself is not asked: it costs a
    process, may be missing, and obeys the repository's configuration. A repository of another user counts only if
    `cwd` is theirs, too, as with git's own `safe.directory`.

    Raises:
        ConfigError: `cwd` is no folder, or cannot be reached.
    """
    try:
        start = cwd.resolve(strict=True)
        if not start.is_dir():
            raise NotADirectoryError("it is not a folder")
    except (OSError, RuntimeError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or exc
        raise ConfigError(f"cannot work in {str(cwd)!r}: {reason}; name a folder that exists") from exc
    owners = {os.geteuid(), 0, start.stat().st_uid}
    return next((folder for folder in (start, *start.parents) if _has_git(folder, owners)), start)


def _has_git(folder: Path, owners: AbstractSet[int]) -> bool:
    """Return True if the folder is a repository of one of these owners; anybody may put one into a folder like /tmp."""
    try:
        return (folder / ".git").stat().st_uid in owners
    except OSError:  # missing, or below an unreadable folder
        return False


def project_slug(project_root: Path) -> str:
    """Return a file name for the project: the end of its path, to be readable, and a digest, to be unique.

    It starts with a letter or digit, since commands would take a leading dash for an option.
    """
    path = str(project_root)
    readable = re.sub(r"[^A-Za-z0-9._]+", "-", path)[-_READABLE_CHARS:].strip("-._")
    digest = blake2b(path.encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()
    return f"{readable}-{digest}" if readable else digest
