"""Rules for paths, against git's own ways of naming a file: from the root of the repository, and as it was."""

from pathlib import Path

import pytest

from panpan.types.permission import Allow, Ask, Deny
from tests.fakes.every_tool import FolderGate
from tests.permissions.folder import Project, bash

RULES = """[permission]
deny = ["Read(/secret/**)", "Read(.env)"]
"""


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> FolderGate:
    project = Project(tmp_path_factory.mktemp("gate"))
    for name in ("secret/x", "src/c.py", "a.txt", "sub/secret.py"):
        (project.root / name).parent.mkdir(parents=True, exist_ok=True)
        (project.root / name).write_text("x")
    return project.gate(RULES)


@pytest.mark.parametrize(
    "line",
    [
        "git show HEAD:secret/x", "cd src && git show HEAD:secret/x", "git -C src show HEAD:secret/x",
        "git show :secret/x", "git show :0:secret/x", "cd src && git show :0:secret/x", "git cat-file blob :secret/x",
        "cd src && git cat-file -p HEAD:secret/x", "git diff :.env a.txt", "git log -L1,2:.env", "git log -L :f:.env",
        "git log HEAD -L1,2:.env", "cd src && git show HEAD:../secret/x", "git diff HEAD:secret/x HEAD:a.txt",
        "git show 'HEAD@{12:00}:secret/x'", "cd secret && git show HEAD:./x", "git show ':(top)secret/x'",
        "cd src && git grep x HEAD:secret",
    ],
)  # fmt: skip
def test_recorded_file_that_may_not_be_read_is_not_shown(gate: FolderGate, line: str) -> None:
    assert isinstance(bash(gate, line), Deny), line


@pytest.mark.parametrize(
    "line", ["cd src && git log -p", "git -C src show", "cd src && git grep x HEAD", "git log --binary",
             "git log --patch-with-stat", "git diff-tree --binary HEAD", "git log --check", "git cat-file -p HEAD:",
             f"git cat-file blob {'a' * 40}", f"git cat-file tree {'a' * 40}", "git status -v", "git status --verbose"],
)  # fmt: skip
def test_repository_search_asks_if_it_holds_a_denied_file(gate: FolderGate, line: str) -> None:
    assert isinstance(bash(gate, line), Ask), line


@pytest.mark.parametrize(
    "line", ["cd src && git show HEAD:src/c.py", "git show :a.txt", "git log -L1,2:src/c.py", "git log --oneline",
             "git log --stat", "git status -sb", "git cat-file -t HEAD"],
)  # fmt: skip
def test_other_recorded_files_and_names_are_shown(tmp_path: Path, line: str) -> None:
    project = Project(tmp_path)
    (project.root / "src").mkdir()
    gate = project.gate(RULES)

    assert isinstance(bash(gate, line), Allow), line


def test_recorded_path_starts_at_the_top_or_a_dot_at_the_folder(tmp_path: Path) -> None:
    project = Project(tmp_path)
    (project.root / "src").mkdir()
    gate = project.gate('[permission]\ndeny = ["Read(/src/x)"]\n')

    assert isinstance(bash(gate, "cd src && git show HEAD:x"), Allow)
    assert isinstance(bash(gate, "cd src && git show HEAD:./x"), Deny)
    assert isinstance(bash(gate, "cd src && git show HEAD:src/x"), Deny)
    assert isinstance(bash(gate, "cd src && git diff :x"), Deny)  # which may be a path from the folder on
    assert not isinstance(bash(gate, "if true; then git show HEAD:src/x; fi"), Allow)


@pytest.mark.parametrize("line", ["git show HEAD:.env", "cd src && git show :.env", "git log -L1,2:.env"])
def test_recorded_secret_file_is_not_shown_unasked(tmp_path: Path, line: str) -> None:
    project = Project(tmp_path)
    (project.root / "src").mkdir()

    assert not isinstance(bash(project.gate(), line, "plan"), Allow), line


@pytest.mark.parametrize("line", ["cd n && git show HEAD:s.txt", "git -C n show HEAD:s.txt", "cd n && git log -p"])
def test_other_repository_asks_and_is_named(line: str, tmp_path: Path) -> None:
    project = Project(tmp_path)
    other = project.root.parent / "other" / ".git"
    other.mkdir(parents=True)
    (project.root / "n").mkdir()
    (project.root / "n" / ".git").write_text(f"gitdir: {other}\n")

    asked = bash(project.gate(), line, "plan")
    allowed = bash(project.gate('[permission]\nallow = ["Read(//' + str(other).lstrip("/") + '/**)"]\n'), line, "plan")
    denied = bash(project.gate('[permission]\ndeny = ["Read(//' + str(other).lstrip("/") + '/**)"]\n'), line, "plan")

    assert isinstance(asked, Ask)
    assert str(other) in str(asked)
    assert isinstance(allowed, Allow)
    assert isinstance(denied, Deny)
