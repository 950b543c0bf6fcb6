"""An entry of a worktree goes with its folder, and no other one does."""

from pathlib import Path

import pytest

from panpan.system.git.git_places import common_folder
from panpan.system.git.worktrees import forget_worktree
from tests.system.git.hostile_repository import git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    top = (tmp_path / "repository").resolve()
    top.mkdir()
    git(top, "init", "-q", "-b", "main")
    git(top, "commit", "-q", "--allow-empty", "-m", "first")
    return top


def entry(repository: Path, name: str, gitdir: str | None) -> Path:
    """Make the entry of a worktree, as git has it; without `gitdir`, of a git that was interrupted."""
    made = repository / ".git" / "worktrees" / name
    made.mkdir(parents=True)
    if gitdir is not None:
        (made / "gitdir").write_text(f"{gitdir}\n")
    return made


def test_forgotten_worktree_leaves_others_of_like_names(repository: Path, tmp_path: Path) -> None:
    gone = tmp_path.resolve() / "a" / "work-1"
    own = entry(repository, "work-12", f"{gone}/.git")  # git added a number
    others = [
        entry(repository, "work-1", f"{tmp_path}/b/work-1/.git"),
        entry(repository, "work-10", f"{tmp_path}/a/work-10/.git"),
        entry(repository, "work-1x", f"{gone}/.git"),
    ]
    forget_worktree(common_folder(repository), gone)
    assert not own.exists()
    assert all(other.exists() for other in others)


def test_forgotten_worktree_may_be_named_by_a_relative_path(repository: Path, tmp_path: Path) -> None:
    gone = tmp_path.resolve() / "work"
    own = entry(repository, "work", "../../../../work/.git")
    forget_worktree(common_folder(repository), gone)
    assert not own.exists()


def test_half_made_entry_is_forgotten_only_by_its_own_name(repository: Path, tmp_path: Path) -> None:
    own, other = entry(repository, "work", None), entry(repository, "work2", None)
    forget_worktree(common_folder(repository), tmp_path.resolve() / "work")
    assert (own.exists(), other.exists()) == (False, True)


def test_entry_that_is_a_link_is_left_alone(repository: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (repository / ".git" / "worktrees").mkdir()
    (repository / ".git" / "worktrees" / "work").symlink_to(outside)
    forget_worktree(common_folder(repository), tmp_path.resolve() / "work")
    assert outside.is_dir()


def test_common_folder_is_that_of_all_worktrees(repository: Path, tmp_path: Path) -> None:
    git(repository, "worktree", "add", "-q", "--detach", str(tmp_path / "work"))
    assert common_folder(tmp_path / "work") == common_folder(repository) == repository / ".git"
