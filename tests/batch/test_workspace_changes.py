"""The changes of an attempt are those of its files, whatever the model did to git, and nothing of it runs."""

import os
import shutil
from pathlib import Path

import pytest

from panpan.batch.attempts.workspace import make_workspace
from panpan.batch.store.records import Changes
from panpan.errors import ToolError
from tests.batch.attempted_project import FILES, Attempted, AttemptedProject, begun
from tests.capabilities.subagents.worktrees.copied_project import state_of
from tests.system.backends import on_both_backends, run_on
from tests.system.git.hostile_repository import HostileRepository, git


@pytest.fixture
def project(tmp_path: Path) -> AttemptedProject:
    return AttemptedProject(tmp_path)


def without_git(top: Path) -> None:
    """Remove the `.git` of a workspace, whatever it is."""
    place = top / ".git"
    shutil.rmtree(place) if place.is_dir() else place.unlink()


def told(changes: Changes) -> Changes:
    """Return all but the id of the snapshot, which names the second in which it was taken."""
    return changes.model_copy(update={"snapshot": ""})


def applied(project: AttemptedProject, made: Attempted, target: Path) -> Path:
    """Return a clone of the project with the attempt's patch, as another person makes it."""
    git(project.folder, "clone", "-q", str(project.folder), str(target))
    git(target, "apply", "--binary", str(made.folder.patch))
    return target


@on_both_backends
@pytest.mark.parametrize("isolation", ["worktree", "copy"])
def test_changes_are_counted_and_applied_elsewhere(
    project: AttemptedProject, tmp_path: Path, isolation: str, backend: str
) -> None:
    async def main() -> None:
        made = await begun(project, isolation=isolation)
        made.put("src/a.py", b"one\nTWO\nthree\nfour\n")
        made.put("new/deep/file.txt", b"new\n")
        made.put("data.bin", bytes(range(256)))
        (made.top / "src/b.py").unlink()
        (made.top / "README.md").chmod(0o755)
        made.put("noise.log", b"git ignores it")
        made.put("src/__pycache__/a.pyc", b"python makes it")
        changes = await made.changes("src/**", "*.md")
        assert changes.files == ("README.md", "data.bin", "new/deep/file.txt", "src/a.py", "src/b.py")
        assert (changes.added, changes.removed) == (3, 2)
        assert changes.outside == ("data.bin", "new/deep/file.txt")
        assert changes.left_out == ()
        target = applied(project, made, tmp_path / "clone")
        (made.top / "noise.log").unlink()
        shutil.rmtree(made.top / "src/__pycache__")
        assert state_of(target) == state_of(made.top)
        assert told(await made.changes("src/**", "*.md")) == told(changes)

    run_on(backend, main)


async def test_commits_of_the_model_count_as_well(project: AttemptedProject) -> None:
    made = await begun(project)
    made.put("src/a.py", b"committed\n")
    git(made.top, "commit", "-qam", "mine")
    made.put("src/b.py", b"not\n")
    assert (await made.changes()).files == ("src/a.py", "src/b.py")


async def test_patch_without_changes_is_empty(project: AttemptedProject) -> None:
    made = await begun(project)
    changes = await made.changes("src/**")
    assert told(changes) == Changes()
    assert made.folder.patch.read_bytes() == b""


async def test_patterns_begin_at_the_projects_folder(project: AttemptedProject) -> None:
    frozen, attempt = project.frozen("src"), project.attempt()
    made = Attempted(frozen, attempt, await make_workspace(frozen, attempt))
    made.put("src/a.py", b"")
    made.put("src/deep/c.py", b"")
    made.put("a.py", b"outside of the project")
    assert (await made.changes("/a.py")).outside == ("a.py", "src/deep/c.py")
    assert (await made.changes("a.py", "deep")).outside == ("a.py",)
    assert (await made.changes()).outside == ()


async def test_repository_that_the_model_planted_runs_nothing(project: AttemptedProject, tmp_path: Path) -> None:
    made = await begun(project)
    hostile = HostileRepository(tmp_path / "hostile", tmp_path / "traces")
    for key in ("core.fsmonitor", "filter.evil.clean", "filter.evil.process", "diff.evil.textconv", "diff.external"):
        hostile.configure(key, hostile.helper(key))
    hostile.configure("core.worktree", str(tmp_path))
    for hook in ("post-index-change", "pre-commit", "reference-transaction"):
        hostile.helper_script(hook, hostile.folder / ".git" / "hooks")
    without_git(made.top)
    shutil.copytree(hostile.folder / ".git", made.top / ".git")
    made.put(".gitattributes", b"* filter=evil diff=evil text eol=crlf working-tree-encoding=UTF-16\n")
    made.put("src/a.py", b"changed\n")
    changes = await made.changes()
    assert changes.files == (".gitattributes", "src/a.py")
    assert hostile.traces == set()


@pytest.mark.parametrize("damage", ["missing", "empty file", "leads elsewhere"])
async def test_changes_need_no_git_in_the_workspace(project: AttemptedProject, tmp_path: Path, damage: str) -> None:
    made = await begun(project)
    without_git(made.top)
    if damage != "missing":
        (made.top / ".git").write_text("" if damage == "empty file" else f"gitdir: {tmp_path}/elsewhere\n")
    made.put("src/a.py", b"changed\n")
    assert (await made.changes()).files == ("src/a.py",)


