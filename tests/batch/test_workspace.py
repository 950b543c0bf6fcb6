"""Each attempt gets files of its own, whole after any crash, and the user's repository stays as it is."""

import os
import shutil
import stat
from pathlib import Path

import anyio
import pytest

from panpan.batch.attempts.workspace import make_workspace, remove_workspace, working_folder
from panpan.batch.store.records import AttemptState
from panpan.errors import ConfigError, PanpanError, ToolError
from tests.batch.attempted_project import FILES, AttemptedProject, begun
from tests.capabilities.subagents.worktrees.copied_project import state_of
from tests.system.backends import on_both_backends, run_on
from tests.system.git.hostile_repository import HostileRepository, git

COMMITTED = {name: (0o644, content) for name, content in FILES.items()}


@pytest.fixture
def project(tmp_path: Path) -> AttemptedProject:
    return AttemptedProject(tmp_path)


def worktrees(project: AttemptedProject) -> list[str]:
    """Return the worktrees of the user's repository, as git lists them, without the first."""
    lines = git(project.folder, "worktree", "list", "--porcelain").splitlines()
    return [line.removeprefix("worktree ") for line in lines if line.startswith("worktree ")][1:]


@on_both_backends
def test_worktree_holds_the_commit_and_not_the_users_changes(project: AttemptedProject, backend: str) -> None:
    project.put("src/a.py", b"changed\n")
    project.put("new.txt", b"new\n")
    before = project.repository_state()

    async def main() -> None:
        made = await begun(project)
        assert state_of(made.top) == COMMITTED
        assert git(made.top, "status", "--porcelain") == ""
        assert git(made.top, "rev-parse", "--abbrev-ref", "HEAD").strip() == "HEAD"
        assert working_folder(made.frozen, made.folder) == made.top
        assert git(project.folder, "status", "--porcelain").split() == ["M", "src/a.py", "??", "new.txt"]

    run_on(backend, main)
    now = {name: data for name, data in project.repository_state().items() if not name.startswith("worktrees/")}
    assert now.keys() == before.keys()
    assert {name for name in now if now[name] != before[name]} <= {"index"}  # the test's own `git status` refreshes it


async def test_worktree_is_of_the_frozen_commit(project: AttemptedProject) -> None:
    first = git(project.folder, "rev-parse", "HEAD").strip()
    project.put("src/a.py", b"second\n")
    git(project.folder, "commit", "-qam", "second")
    attempt = project.attempt()
    await make_workspace(project.frozen(commit=first), attempt)
    assert (attempt.workspace / "src/a.py").read_bytes() == FILES["src/a.py"]


async def test_worktree_of_a_subfolder_is_worked_in_there(project: AttemptedProject) -> None:
    frozen, attempt = project.frozen("src"), project.attempt()
    await make_workspace(frozen, attempt)
    assert working_folder(frozen, attempt) == attempt.workspace / "src"
    assert (attempt.workspace / "README.md").exists()


async def test_worktree_without_the_subfolder_is_refused(project: AttemptedProject) -> None:
    project.put("other/file", b"not committed")
    with pytest.raises(ConfigError, match="has no folder other; commit it first"):
        await make_workspace(project.frozen("other"), project.attempt())


async def test_worktree_of_a_sparse_project_is_sparse(project: AttemptedProject) -> None:
    project.put("deep/file", b"x")
    git(project.folder, "add", ".")
    git(project.folder, "commit", "-qm", "deep")
    git(project.folder, "sparse-checkout", "set", "src")
    made = await begun(project)
    assert (made.top / "src/a.py").exists()
    assert (made.top / "deep").exists() is False
    assert (await made.changes()).files == ()
    made.put("src/a.py", b"changed\n")
    assert (await made.changes()).files == ("src/a.py",)


async def test_worktree_needs_a_repository_with_the_commit(project: AttemptedProject) -> None:
    frozen = project.frozen(commit="0" * 40)
    with pytest.raises(ToolError, match="git could not make a worktree"):
        await make_workspace(frozen, project.attempt())
    shutil.rmtree(project.folder / ".git")
    with pytest.raises(ConfigError, match='set isolation = "copy"'):
        await make_workspace(frozen, project.attempt())


