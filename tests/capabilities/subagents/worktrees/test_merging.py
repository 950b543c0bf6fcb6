"""Merging worktrees into the user's files, three-way; nobody's edits are lost."""

import asyncio
import fcntl
import os
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.capabilities.subagents.worktrees.merging import WorktreeMerges
from panpan.errors import SnapshotError, ToolError
from panpan.file_trees.writing import write_changes
from panpan.system.files.atomic_write import DiskOperations
from tests.capabilities.subagents.worktrees.copied_project import AGENT, CopiedProject, state_of
from tests.system.git.hostile_repository import git

LINES = b"".join(b"line %d\n" % number for number in range(20))


@pytest.fixture
def project(tmp_path):
    return CopiedProject(tmp_path, {"a.py": LINES, "sub/b.py": b"b\n", "sub/c.py": b"c\n"})


async def test_merge_into_an_unchanged_project_is_exact(project):
    # given every kind of change, without a commit of the user's among what the agent began with
    project.put("a.py", b"without a commit\n" + LINES)
    worktree = await project.worktrees.make(AGENT)
    project.put("a.py", b"without a commit\n" + LINES + b"more\n", worktree.path)
    project.put("new/deep.py", b"new\n", worktree.path).chmod(0o755)
    (worktree.path / "link").symlink_to("a.py")
    (worktree.path / "sub" / "b.py").unlink()
    (worktree.path / "sub" / "c.py").unlink()
    (worktree.path / "sub").rmdir()
    project.put("sub", b"a file where a folder was\n", worktree.path)
    project.put("binary", bytes(range(256)), worktree.path)
    wanted, repository = state_of(worktree.path), project.repository_state()

    await project.worktrees.changes(worktree)
    merge = await project.merges.merge(AGENT)

    assert state_of(project.folder) == wanted
    assert merge.is_whole
    diffs = {one.path: one.diff for one in merge.diffs}
    assert diffs.keys() == {"a.py", "new/deep.py", "link", "sub", "sub/b.py", "sub/c.py", "binary"}
    assert "+link to a.py" in diffs["link"]
    assert diffs["binary"] == ""
    assert not worktree.path.exists()
    gone = {name for name in repository if not name.startswith("worktrees/")}
    assert project.repository_state() == {name: repository[name] for name in gone}


async def test_merge_removes_emptied_folders_but_not_the_users(project):
    project.put("sub/ignored.log", b"the user's\n")
    project.put("gone/x.py", b"x\n")
    project.put(".gitignore", b"*.log\n")
    worktree = await project.worktrees.make(AGENT)
    for name in ("sub/b.py", "sub/c.py", "gone/x.py"):
        (worktree.path / name).unlink()
    for name in ("sub", "gone"):
        (worktree.path / name).rmdir()

    await project.merged(worktree)

    assert not (project.folder / "gone").exists()
    assert os.listdir(project.folder / "sub") == ["ignored.log"]  # noqa: PTH208


async def test_merge_joins_other_lines_and_reports_equal_ones(project):
    worktree = await project.worktrees.make(AGENT)
    project.put("a.py", b"agent\n" + LINES, worktree.path)
    project.put("sub/b.py", b"agent\n", worktree.path)
    project.put("sub/c.py", b"agent\n", worktree.path)
    project.put("a.py", LINES + b"user\n")
    project.put("sub/b.py", b"user\n")

    await project.worktrees.changes(worktree)
    merge = await project.merges.merge(AGENT)

    assert (project.folder / "a.py").read_bytes() == b"agent\n" + LINES + b"user\n"
    assert (project.folder / "sub/b.py").read_bytes() == b"user\n"
    assert (project.folder / "sub/c.py").read_bytes() == b"agent\n"
    assert merge.merged == ["a.py"]
    assert merge.conflicts == {"sub/b.py": "the same lines were changed since"}
    assert not merge.is_whole
    assert (worktree.path / "sub/b.py").read_bytes() == b"agent\n"
    # and again changes nothing more
    before = state_of(project.folder)
    assert (await project.merges.merge(AGENT)).diffs == []
    assert state_of(project.folder) == before
    # and what the user settles by hand in the agent's sense is whole
    project.put("sub/b.py", b"agent\n")
    assert (await project.merges.merge(AGENT)).is_whole


@pytest.mark.parametrize("blocking", ["new", "new/deep.py/user.py"])
async def test_merge_reports_an_obstacle_as_a_conflict(project, blocking):
    worktree = await project.worktrees.make(AGENT)
    project.put("new/deep.py", b"agent\n", worktree.path)
    project.put("a.py", b"agent\n", worktree.path)
    project.put(blocking, b"user\n")

    await project.worktrees.changes(worktree)
    merge = await project.merges.merge(AGENT)

    assert list(merge.conflicts) == ["new/deep.py"]
    assert (project.folder / blocking).read_bytes() == b"user\n"
    assert (project.folder / "a.py").read_bytes() == b"agent\n"


