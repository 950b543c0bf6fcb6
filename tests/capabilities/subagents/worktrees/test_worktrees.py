"""Worktrees of real repositories: what is in them, what the user's repository gains, and how they go."""

import os

import anyio
import anyio.lowlevel
import pytest

from panpan.capabilities.subagents.worktrees.worktree import orphaned_worktrees
from panpan.capabilities.subagents.worktrees.worktrees import Worktrees
from panpan.errors import PanpanError, ToolError
from panpan.file_trees.kept_files import KeepLimits
from panpan.system.git.git import run_git
from tests.capabilities.subagents.worktrees.copied_project import AGENT, CopiedProject, state_of
from tests.system.git.hostile_repository import HostileRepository, git


@pytest.fixture
def project(tmp_path):
    return CopiedProject(tmp_path, {"a.py": b"one\n", "sub/b.py": b"b\n", ".gitignore": b"ignored/\n"})


async def test_worktree_shows_the_users_files(project):
    # given changes without a commit of every kind, and the user's own index
    project.put("a.py", b"changed\n")
    project.put("new.py", b"new\n").chmod(0o754)
    project.put("staged.py", b"staged\n")
    git(project.folder, "add", "staged.py")
    (project.folder / "sub" / "b.py").unlink()
    (project.folder / "link").symlink_to("a.py")
    project.put("ignored/big", b"not for agents\n")
    repository = project.repository_state()

    worktree = await project.worktrees.make(AGENT)

    expected = {path: entry for path, entry in state_of(project.folder).items() if not path.startswith("ignored/")}
    assert state_of(worktree.path) == expected
    assert await project.worktrees.changes(worktree) == []
    assert worktree.base_commit == git(project.folder, "rev-parse", "HEAD").strip()
    gained = project.repository_state().items() - repository.items()
    assert {name.split("/")[0] for name, _ in gained} == {"worktrees"}


async def test_git_answers_in_the_worktree_as_in_the_project(project):
    project.put("a.py", b"changed\n")
    project.put("new.py", b"new\n")
    worktree = await project.worktrees.make(AGENT)

    said = [(await run_git(["status", "--porcelain"], cwd=one)).stdout for one in (project.folder, worktree.path)]

    assert said[0] == said[1] == b" M a.py\n?? new.py\n"


async def test_unchanged_worktree_leaves_no_trace(project):
    before = project.repository_state()
    worktree = await project.worktrees.make(AGENT)
    worktree.top.with_name(f"{worktree.top.name}.merge-index").touch()  # of a merge that was killed

    assert await project.worktrees.remove(worktree)

    assert project.repository_state() == before
    assert list((project.home / "worktrees").iterdir()) == []
    assert project.worktrees.find(AGENT) is None
    assert "agents" not in git(project.home / "kept", "--git-dir=.", "for-each-ref")


async def test_half_made_entry_is_removed_and_no_foreign_one(project):
    half = project.folder / ".git" / "worktrees" / "theirs"
    half.mkdir(parents=True)
    (half / "HEAD").write_text("0" * 40)
    before = project.repository_state()
    worktree = await project.worktrees.make(AGENT)
    (project.folder / ".git" / "worktrees" / worktree.top.name / "gitdir").unlink()

    await project.worktrees.remove(worktree, with_changes=True)

    assert project.repository_state() == before


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.py", b"edited\n"), ("new/file.py", b"made\n"), ("clone/.git/HEAD", b"ref: refs/heads/x\n")],
)
async def test_changed_worktree_stays_unless_told(project, name, content):
    worktree = await project.worktrees.make(AGENT)
    if name.startswith("clone"):
        (worktree.path / "clone").mkdir()
        git(worktree.path / "clone", "init", "-q")
        git(worktree.path / "clone", "commit", "-q", "--allow-empty", "-m", "own")
    else:
        project.put(name, content, worktree.path)

    assert not await project.worktrees.remove(worktree)
    assert worktree.path.is_dir()

    assert await project.worktrees.remove(worktree, with_changes=True)
    assert not worktree.path.exists()