async def test_worktree_runs_nothing_of_the_repository(tmp_path: Path) -> None:
    hostile = HostileRepository(tmp_path / "hostile", tmp_path / "traces")
    (hostile.folder / ".gitattributes").write_text("*.txt filter=evil\n*.bin filter=evil\n")
    git(hostile.folder, "add", ".")
    git(hostile.folder, "commit", "-qm", "attributes")
    for step in ("clean", "smudge"):
        hostile.configure(f"filter.evil.{step}", hostile.helper(step))
    hostile.configure("filter.evil.required", "true")
    hostile.configure("core.fsmonitor", hostile.helper("fsmonitor", "true"))
    for hook in ("post-checkout", "post-index-change", "reference-transaction"):
        hostile.helper_script(hook, hostile.folder / ".git" / "hooks")
    project = AttemptedProject(tmp_path)
    project.folder = hostile.folder
    made = await begun(project)
    made.put("file.txt", b"three\n")
    changes = await made.changes()
    await remove_workspace(made.frozen, made.folder)
    assert (changes.files, hostile.traces) == (("file.txt",), set())
    git(hostile.folder, "worktree", "add", "-q", str(tmp_path / "control"))
    assert {"smudge", "post-checkout"} <= hostile.traces


async def test_many_makers_do_not_disturb_each_other(project: AttemptedProject) -> None:
    frozen = project.frozen()
    async with anyio.create_task_group() as tasks:
        for number in range(1, 7):
            tasks.start_soon(make_workspace, frozen, project.attempt(number))
    tops = [project.attempt(number).workspace for number in range(1, 7)]
    assert [state_of(top) for top in tops] == [COMMITTED] * 6
    assert sorted(worktrees(project)) == sorted(map(str, tops))


async def test_workspace_that_a_kill_left_half_made_is_replaced(project: AttemptedProject) -> None:
    frozen, attempt = project.frozen(), project.attempt()
    entry = project.folder / ".git" / "worktrees" / attempt.workspace.name

    entry.mkdir(parents=True)  # git has just begun
    (entry / "locked").write_text("initializing")
    await make_workspace(frozen, attempt)
    assert state_of(attempt.workspace) == COMMITTED

    (attempt.workspace / "src/a.py").unlink()  # the checkout was cut off
    (attempt.workspace / "src/b.py").write_text("half")
    (attempt.path / "index.lock").write_text("")
    await make_workspace(frozen, attempt)
    assert state_of(attempt.workspace) == COMMITTED

    shutil.rmtree(attempt.workspace)  # removed, and the entry not yet
    await make_workspace(frozen, attempt)
    assert state_of(attempt.workspace) == COMMITTED
    assert worktrees(project) == [str(attempt.workspace)]


async def test_workspace_of_a_begun_attempt_is_never_made_again(project: AttemptedProject) -> None:
    made = await begun(project)
    made.put("src/a.py", b"work\n")
    assert await make_workspace(made.frozen, made.folder) == made.base
    assert (made.top / "src/a.py").read_bytes() == b"work\n"
    shutil.rmtree(made.top)
    with pytest.raises(ToolError, match="is gone; cancel it"):
        await make_workspace(made.frozen, made.folder)


async def test_same_files_have_the_same_content_kept_once(project: AttemptedProject) -> None:
    one = await begun(project, 1)
    objects = one.folder.kept / "objects"
    before = {place for place in objects.rglob("*") if place.is_file()}
    two = await begun(project, 2)
    assert len({place for place in objects.rglob("*") if place.is_file()} - before) <= 1  # the commit of the snapshot
    assert (await two.changes()).files == ()


async def test_removed_workspace_leaves_the_users_worktrees(project: AttemptedProject, tmp_path: Path) -> None:
    git(project.folder, "worktree", "add", "-q", str(tmp_path / "own"))
    made = await begun(project)
    locked = made.put("deep/file", b"").parent
    locked.chmod(0)
    await remove_workspace(made.frozen, made.folder)
    await remove_workspace(made.frozen, made.folder)
    assert not made.top.exists()
    assert worktrees(project) == [str(tmp_path / "own")]


