"""Folders of skills and plug-ins that tools may read wherever they are."""

from pathlib import Path

import pytest

from panpan.config.places import Places
from panpan.config.project_files import read_project_files
from panpan.config.trust import ProjectTrust, Trusted, Untrusted


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    (tmp_path / "user/.panpan/skills").mkdir(parents=True)
    return tmp_path / "user/.panpan"


def test_skills_of_the_user_may_be_read(home: Path) -> None:
    (home.parent / ".claude/skills").mkdir(parents=True)

    assert Places(home).readable_folders == [home.parent / ".claude/skills", home / "skills"]


@pytest.mark.parametrize("target", [".", "..", "../..", "/", "../.panpan/keys"])
def test_folder_that_leads_to_more_than_skills_is_not_opened(home: Path, target: str) -> None:
    (home / "keys").mkdir()
    (home / "skills").rmdir()
    (home / "skills").symlink_to(target)
    (home.parent / ".agents").mkdir()
    (home.parent / ".agents/skills").symlink_to(home.parent)

    assert Places(home).readable_folders == []


def test_skills_of_a_project_may_be_read_once_it_is_trusted(home: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".claude/skills/a").mkdir(parents=True)
    (project / ".claude/skills/a/SKILL.md").write_text("x")
    (home / "skills").rmdir()
    files = read_project_files(project, home)

    assert Places(home, ProjectTrust(files, Trusted())).readable_folders == [project / ".claude/skills"]
    assert Places(home, ProjectTrust(files, Untrusted())).readable_folders == []