async def test_link_in_place_of_a_folder_is_not_followed(project: AttemptedProject, tmp_path: Path) -> None:
    made = await begun(project)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.py").write_text("secret of somebody else\n")
    shutil.rmtree(made.top / "src")
    (made.top / "src").symlink_to(outside)
    changes = await made.changes()
    assert changes.files == ("src", "src/a.py", "src/b.py")
    assert b"secret" not in made.folder.patch.read_bytes()


async def test_odd_names_are_compared_and_told(project: AttemptedProject, tmp_path: Path) -> None:
    made = await begun(project)
    for name in ("new\nline", '"quoted"', "-dash", "tab\t", "Readme.md", "a -> b", os.fsdecode(b"\xff")):
        made.put(name, b"x\n")
    made.put(".GIT/hooks/pre-commit", b"evil")
    changes = await made.changes()
    assert set(changes.files) == {"new\nline", '"quoted"', "-dash", "tab\t", "Readme.md", "a -> b", "\\xff"}
    assert changes.left_out == (".GIT/hooks/pre-commit: git keeps nothing of this name",)
    assert Changes.model_validate_json(changes.model_dump_json()) == changes
    shutil.rmtree(made.top / ".GIT")
    assert state_of(applied(project, made, tmp_path / "clone")) == state_of(made.top)


async def test_huge_file_is_left_out_and_told(project: AttemptedProject) -> None:
    made = await begun(project)
    with made.put("weights.bin", b"").open("wb") as file:
        file.truncate(20_000_001)  # without content on the disk
    made.put("src/a.py", b"changed\n")
    changes = await made.changes()
    assert changes.files == ("src/a.py",)
    assert changes.left_out == ("weights.bin: it is larger than 20 MB",)


async def test_too_many_bytes_of_new_files_are_left_out(project: AttemptedProject) -> None:
    made = await begun(project)
    for number in range(51):
        with made.put(f"data/{number}", b"").open("wb") as file:
            file.truncate(20_000_000)
    made.put("src/a.py", b"changed\n")
    changes = await made.changes()
    assert changes.files == ("src/a.py",)
    assert changes.left_out == ("new files: they hold 1,020 MB, more than 1,000 MB",)


async def test_repository_inside_is_left_out_and_told(project: AttemptedProject) -> None:
    made = await begun(project)
    (made.top / "cloned").mkdir()
    git(made.top / "cloned", "init", "-q")
    made.put("cloned/file", b"x")
    git(made.top / "src", "init", "-q")
    made.put("src/a.py", b"changed\n")
    changes = await made.changes()
    assert changes.files == ("src/a.py",)
    assert changes.left_out == ("cloned/: it is a repository of its own",)


async def test_result_names_some_files_and_counts_all(project: AttemptedProject) -> None:
    made = await begun(project)
    for number in range(510):
        made.put(f"many/{number}", b"x\n")
    changes = await made.changes("src/**")
    assert (len(changes.files), changes.more, len(changes.outside), changes.more_outside) == (500, 10, 500, 10)


@pytest.mark.parametrize("damage", ["lost", "damaged"])
async def test_changes_are_the_same_without_the_index(project: AttemptedProject, damage: str) -> None:
    made = await begun(project)
    made.put("src/a.py", b"changed\n")
    made.put("new", b"new\n")
    (made.top / "src/b.py").unlink()
    before = told(await made.changes())
    made.folder.index.unlink() if damage == "lost" else made.folder.index.write_bytes(b"damaged")
    assert told(await made.changes()) == before


async def test_comparison_that_a_kill_cut_off_is_made_again(project: AttemptedProject) -> None:
    made = await begun(project)
    made.put("src/a.py", b"changed\n")
    made.put("src/b.py", b"changed\n")
    for name in ("index.now", "index.now.lock", "index.lock"):
        (made.folder.path / name).write_bytes(b"half")
    (made.folder.kept / "objects" / "ab").mkdir(exist_ok=True)
    (made.folder.kept / "objects" / "ab" / "tmp_obj_x").write_bytes(b"half")
    assert (await made.changes()).files == ("src/a.py", "src/b.py")


async def test_changed_again_with_the_old_size_and_time_is_seen(project: AttemptedProject) -> None:
    made = await begun(project)
    place = made.top / "src/b.py"
    status = place.stat()
    place.write_bytes(b"c\n")
    os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (await made.changes()).files == ("src/b.py",)


async def test_carriage_returns_are_compared_as_they_are(tmp_path: Path) -> None:
    project = AttemptedProject(tmp_path, {**FILES, "run.bat": b"a\nb\n", ".gitattributes": b"*.bat text eol=crlf\n"})
    made = await begun(project)
    assert (made.top / "run.bat").read_bytes() == b"a\r\nb\r\n"
    made.put("run.bat", b"a\r\nB\r\n")
    changes = await made.changes()
    assert (changes.files, changes.added, changes.removed) == (("run.bat",), 1, 1)


async def test_workspace_that_is_gone_or_a_link_is_refused(project: AttemptedProject, tmp_path: Path) -> None:
    made = await begun(project)
    shutil.rmtree(made.top)
    with pytest.raises(ToolError, match="cannot be read: No such file"):
        await made.changes()
    made.top.symlink_to(tmp_path)
    with pytest.raises(ToolError, match="is no folder any more"):
        await made.changes()
