"""Forms of git that somebody else wrote, with the variables that make them harmless."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from panpan.errors import ToolError
from panpan.system.git.git import harmless_git_variables
from panpan.system.processes.process import Captured, capture
from tests.shell_analysis.table_rows import all_rows
from tests.system.git.hostile_repository import HostileRepository, git
from tests.system.git.test_git import HOSTILE, tree_of

LINES = (
    "git status", "git status -v -v", "git status --short src", "git diff", "git diff --cached", "git diff --stat HEAD",
    "git diff -- file.txt", "git log -p -m -1", "git log --format='%H %s %G?' -2", "git log -S one", "git show HEAD",
    "git show -m HEAD", "git show HEAD:file.txt", "git blame file.txt", "git grep one", "git branch -vv",
    "git ls-files -m -o --exclude-standard", "git describe --always", "git cat-file -p HEAD:file.txt",
    "git shortlog -s HEAD", "git stash list", "git stash show -p", "git reflog", "git tag -n3 -l", "git remote -v",
    "git rev-parse HEAD", "git for-each-ref", "git config --get user.name", "git worktree list", "git count-objects -v",
    "git ls-tree -r HEAD", "git check-ignore -v file.txt", "git log --stat --graph", "git diff --word-diff HEAD",
)  # fmt: skip


OF_THE_TABLE = [f"{name} {words}" for name, row in all_rows().items() if name.startswith("git ") for words in row.match]


@pytest.fixture
def repository(tmp_path: Path) -> HostileRepository:
    return HostileRepository(tmp_path / "repository", tmp_path / "traces")


async def run(line: str, folder: Path) -> Captured:
    variables = await harmless_git_variables([folder])
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), **variables}
    return await capture(["bash", "-c", line], cwd=folder, env=environment, timeout_s=20)


@pytest.mark.parametrize("make_hostile", HOSTILE.values(), ids=HOSTILE.keys())
async def test_git_commands_run_no_helper_and_change_nothing(
    make_hostile: Callable[[HostileRepository], None], repository: HostileRepository
) -> None:
    make_hostile(repository)
    os.utime(repository.folder / "picture.bin", (1, 1))
    before = tree_of(repository.folder)

    await run("\n".join(LINES), repository.folder)

    assert repository.traces == set()
    assert tree_of(repository.folder) == before


async def test_git_lines_of_the_table_run_no_helper(repository: HostileRepository) -> None:
    for name in (
        "hostile_submodule", "fsmonitor", "filter_process", "pager", "external_diff", "diff_driver", "text_conversion",
        "hooks", "configured_hook", "other_programs", "signature_program", "alias",
    ):  # fmt: skip
        HOSTILE[name](repository)
    before, making = tree_of(repository.folder), repository.traces  # git ran hooks as it was made

    await run("\n".join(OF_THE_TABLE), repository.folder)

    assert repository.traces == making
    assert tree_of(repository.folder) == before


@pytest.mark.parametrize("value", ["!touch ../traces/alias #", "-c core.pager=x status"])
async def test_alias_never_replaces_a_command_that_git_lacks(repository: HostileRepository, value: str) -> None:
    """Newer gits let aliases take the place of old commands, such as whatchanged, and older ones lack new commands."""
    repository.configure("alias.last-modified-x", value)
    repository.configure("alias.Odd.name", value)

    ran = [await run(f"git {name}", repository.folder) for name in ("last-modified-x", "odd.name", "Odd.name")]

    assert all(one.exit_code != 0 and not one.stdout for one in ran)
    assert repository.traces == set()


async def test_submodule_listed_only_by_the_index_is_not_asked(repository: HostileRepository) -> None:
    HOSTILE["hostile_submodule"](repository)
    git(repository.folder, "config", "--unset", "submodule.inner.ignore")
    (repository.folder / ".gitmodules").unlink()

    await run("git status", repository.folder)
    await run("git diff", repository.folder)

    assert repository.traces == set()


async def test_diffs_are_shown_despite_a_diff_driver(repository: HostileRepository) -> None:
    HOSTILE["diff_driver"](repository)

    shown = await run("git diff file.txt", repository.folder)

    assert shown.exit_code == 0
    assert b"-one\n+two\n" in shown.stdout


async def test_diffs_are_gits_own_by_default(repository: HostileRepository) -> None:
    shown = await run("git diff file.txt", repository.folder)

    assert shown.stdout.startswith(b"diff --git a/file.txt b/file.txt\n")


async def test_repository_with_files_around_it_is_not_asked(repository: HostileRepository, tmp_path: Path) -> None:
    repository.configure("core.worktree", str(tmp_path))

    with pytest.raises(ToolError, match="says that its files are in"):
        await harmless_git_variables([repository.folder])


async def test_worktrees_and_folders_within_may_be_asked(repository: HostileRepository, tmp_path: Path) -> None:
    git(repository.folder, "worktree", "add", "-q", str(tmp_path / "second"))
    (tmp_path / "second" / "sub").mkdir()

    for folder in (tmp_path / "second", tmp_path / "second" / "sub", repository.folder):
        assert (await run("git status", folder)).exit_code == 0


async def test_git_variables_are_harmless_outside_a_repository(tmp_path: Path) -> None:
    assert await harmless_git_variables([tmp_path, tmp_path / "missing"])
