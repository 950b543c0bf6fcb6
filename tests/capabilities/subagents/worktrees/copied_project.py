"""A git repository of the user's, and the worktrees that panpan makes of it; agents are what a test does to files."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from panpan.capabilities.subagents.worktrees.merging import WorktreeMerges
from panpan.capabilities.subagents.worktrees.worktree import Worktree
from panpan.capabilities.subagents.worktrees.worktrees import Worktrees
from tests.system.git.hostile_repository import git

State = Mapping[str, tuple[int | None, bytes]]
"""Each file and link of a folder: permission bits, None for a link; content or target."""

AGENT = "0a1b2c3d"


class CopiedProject:
    """A folder with one commit, and a panpan home beside it."""

    def __init__(self, base: Path, files: Mapping[str, bytes]) -> None:
        self.folder = (base / "project").resolve()
        self.home = base / "home"
        self.folder.mkdir()
        self.home.mkdir()
        git(self.folder, "init", "-q", "-b", "main")
        for name, content in files.items():
            self.put(name, content)
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-q", "--allow-empty", "-m", "first")
        self.busy: set[str] = set()
        self.worktrees = self.opened()
        self.merges = WorktreeMerges(self.worktrees, self.busy.__contains__)

    def opened(self, root: Path | None = None) -> Worktrees:
        """Return the worktrees as another session of the project has them."""
        return Worktrees(root or self.folder, self.home / "worktrees", self.home / "kept")

    def put(self, name: str, content: bytes, folder: Path | None = None) -> Path:
        """Write a file, as the user or, in its worktree, an agent does."""
        place = (folder or self.folder) / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        return place

    def repository_state(self) -> Mapping[str, bytes]:
        """Return all that is in the user's `.git` but objects."""
        top = self.folder / ".git"
        files = (place for place in sorted(top.rglob("*")) if place.is_file())
        return {str(place.relative_to(top)): place.read_bytes() for place in files if "objects" not in place.parts}

    async def merged(self, worktree: Worktree) -> None:
        """Merge as the tool does after somebody has looked."""
        await self.worktrees.changes(worktree)
        await self.merges.merge(worktree.agent_id)


def state_of(folder: Path) -> State:
    """Return what is in a folder, but for git's own."""
    found = {}
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        for name in names + [name for name in folders if (Path(here) / name).is_symlink()]:
            place = Path(here) / name
            if name == ".git":
                continue
            status = place.lstat()
            if stat.S_ISLNK(status.st_mode):
                found[str(place.relative_to(folder))] = (None, os.fsencode(place.readlink()))
            else:
                found[str(place.relative_to(folder))] = (stat.S_IMODE(status.st_mode), place.read_bytes())
    return found