async def test_merge_does_not_follow_a_folder_that_became_a_link(project, tmp_path):
    worktree = await project.worktrees.make(AGENT)
    project.put("sub/b.py", b"agent\n", worktree.path)
    (project.folder / "sub").rename(tmp_path / "elsewhere")
    (project.folder / "sub").symlink_to(tmp_path / "elsewhere")

    await project.worktrees.changes(worktree)
    merge = await project.merges.merge(AGENT)

    assert list(merge.conflicts) == ["sub/b.py"]
    assert (tmp_path / "elsewhere" / "b.py").read_bytes() == b"b\n"


async def test_merge_refuses_changes_that_were_not_shown(project):
    worktree = await project.worktrees.make(AGENT)
    project.put("a.py", b"agent\n", worktree.path)
    await project.worktrees.changes(worktree)
    shown = await project.merges.plan_merge(AGENT)
    project.put("sub/b.py", b"agent, later\n", worktree.path)
    with pytest.raises(ToolError, match="more files of the worktree have changed"):
        await project.merges.merge(AGENT, only=shown.id)
    project.put("sub/b.py", b"b\n", worktree.path)
    project.put("a.py", b"agent, later\n", worktree.path)
    with pytest.raises(ToolError, match="differ from the one that was allowed"):
        await project.merges.merge(AGENT, only=shown.id)
    assert (project.folder / "a.py").read_bytes() == LINES


async def test_merge_with_a_file_changed_midway_leaves_all_unchanged(project):
    # given a plan that is carried out on other files than it was made for
    worktree = await project.worktrees.make(AGENT)
    for name in ("a.py", "sub/b.py", "sub/c.py"):
        project.put(name, b"agent\n", worktree.path)
    await project.worktrees.changes(worktree)
    merging = project.merges._merging(worktree)
    async with project.worktrees.lock:
        plan, _ = await project.merges._plan(project.worktrees.find(AGENT))
    project.put("sub/c.py", b"user, a moment ago\n")

    with pytest.raises(SnapshotError, match="all files are as they were"):
        await merging.apply(plan, lambda _: True)

    assert (project.folder / "a.py").read_bytes() == LINES
    assert (project.folder / "sub/c.py").read_bytes() == b"user, a moment ago\n"


class LockTaken(DiskOperations):
    """Notes whether another writer could have the file while a new content for it is written."""

    def __init__(self, path):
        self.path = path
        self.was_free = []

    def write(self, fd, data):
        other = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.was_free.append(True)
        except BlockingIOError:
            self.was_free.append(False)
        finally:
            os.close(other)
        return super().write(fd, data)


async def test_merge_keeps_writers_of_one_file_apart(project):
    # given a merge, whose comparison and rename are one step for the tools that write files
    worktree = await project.worktrees.make(AGENT)
    project.put("a.py", b"agent\n", worktree.path)
    await project.worktrees.changes(worktree)
    async with project.worktrees.lock:
        plan, _ = await project.merges._plan(project.worktrees.find(AGENT))
    disk = LockTaken(project.folder / "a.py")

    await write_changes(project.worktrees.repository(project.folder), plan.changes, disk)

    assert disk.was_free == [False]
    assert (project.folder / "a.py").read_bytes() == b"agent\n"


async def test_merge_of_two_agents_loses_nothing(project):
    first, second = await project.worktrees.make("00000001"), await project.worktrees.make("00000002")
    project.put("a.py", b"first\n" + LINES, first.path)
    project.put("a.py", LINES + b"second\n", second.path)
    project.put("sub/b.py", b"first\n", first.path)
    project.put("sub/b.py", b"second\n", second.path)

    for worktree in (first, second):
        await project.merged(worktree)

    assert (project.folder / "a.py").read_bytes() == b"first\n" + LINES + b"second\n"
    assert (project.folder / "sub/b.py").read_bytes() == b"first\n"
    assert (second.path / "sub/b.py").read_bytes() == b"second\n"


async def test_merge_refuses_a_subagent_at_work(project):
    worktree = await project.worktrees.make(AGENT)
    project.busy.add(AGENT)
    for call in (project.merges.plan_merge, project.merges.merge, project.merges.discard):
        with pytest.raises(ToolError, match="still at work"):
            await call(AGENT)
    assert worktree.path.exists()


async def test_other_session_can_merge_leftovers_but_not_used_ones(project):
    worktree = await project.worktrees.make(AGENT)
    project.put("a.py", b"agent\n", worktree.path)
    other = project.opened()
    assert other.find(AGENT) is None
    project.worktrees.close()

    found = other.find(AGENT)
    await other.changes(found)
    merge = await WorktreeMerges(other).merge(AGENT)

    assert merge.is_whole
    assert (project.folder / "a.py").read_bytes() == b"agent\n"