async def test_changes_are_listed_by_file_with_lines(project):
    worktree = await project.worktrees.make(AGENT)
    project.put("a.py", b"one\ntwo\n", worktree.path)
    project.put("new.py", b"x\ny\n", worktree.path)
    (worktree.path / "sub" / "b.py").unlink()
    project.put("ignored/cache", b"nobody wants it\n", worktree.path)

    changes = await project.worktrees.changes(worktree)

    told = [(one.path, one.kind, one.added, one.deleted) for one in changes]
    assert told == [("a.py", "modified", 1, 0), ("new.py", "added", 2, 0), ("sub/b.py", "deleted", 0, 1)]


async def test_committed_or_ignored_change_is_still_a_change(project):
    worktree = await project.worktrees.make(AGENT)
    project.put("a.py", b"committed\n", worktree.path)
    git(worktree.path, "commit", "-q", "-am", "mine")
    project.put("sub/b.py", b"hidden\n", worktree.path)
    git(worktree.path, "rm", "-q", "--cached", "sub/b.py")
    project.put(".gitignore", b"ignored/\nsub/\n", worktree.path)

    assert [one.path for one in await project.worktrees.changes(worktree)] == [".gitignore", "a.py", "sub/b.py"]


async def test_worktrees_made_at_once_do_not_disturb_each_other(project):
    made = {}

    async def make(agent_id):
        made[agent_id] = await project.worktrees.make(agent_id)
        project.put("a.py", agent_id.encode(), made[agent_id].path)

    async with anyio.create_task_group() as tasks:
        for number in range(4):
            tasks.start_soon(make, f"0000000{number}")

    for agent_id, worktree in made.items():
        assert [one.path for one in await project.worktrees.changes(worktree)] == ["a.py"]
        assert (worktree.path / "a.py").read_bytes() == agent_id.encode()
    assert (project.folder / "a.py").read_bytes() == b"one\n"
    assert len(git(project.folder, "worktree", "list").splitlines()) == 5


async def test_missing_repository_or_commit_is_a_clear_error(tmp_path):
    bare = tmp_path.resolve() / "bare"
    bare.mkdir()
    worktrees = Worktrees(bare, tmp_path / "worktrees", tmp_path / "kept")
    with pytest.raises(ToolError, match="is in no git repository"):
        await worktrees.make(AGENT)
    git(bare, "init", "-q")
    with pytest.raises(ToolError, match="has no commit yet"):
        await worktrees.make(AGENT)
    assert await worktrees.leftovers() == []


async def test_failed_copy_leaves_nothing_behind(project, tmp_path):
    before = project.repository_state()
    worktrees = Worktrees(project.folder, tmp_path / "other", project.home / "kept", KeepLimits(max_files=1))

    with pytest.raises(ToolError, match="more than 1 files"):
        await worktrees.make(AGENT)

    assert project.repository_state() == before
    assert list((tmp_path / "other").iterdir()) == []


async def test_home_within_the_repository_is_refused(project):
    before = state_of(project.folder)
    worktrees = Worktrees(project.folder, project.folder / ".panpan" / "worktrees", project.home / "kept")

    with pytest.raises(ToolError, match="panpan's home is in it"):
        await worktrees.make(AGENT)

    assert state_of(project.folder) == before