async def test_removing_follows_no_link_that_the_model_left(project: AttemptedProject, tmp_path: Path) -> None:
    made = await begun(project)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    shutil.rmtree(made.top)
    made.top.symlink_to(outside)
    await remove_workspace(made.frozen, made.folder)
    assert (outside / "precious").exists()
    assert not made.top.is_symlink()


async def test_copy_holds_the_folder_as_it_is(project: AttemptedProject) -> None:
    project.put("src/a.py", b"changed\n")
    project.put("new.txt", b"new\n")
    project.put("noise.log", b"ignored\n")
    made = await begun(project, isolation="copy")
    expected = {**COMMITTED, "src/a.py": (0o644, b"changed\n"), "new.txt": (0o644, b"new\n")}
    assert state_of(made.top) == expected
    assert git(made.top, "status", "--porcelain") == ""
    assert git(made.top, "log", "--all", "--format=%an %s").splitlines() == ["panpan base"]
    assert worktrees(project) == []


async def test_copy_keeps_odd_names_links_and_modes(project: AttemptedProject) -> None:
    shutil.rmtree(project.folder / ".git")
    odd = os.fsdecode(b"new\nline \xff")
    project.put(odd, b"odd")
    project.put("run.sh", b"#!/bin/sh\n").chmod(0o750)
    (project.folder / "link").symlink_to("../nowhere")
    os.mkfifo(project.folder / "pipe")
    made = await begun(project, isolation="copy")
    assert (made.top / odd).read_bytes() == b"odd"
    assert stat.S_IMODE((made.top / "run.sh").stat().st_mode) == 0o750
    assert (made.top / "link").readlink() == Path("../nowhere")
    changes = await made.changes()
    assert changes.files == ()
    assert changes.left_out == ("pipe: it is not in the workspace: it is not a regular file",)


@pytest.mark.parametrize("campaign", ["project/runs/campaign", "project"])
async def test_copy_is_without_the_campaign_in_it(tmp_path: Path, campaign: str) -> None:
    project = AttemptedProject(tmp_path, campaign=campaign)
    (project.campaign.path / "campaign.toml").write_text("")
    (project.campaign.path / "tasks.jsonl").write_text("")
    await begun(project, 1, isolation="copy")
    made = await begun(project, 2, isolation="copy")
    assert state_of(made.top) == COMMITTED


async def test_copy_says_that_a_large_file_is_missing(project: AttemptedProject) -> None:
    with project.put("data.bin", b"").open("wb") as file:
        file.truncate(200_000_001)  # without content on the disk
    made = await begun(project, isolation="copy")
    assert not (made.top / "data.bin").exists()
    assert (await made.changes()).left_out == ("data.bin: it is not in the workspace: it is larger than 200 MB",)


async def test_copy_of_too_much_is_refused_before_it_begins(project: AttemptedProject) -> None:
    for number in range(101):
        with project.put(f"data/{number}", b"").open("wb") as file:
            file.truncate(199_000_000)
    with pytest.raises(ToolError, match=r"holds more than 20,000 MB, too much for a copy; make it smaller"):
        await begun(project, isolation="copy")
    assert not any(project.attempt().workspace.iterdir())


async def test_copy_that_a_kill_left_half_made_is_replaced(project: AttemptedProject) -> None:
    frozen, attempt = project.frozen(isolation="copy"), project.attempt()
    attempt.workspace.mkdir()
    (attempt.workspace / "src").write_text("a file in place of a folder")
    git(attempt.workspace, "init", "-q")
    attempt.write_state(AttemptState(session_id="session"))
    await make_workspace(frozen, attempt)
    assert state_of(attempt.workspace) == COMMITTED


async def test_project_that_is_not_here_is_named(project: AttemptedProject) -> None:
    frozen = project.frozen()
    shutil.rmtree(project.folder)
    with pytest.raises(PanpanError, match="is not on this machine; mount its folder"):
        await make_workspace(frozen, project.attempt())