async def test_index_and_staged_changes_of_the_user_stay(project):
    project.put("a.py", b"staged\n")
    git(project.folder, "add", "a.py")
    project.put("a.py", b"and more\n")
    worktree = await project.worktrees.make(AGENT)
    project.put("sub/b.py", b"agent\n", worktree.path)
    staged = git(project.folder, "diff", "--cached")

    await project.merged(worktree)

    assert git(project.folder, "diff", "--cached") == staged
    assert git(project.folder, "diff", "--name-only").split() == ["a.py", "sub/b.py"]


NAMES = st.sampled_from(["a", "b", "d", "d/a", "d/e/b"])
CONTENTS = st.lists(st.sampled_from([b"1\n", b"2\n", b"3\n", b"\xff\0\n"]), max_size=4).map(b"".join)
TREES = st.dictionaries(NAMES, st.tuples(CONTENTS, st.sampled_from([0o644, 0o755, None])), max_size=4)


def become(folder, tree):
    """Make the files of a folder those of `tree`, but for names that need a file and a folder at one place."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if ".git" not in path.relative_to(folder).parts:
            path.unlink() if path.is_symlink() or path.is_file() else path.rmdir()
    for name, (content, mode) in tree.items():
        place = folder / name
        if place.is_dir() or any(
            (folder / above).is_file() or (folder / above).is_symlink() for above in parents(name)
        ):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if mode is None:
            place.symlink_to("x" + content.hex())
        else:
            place.write_bytes(content)
            place.chmod(mode)


def parents(name):
    return [str(above) for above in Path(name).parents if str(above) != "."]


@settings(max_examples=8, deadline=None)
@given(committed=TREES, users=TREES, agents=TREES)
def test_merge_of_any_changes_into_an_unchanged_project_is_whole(committed, users, agents):
    async def check(base):
        project = CopiedProject(base, {})
        become(project.folder, committed)
        git(project.folder, "add", "-A")
        git(project.folder, "commit", "-q", "--allow-empty", "-m", "second")
        become(project.folder, users)
        worktree = await project.worktrees.make(AGENT)
        become(worktree.path, agents)
        wanted = state_of(worktree.path)

        await project.merged(worktree)

        assert state_of(project.folder) == wanted
        assert not worktree.path.exists()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(check(Path(folder)))


@settings(max_examples=8, deadline=None)
@given(base=TREES, users=TREES, agents=TREES)
def test_merge_never_loses_changes_of_the_user(base, users, agents):
    async def check(folder):
        project = CopiedProject(folder, {})
        become(project.folder, base)
        began = state_of(project.folder)
        worktree = await project.worktrees.make(AGENT)
        become(worktree.path, agents)
        become(project.folder, users)
        of_agent, of_user = state_of(worktree.path), state_of(project.folder)

        await project.worktrees.changes(worktree)
        merge = await project.merges.merge(AGENT)

        result = state_of(project.folder)
        for path in began.keys() | of_user.keys() | of_agent.keys():
            before, mine, theirs, now = (one.get(path) for one in (began, of_user, of_agent, result))
            if path in merge.conflicts or theirs == before:
                assert now == mine
            elif mine == before:
                assert now == theirs
            elif now != mine:  # both changed it, and it was joined: in the content, or content and bits
                assert path in merge.merged or now in ((mine[0], theirs[1]), (theirs[0], mine[1]))
        assert worktree.path.exists() == (not merge.is_whole)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(check(Path(folder)))


class Killed(BaseException):
    """Ends a merge as a signal that nobody can catch does: nothing is put back."""


class KilledAt(DiskOperations):
    """Ends everything right before the disk gets a file at its place for the n-th time."""

    def __init__(self, steps):
        self.steps = steps

    def replace(self, source, target, folder):
        self._step()
        super().replace(source, target, folder)

    def link(self, source, target, folder):
        self._step()
        super().link(source, target, folder)

    def _step(self):
        self.steps -= 1
        if self.steps < 0:
            raise Killed


@settings(max_examples=4, deadline=None)
@given(base=TREES, users=TREES, agents=TREES, steps=st.integers(0, 3))
def test_killed_merge_is_finished_by_the_next_one(base, users, agents, steps):
    async def merged(folder, *, is_killed):
        folder.mkdir()
        project = CopiedProject(folder, {})
        become(project.folder, base)
        worktree = await project.worktrees.make(AGENT)
        become(worktree.path, agents)
        become(project.folder, users)
        await project.worktrees.changes(worktree)
        if is_killed:
            async with project.worktrees.lock:
                plan, _ = await project.merges._plan(project.worktrees.find(AGENT))
            with suppress(Killed):
                await write_changes(project.worktrees.repository(project.folder), plan.changes, KilledAt(steps))
            project.worktrees.close()
            project.merges = WorktreeMerges(project.opened())
        merge = await project.merges.merge(AGENT)
        return state_of(project.folder), merge.conflicts, merge.left

    with tempfile.TemporaryDirectory() as folder:
        whole = asyncio.run(merged(Path(folder) / "whole", is_killed=False))
        again = asyncio.run(merged(Path(folder) / "killed", is_killed=True))

    assert again == whole
