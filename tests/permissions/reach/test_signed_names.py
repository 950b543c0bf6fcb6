"""Names that begin like flags: where a program would be given one bare, the line is asked about."""

import subprocess
from pathlib import Path

import pytest

from panpan.types.permission import Allow, Ask
from tests.fakes.every_tool import FolderGate
from tests.needed_programs import need
from tests.permissions.folder import Project, bash

BARE = [
    "cat *", "grep foo *", "ls *", "du -s *", "wc -l ?*", "head [!a]*", "cut -c1 *", "cd src/.. && cat *", "stat *",
    "git ls-files -z | xargs -0 cat", "git ls-files -z . | xargs -0 -n1 grep foo", "git ls-files | xargs cat",
    "rg --files | xargs wc -l", "ls | xargs cat", "ls -A | xargs md5sum", "grep -rl foo | xargs cat",
    "ls src/../* | xargs cat",
]  # fmt: skip
LED = [
    "cat ./*", "grep foo -- *", "cat -- *", "ls src/*", "cat src/* a.py", "cd src && cat *", "cat [!+@-]*",
    "find . -print0 | xargs -0 cat", "find . | xargs cat", "find . -exec cat {} +", "echo *", "ls src | wc -l",
    "basename *", "cd src && git ls-files -z | xargs -0 cat",
]  # fmt: skip


def gate_with(tmp_path: Path, *names: str) -> FolderGate:
    """Return the gate of a repository that holds and tracks `a.py`, `src/b.py` and files of these names."""
    need("git")
    project = Project(tmp_path)
    (project.root / ".git").rmdir()
    for name in ("a.py", "src/b.py", *names):
        (project.root / name).parent.mkdir(parents=True, exist_ok=True)
        (project.root / name).write_text("foo\n")
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", "-C", str(project.root), *words], check=True, capture_output=True)
    return project.gate()


@pytest.mark.parametrize("name", ["-R", "-f", "--files0-from=a.py", "@a.py", "+5f", "-x/y"])
def test_bare_flag_like_names_are_asked_about(tmp_path: Path, name: str) -> None:
    gate = gate_with(tmp_path, name)

    for line in BARE:
        decision = bash(gate, line, "plan")
        assert isinstance(decision, Ask), line
        assert name.partition("/")[0] in decision.reason.text
    for line in LED:
        assert isinstance(bash(gate, line, "plan"), Allow), line


def test_deeper_flag_like_names_are_no_flags(tmp_path: Path) -> None:
    gate = gate_with(tmp_path, "src/-R", "node_modules/@types/x.ts", "src/+page.svelte")

    for line in BARE:
        expected = Ask if line == "ls src/../* | xargs cat" else Allow
        assert isinstance(bash(gate, line, "plan"), expected), line
    for line in ("ls src | xargs cat", "cd src && cat *", "cd src && git ls-files -z | xargs -0 cat"):
        assert isinstance(bash(gate, line, "plan"), Ask), line


def test_deleted_tracked_names_count(tmp_path: Path) -> None:
    gate = gate_with(tmp_path, "-f", "src/-R")
    (tmp_path / "project/-f").unlink()
    (tmp_path / "project/src/-R").unlink()

    for line in ("git ls-files -z | xargs -0 cat", "git ls-files -zd | xargs -0 cat", "git ls-files | xargs cat"):
        assert isinstance(bash(gate, line, "plan"), Ask), line
    assert isinstance(bash(gate, "cd src && git ls-files -z | xargs -0 cat", "plan"), Ask)
    assert isinstance(bash(gate, "find . | xargs cat", "plan"), Allow)
