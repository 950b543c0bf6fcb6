"""Files that git tracks, handed to programs: what is untracked beside them is no matter, and what leads away is."""

import subprocess
from pathlib import Path

import pytest

from panpan.permissions.reach.folder_walk import TrackedFiles, why_unclear
from panpan.types.permission import Allow, Ask
from tests.fakes.every_tool import FolderGate
from tests.needed_programs import need
from tests.permissions.folder import Project, bash


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True, timeout=30)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A repository of two files, and beside these what would be asked about if it were shown."""
    need("git")
    project = Project(tmp_path)
    (project.root / ".git").rmdir()
    git(tmp_path, "init", "-q", str(project.root))
    (project.root / "src").mkdir()
    for name in ("a.py", "src/b.py", ".env", "odd name"):
        (project.root / name).write_text("x")
    (project.root / "src/out").symlink_to("/etc/hosts")
    git(project.root, "add", "a.py", "src/b.py")
    return project


@pytest.fixture
def gate(project: Project) -> FolderGate:
    return project.gate()


LINES = ["git ls-files | xargs cat", "git ls-files | xargs wc -l", "cd src && git ls-files | xargs head -3"]


@pytest.mark.parametrize("line", LINES)
def test_untracked_files_do_not_matter_to_git_ls_files(gate: FolderGate, line: str) -> None:
    assert isinstance(bash(gate, line, "plan"), Allow), line
    assert not isinstance(bash(gate, line.replace("git ls-files", "find ."), "plan"), Allow)


@pytest.mark.parametrize("name", [".env", "odd name", "src/out", "\u00e9.py"])
def test_tracked_files_are_checked_like_any_file(project: Project, gate: FolderGate, name: str) -> None:
    if not (project.root / name).is_symlink():
        (project.root / name).write_text("x")
    git(project.root, "add", "-f", name)

    assert isinstance(bash(gate, "git ls-files | xargs cat"), Ask)


def test_accented_name_is_itself_in_nul_separated_output(project: Project, gate: FolderGate) -> None:
    (project.root / "\u00e9.py").write_text("x")
    git(project.root, "add", "\u00e9.py")

    assert isinstance(bash(gate, "git ls-files -z | xargs -0 cat"), Allow)


def test_folder_that_became_a_link_leads_away(project: Project, gate: FolderGate) -> None:
    (project.root / "src/b.py").rename(project.root / "b.py")
    (project.root / "src/out").unlink()
    (project.root / "src").rmdir()
    (project.root / "src").symlink_to("/etc")

    assert isinstance(bash(gate, "git ls-files | xargs cat"), Ask)


@pytest.mark.parametrize("name", ["../x.py", "/etc/x.py", "src/../../x"])
def test_index_with_names_from_elsewhere_is_not_believed(project: Project, name: str) -> None:
    index = project.root / ".git/index"
    longer = name.ljust(len("src/b.py"), "y")[: len("src/b.py")] if len(name) <= len("src/b.py") else name
    content = index.read_bytes()
    if len(longer) == len("src/b.py"):
        index.write_bytes(content.replace(b"src/b.py", longer.encode()))
        assert "is elsewhere" in str(why_unclear([project.root]))
        assert isinstance(bash(project.gate(), "git ls-files | xargs cat"), Ask)
    else:
        index.write_bytes(content.replace(b"src/b.py", longer.encode()))  # and so no length fits any more
        assert "cannot tell which files" in str(why_unclear([project.root]))


def test_unreadable_index_asks_and_everything_counts(project: Project, gate: FolderGate) -> None:
    git(project.root, "update-index", "--index-version", "4")

    assert isinstance(bash(gate, "git ls-files | xargs cat"), Ask)
    assert TrackedFiles(project.root).may_lead_to(str(project.root / "untracked"))


def test_inner_repository_makes_tracked_names_unknown(project: Project, gate: FolderGate) -> None:
    inner = project.root / "src/inner"
    inner.mkdir()
    (inner / ".git").write_text("gitdir: ../../.git/modules/inner\n")
    (inner / ".env").write_text("x")

    assert isinstance(bash(gate, "cd src/inner && git ls-files | xargs cat"), Ask)
    assert TrackedFiles(inner).names is None


def test_rule_that_denies_a_tracked_file_holds(project: Project) -> None:
    gate = project.gate('[permission]\ndeny = ["Read(/src/**)"]\n')

    assert not isinstance(bash(gate, "git ls-files | xargs cat"), Allow)
    assert isinstance(bash(project.gate('[permission]\ndeny = ["Read(/other/**)"]\n'), LINES[0]), Allow)