async def test_submodules_and_large_files_are_reported_missing(project, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    git(other, "commit", "-q", "--allow-empty", "-m", "first")
    git(project.folder, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "module")
    git(project.folder, "commit", "-q", "-m", "module")
    project.put("large", b"x" * 1001)
    limits = KeepLimits(max_file_bytes=1000)
    worktrees = Worktrees(project.folder, project.home / "worktrees", project.home / "kept", limits)

    worktree = await worktrees.make(AGENT)

    assert set(worktree.left_out) == {"module/", "large"}
    assert "module/ (it is a repository of its own, or a submodule)" in worktree.note
    assert not (worktree.path / "large").exists()
    assert await worktrees.changes(worktree) == []
    assert await worktrees.remove(worktree)


async def test_sparse_checkout_stays_sparse(project):
    git(project.folder, "sparse-checkout", "set", "--no-cone", "/a.py", "/.gitignore")
    assert not (project.folder / "sub" / "b.py").exists()

    worktree = await project.worktrees.make(AGENT)

    assert set(state_of(worktree.path)) == {"a.py", ".gitignore"}
    assert await project.worktrees.changes(worktree) == []
    assert await project.worktrees.remove(worktree)


async def test_worktree_runs_nothing_that_the_repository_names(tmp_path):
    repository = HostileRepository(tmp_path / "work", tmp_path / "traces")
    for hook in ("post-checkout", "reference-transaction", "post-index-change", "pre-commit", "post-commit"):
        repository.helper_script(hook, repository.folder / ".git" / "hooks")
    (repository.folder / ".gitattributes").write_text("*.txt filter=odd\n*.bin merge=odd diff=odd\n")
    for step in ("clean", "smudge", "process"):
        repository.configure(f"filter.odd.{step}", repository.helper(f"filter-{step}"))
    repository.configure("filter.odd.required", "true")
    repository.configure("merge.odd.driver", repository.helper("merge"))
    repository.configure("core.fsmonitor", str(repository.helper_script("fsmonitor")))
    worktrees = Worktrees(repository.folder.resolve(), tmp_path / "worktrees", tmp_path / "kept")

    worktree = await worktrees.make(AGENT)
    (worktree.path / "file.txt").write_text("the agent's\n")
    changes = await worktrees.changes(worktree)
    await worktrees.remove(worktree, with_changes=True)

    assert [one.path for one in changes] == ["file.txt"]
    assert repository.traces == set()


async def test_project_within_a_repository_has_its_folder_there(project):
    worktrees = project.opened(project.folder / "sub")

    worktree = await worktrees.make(AGENT)
    project.put("b.py", b"b!\n", worktree.path)
    project.put("a.py", b"one!\n", worktree.top)

    assert worktree.path == worktree.top / "sub"
    assert [one.path for one in await worktrees.changes(worktree)] == [str(project.folder / "a.py"), "b.py"]


async def test_leftovers_of_a_session_are_found_and_tidied(project):
    # given a session that made three worktrees, changed one, and was killed while it made the last
    first = project.worktrees
    changed, unchanged = await first.make("00000001"), await first.make("00000002")
    project.put("a.py", b"edited\n", changed.path)
    broken = await first.make("00000003")
    assert await project.opened().leftovers() == []  # since that session still runs
    assert orphaned_worktrees(project.home / "worktrees") == []
    first.close()
    record = project.home / "worktrees" / "panpan-00000003.json"
    record.write_text(record.read_text().replace(broken.base, ""))

    second = project.opened()

    assert [one.agent_id for one in await second.leftovers()] == ["00000001", "00000002", "00000003"]
    assert [one.agent_id for one in await second.tidy()] == ["00000001"]
    assert project.opened().find("00000001") is not None  # whoever tidied holds it no longer
    assert not unchanged.path.exists()
    assert not broken.path.exists()
    assert len(git(project.folder, "worktree", "list").splitlines()) == 2


async def test_worktree_removed_by_the_user_is_forgotten(project):
    worktree = await project.worktrees.make(AGENT)
    project.put("a.py", b"edited\n", worktree.path)
    git(project.folder, "worktree", "remove", "--force", str(worktree.path))
    project.worktrees.close()

    assert await project.opened().tidy() == []
    assert await project.opened().leftovers() == []


async def test_worktrees_of_the_user_stay(project, tmp_path):
    git(project.folder, "worktree", "add", "-q", "--detach", str(tmp_path / "own"))
    (tmp_path / "own").rename(tmp_path / "moved")  # as on a disk that is not there at the moment
    worktree = await project.worktrees.make(AGENT)

    await project.worktrees.remove(worktree)

    assert str(tmp_path / "own") in git(project.folder, "worktree", "list")


async def test_folders_without_permission_are_removed_too(project):
    worktree = await project.worktrees.make(AGENT)
    project.put("ignored/deep/file", b"x", worktree.path)
    for folder in ("ignored/deep", "ignored"):
        (worktree.path / folder).chmod(0o555)

    assert await project.worktrees.remove(worktree)
    assert not worktree.path.exists()


async def test_link_targets_stay_when_a_worktree_is_removed(project, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    worktree = await project.worktrees.make(AGENT)
    (worktree.path / "ignored").mkdir()
    (worktree.path / "ignored" / "link").symlink_to(outside)

    await project.worktrees.remove(worktree, with_changes=True)

    assert (outside / "kept").read_text() == "kept"


@pytest.mark.parametrize(
    "moment",
    [
        f"home/worktrees/panpan-{AGENT}",
        f"home/worktrees/panpan-{AGENT}.json",
        f"project/.git/worktrees/panpan-{AGENT}/gitdir",
        f"project/.git/worktrees/panpan-{AGENT}/index",
        f"home/worktrees/panpan-{AGENT}/a.py",
    ],
)
async def test_interrupted_creation_leaves_nothing(project, moment):
    before = project.repository_state()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(project.worktrees.make, AGENT)
        while not (project.folder.parent / moment).exists():
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()

    if project.worktrees.find(AGENT) is None:  # else it was done before it could be interrupted
        assert project.repository_state() == before
        assert list((project.home / "worktrees").iterdir()) == []


async def test_killed_creation_is_tidied_up(project):
    # given what `git worktree add` leaves when it is killed: an entry that is locked and no branch or commit
    before = project.repository_state()
    worktree = await project.worktrees.make(AGENT)
    project.worktrees.close()
    entry = project.folder / ".git" / "worktrees" / worktree.top.name
    (entry / "locked").write_text("initializing")
    (entry / "HEAD").write_text("0" * 40)
    record = project.home / "worktrees" / f"panpan-{AGENT}.json"
    record.write_text(record.read_text().replace(worktree.base, ""))

    assert await project.opened().tidy() == []

    assert project.repository_state() == before
    assert list((project.home / "worktrees").iterdir()) == []


@pytest.mark.parametrize("agent_id", ["../../x", "", "0A1B2C3D", "0a1b2c3d/.."])
async def test_ids_of_other_shapes_find_nothing(project, agent_id):
    assert project.worktrees.find(agent_id) is None
    with pytest.raises((PanpanError, ValueError)):
        await project.worktrees.make(agent_id)
    assert os.listdir(project.home) == []  # noqa: PTH208


async def test_forged_record_leads_nowhere_else(project, tmp_path):
    worktree = await project.worktrees.make(AGENT)
    record = project.home / "worktrees" / f"panpan-{AGENT}.json"
    record.write_text(record.read_text().replace(str(worktree.top), str(tmp_path)))

    found = project.worktrees.find(AGENT)

    assert found is not None
    assert found.top == worktree.top


async def test_files_too_deep_for_the_worktree_are_reported_missing(project):
    longer = len(str(project.home / "worktrees")) - len(str(project.folder))
    assert longer > 0
    names, room = [], 4094 - len(str(project.folder)) - longer
    while room > 0:
        names.append("n" * min(room, 200))
        room -= 201
    here = os.open(project.folder, os.O_RDONLY)
    for name in names:
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("f", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    os.close(here)

    worktree = await project.worktrees.make(AGENT)

    assert dict(worktree.left_out) == {"/".join([*names, "f"]): "its path is too long"}
    assert await project.worktrees.changes(worktree) == []
    assert await project.worktrees.remove(worktree)
