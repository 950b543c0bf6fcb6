"""A project on disk, and what is taken of it."""

import subprocess
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path

from panpan.capabilities.project_context.collect import ContextPlaces, ProjectContext, take_project_context
from panpan.config.locations import find_project_root
from panpan.permissions.gate import PermissionGate
from tests.needed_programs import need


class ProjectFolder:
    """A home and a git repository in it."""

    def __init__(self, folder: Path, name: str = "project") -> None:
        self.home = folder.resolve() / "home"
        self.root = self.home / name
        self.root.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")

    def write(self, path: str, text: str) -> Path:
        """Write a file of the project, or of the home where the path begins with `~/`."""
        file = self.home / path[2:] if path.startswith("~/") else self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def git(self, *args: str) -> None:
        need("git")
        config = ("-c", "user.name=me", "-c", "user.email=me@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *config, *args], cwd=self.root, check=True, capture_output=True)

    async def context(
        self,
        cwd: str = ".",
        *,
        gate: PermissionGate | None = None,
    ) -> ProjectContext:
        folder = self.root / cwd
        folder.mkdir(parents=True, exist_ok=True)
        places = ContextPlaces(folder, find_project_root(folder), self.home / ".panpan", self.home)
        if gate is not None:
            places = replace(places, withholds=partial(gate.hides_from_context, root=self.root))
        return await take_project_context(places, today=date(2026, 11, 21))
