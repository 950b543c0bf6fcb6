"""Ordinary inspection does not ask: lines as people and models write them, in a project with what projects have."""

import subprocess
from pathlib import Path

import pytest

from panpan.types.permission import Allow
from tests.fakes.every_tool import FolderGate
from tests.needed_programs import need
from tests.permissions.folder import Project, bash

LINES = Path(__file__).with_name("inspection_lines.txt").read_text().splitlines()


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> FolderGate:
    need("git")
    project = Project(tmp_path_factory.mktemp("project"))
    (project.root / ".git").rmdir()
    subprocess.run(["git", "init", "-q", str(project.root)], check=True)
    for name in ("src/a.py", "src/b/c.py", "README.md", "pyproject.toml", "package.json", ".venv/lib/x.py", ".env"):
        (project.root / name).parent.mkdir(parents=True, exist_ok=True)
        (project.root / name).write_text("foo\n")
    (project.root / ".gitignore").write_text("*.log\n!keep.log\n!.env.example\n")
    subprocess.run(["git", "-C", str(project.root), "add", "--", "src", "README.md", ".gitignore"], check=True)
    (project.root / ".venv/bin").mkdir()
    (project.root / ".venv/bin/python").symlink_to("/usr/bin/env")  # outside, as in every virtual environment
    return project.gate()


@pytest.mark.parametrize("line", LINES)
def test_ordinary_inspection_runs_unasked_in_plan_mode(gate: FolderGate, line: str) -> None:
    found = bash(gate, line, "plan")

    assert isinstance(found, Allow), found.reason.text
