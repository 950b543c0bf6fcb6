"""A panpan home and a project in temporary folders, and a short way to write settings there."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from panpan.cli_kit.options import FLAGS
from panpan.config.locations import Locations
from panpan.config.project_files import read_project_files
from panpan.config.sources import Loaded, Names, load_settings
from panpan.config.trust import TrustStore


@dataclass(frozen=True)
class Place:
    """A panpan home and a project with settings files."""

    locations: Locations

    def user(self, text: str) -> Path:
        return self._write(self.locations.user_settings, text)

    def project(self, text: str) -> Path:
        return self._write(self.locations.project_settings, text)

    def local(self, text: str) -> Path:
        return self._write(self.locations.local_settings, text)

    def trust(self) -> None:
        """Trust the project as it is now."""
        files = read_project_files(self.locations.project_root, self.locations.home)
        TrustStore(self.locations.home).keep(files, is_trusted=True)

    def load(self, env: Mapping[str, str] | None = None, **flags: Any) -> Loaded:
        overrides = {key.replace("__", "."): value for key, value in flags.items()}
        as_typed = {"names": Names(FLAGS)}
        return load_settings(self.locations.project_root, env or {}, overrides | as_typed, self.locations)

    @staticmethod
    def _write(path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
        path.chmod(0o600)
        return path


@pytest.fixture
def place(tmp_path: Path) -> Place:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    return Place(Locations.find(project, {"PANPAN_HOME": str(tmp_path / "home")}))


@pytest.fixture
def lines() -> Callable[[str], str]:
    return lambda text: "\n".join(line.strip() for line in text.splitlines())
