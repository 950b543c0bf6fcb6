"""Where panpan's files live: everything that is kept lies below one folder, the panpan home, which `PANPAN_HOME` moves.

Nothing here makes a folder or opens a file: whoever writes first makes the folder, private, through `system.private`.
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
"""How much of a project's path its slug shows; with the digest far below the 255 bytes that a file name may have."""

PROJECTS_FOLDER = "projects"
"""Below the home: what the user keeps for each project."""

CRASH_FOLDER = "crashes"
"""Below the home: reports of errors that panpan did not expect, maybe before it knew its other places."""


@dataclass(frozen=True, slots=True)
class Locations:
    """The folders and files of panpan for one project.

    Args:
        home: The panpan home, canonical; may not exist yet.
        project_root: The folder that the project is, canonical.
    """

    home: Path
    project_root: Path

    @classmethod
    def find(cls, cwd: Path, env: Mapping[str, str]) -> "Locations":
        """Return the locations for work that starts in `cwd`.

        Raises:
            ConfigError: The panpan home cannot be told, or `cwd` is no folder.
        """
        return cls(panpan_home(env, cwd), find_project_root(cwd))

    @property
    def project_slug(self) -> str:
        """Name of the project's folder below the home."""
        return project_slug(self.project_root)

    @property
    def project_folder(self) -> Path:
        """What the user keeps for this project, outside it, so that no repository can write it."""
        return self.home / PROJECTS_FOLDER / self.project_slug

    @property
    def sessions_folder(self) -> Path:
        """One log a session."""
        return self.project_folder / "sessions"

    @property
    def outputs_folder(self) -> Path:
        """Tool output that was too large for a result."""
        return self.project_folder / "outputs"

    @property
    def history_file(self) -> Path:
        """What the user sent in this project."""
        return self.project_folder / "history"

    @property
    def user_settings(self) -> Path:
        """The user's settings for every project."""
        return self.home / "settings.toml"

    @property
    def project_settings(self) -> Path:
        """The settings that the project brings along; whoever wrote the repository wrote them."""
        return self.project_root / ".panpan" / "settings.toml"

    @property
    def local_settings(self) -> Path:
        """The user's own settings for this project, among them the permissions he gave it."""
        return self.project_folder / "settings.toml"

    @property
    def plans_folder(self) -> Path:
        """What the model planned to do: one file a plan, the only ones below the home that tools may write."""
        return self.home / "plans"

    @property
    def worktrees_folder(self) -> Path:
        """Copies of the project in which subagents work."""
        return self.home / "worktrees" / self.project_slug

    @property
    def todos_folder(self) -> Path:
        """What the model has set out to do: one list a session."""
        return self.home / "todos"

    @property
    def packages_folder(self) -> Path:
        """What the last change of each environment was, so that it can be taken back."""
        return self.home / "packages"

    @property
    def tasks_folder(self) -> Path:
        """What is known of tasks in the background: one folder a session."""
        return self.home / "tasks"

    @property
    def logins_folder(self) -> Path:
        """What the user's log-ins to web sites have left: one file a site, as good as his passwords."""
        return self.home / "logins"

    @property
    def search_index(self) -> Path:
        """Where which words stand in the sessions of all projects; may be deleted at any time."""
        return self.home / "search.sqlite3"

    @property
    def feedback_folder(self) -> Path:
        """What the user wants to tell those who make panpan: one file a report."""
        return self.home / "feedback"

    @property
    def debug_folder(self) -> Path:
        """Logs of runs with `--debug`."""
        return self.home / "debug"

    def shown(self, path: Path) -> str:
        """Return a canonical path as people write it: from the project (`./`), from `~`, or whole; the shortest."""
        ways = [str(path)]
        for name, folder in (("~", canonical_path(user_home())), (".", self.project_root)):
            if path.is_relative_to(folder):
                ways.append(f"{name}/{path.relative_to(folder)}")
        return min(ways, key=len)


def panpan_home(env: Mapping[str, str], cwd: Path) -> Path:
    """Return the canonical panpan home: `PANPAN_HOME`, where it is set and not empty, else `~/.panpan`.

    Args:
        env: The environment; `HOME` is taken from it, too.
        cwd: What a relative `PANPAN_HOME` is relative to.

    Raises:
        ConfigError: There is no home folder, or the path cannot be used. Or a link to it leads nowhere: what settings
            deny must not be allowed for that.
    """
    chosen = env.get("PANPAN_HOME") or "~/.panpan"
    try:
        if chosen == "~" or chosen.startswith("~/"):
            place = Path(env.get("HOME") or Path.home()) / chosen[2:]
        else:
            place = cwd / Path(chosen).expanduser()
        if (lost := lost_link(place)) is not None:
            from panpan.config.keys import shown  # with pydantic, which a start can do without

            raise ConfigError(
                f"the panpan home {chosen!r} cannot be used: the link {shown(lost)} leads nowhere; mend or remove it"
            )
        return place.resolve()
    except (OSError, RuntimeError, ValueError) as exc:
        raise ConfigError(f"the panpan home {chosen!r} cannot be used ({exc}); set PANPAN_HOME to a folder") from exc


def snapshots_folder(home: Path, root: Path) -> Path:
    """Return where the snapshots of a folder of the workspace are kept; both paths are canonical."""
    return home / PROJECTS_FOLDER / project_slug(root) / "snapshots"


def find_project_root(cwd: Path) -> Path:
    """Return the canonical folder of the project around `cwd`: the nearest upwards that git keeps, else `cwd` itself.

    A `.git` file counts like a folder, since work trees and submodules have one. git itself is not asked: it costs a
    process, may be missing, and obeys what the repository configures. A repository of another user counts only where
    `cwd` is his, too, as with git's own `safe.directory`.

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
    """Return True if git keeps the folder; what somebody else put above it, as into /tmp, does not count."""
    try:
        return (folder / ".git").stat().st_uid in owners
    except OSError:  # missing, or a folder above that may not be looked into
        return False


def project_slug(project_root: Path) -> str:
    """Return a file name for the project: the end of its path to be read, and a digest so that no two share one.

    It starts with a letter or digit, since commands take a name that starts with a dash for an option.
    """
    path = str(project_root)
    readable = re.sub(r"[^A-Za-z0-9._]+", "-", path)[-_READABLE_CHARS:].strip("-._")
    digest = blake2b(path.encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()
    return f"{readable}-{digest}" if readable else digest
