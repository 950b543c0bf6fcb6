"""A picked attempt is merged into the project: the user's changes stay, and nothing but files changes."""

import os
import shutil
from pathlib import Path

import pytest

from panpan.batch.attempts.workspace import make_workspace, remove_workspace
from panpan.batch.reporting.picking import Pick, apply_pick, choose_attempt, picked_of, plan_pick
from panpan.batch.store.records import AttemptState, Changes, Picked, Result, Status, Task
from panpan.errors import ConfigError, SnapshotError
from tests.batch.attempted_project import TASK, Attempted, AttemptedProject, begun
from tests.capabilities.subagents.worktrees.copied_project import state_of
from tests.system.backends import on_both_backends, run_on
from tests.system.git.hostile_repository import git

NAMED = Task(id=TASK, name="table", prompt="", axes={"seed": 1})


@pytest.fixture
def project(tmp_path: Path) -> AttemptedProject:
    return AttemptedProject(tmp_path)


def result(attempt: int, status: Status = "passed", changes: Changes | None = None) -> Result:
    return Result(
        task_id=TASK, task="table", axes={"seed": 1}, attempt=attempt, status=status, ended_by="answer", changes=changes
    )


async def ended(made: Attempted) -> Result:
    """Return the result of an attempt, as a worker writes it before it removes the files."""
    found = result(made.folder.number, changes=await made.changes())
    made.folder.write_result(found)
    await remove_workspace(made.frozen, made.folder)
    return found


async def picked(project: AttemptedProject, found: Result) -> Pick:
    pick = await plan_pick(project.campaign, found)
    await apply_pick(project.campaign, pick)
    return pick


@on_both_backends
@pytest.mark.parametrize("isolation", ["worktree", "copy"])
def test_pick_brings_in_an_attempt_whose_workspace_is_gone(
    project: AttemptedProject, isolation: str, backend: str
) -> None:
    async def main() -> None:
        made = await begun(project, isolation=isolation)
        made.put("src/a.py", b"ONE\ntwo\nthree\n")
        made.put("new/file", b"new\n").chmod(0o755)
        made.put("data.bin", bytes(range(256)))
        (made.top / "README.md").unlink()
        (made.top / "link").symlink_to("src/a.py")
        found = await ended(made)
        files, repository = state_of(project.folder), project.repository_state()

        pick = await plan_pick(project.campaign, found)
        assert state_of(project.folder) == files
        shown = {one.path: (one.added, one.removed, one.is_new, one.is_deleted) for one in pick.diffs}
        assert shown["src/a.py"] == (1, 1, False, False)
        assert shown["README.md"] == (0, 1, False, True)
        assert shown.keys() == {"src/a.py", "new/file", "data.bin", "README.md", "link"}

        await apply_pick(project.campaign, pick)
        now = {**files, "src/a.py": (0o644, b"ONE\ntwo\nthree\n"), "new/file": (0o755, b"new\n"),
               "data.bin": (0o644, bytes(range(256))), "link": (None, b"src/a.py")}  # fmt: skip
        del now["README.md"]
        assert state_of(project.folder) == now
        assert project.repository_state() == repository
        assert picked_of(project.campaign, TASK) == Picked(attempt=1, files=5)
        assert os.listdir(made.folder.kept / "indexes") == []  # noqa: PTH208

    run_on(backend, main)


async def test_pick_joins_what_the_user_changed_since(project: AttemptedProject) -> None:
    made = await begun(project)
    made.put("src/a.py", b"one\ntwo\nthree\nattempt\n")
    made.put("src/b.py", b"attempt\n")
    found = await ended(made)
    project.put("src/a.py", b"user\none\ntwo\nthree\n")
    project.put("src/b.py", b"user\n")
    project.put("own", b"user\n")

    pick = await picked(project, found)

    assert (project.folder / "src/a.py").read_bytes() == b"user\none\ntwo\nthree\nattempt\n"
    assert (project.folder / "src/b.py").read_bytes() == b"user\n"
    assert (project.folder / "own").read_bytes() == b"user\n"
    assert pick.merged == ["src/a.py"]
    assert pick.conflicts == {"src/b.py": "the same lines were changed since"}
    record = picked_of(project.campaign, TASK)
    assert record is not None
    assert (record.files, record.conflicts) == (1, pick.conflicts)


async def test_pick_refuses_a_file_that_changed_after_the_plan(project: AttemptedProject) -> None:
    made = await begun(project)
    made.put("src/a.py", b"attempt\n")
    made.put("src/b.py", b"attempt\n")
    pick = await plan_pick(project.campaign, await ended(made))
    project.put("src/b.py", b"a moment ago\n")
    before = state_of(project.folder)
    with pytest.raises(SnapshotError, match="all files are as they were"):
        await apply_pick(project.campaign, pick)
    assert state_of(project.folder) == before
    assert picked_of(project.campaign, TASK) is None


async def test_pick_again_changes_nothing(project: AttemptedProject) -> None:
    made = await begun(project)
    made.put("src/a.py", b"attempt\n")
    found = await ended(made)
    await picked(project, found)
    again = await picked(project, found)
    assert (again.diffs, again.conflicts) == ([], {})


async def test_pick_after_a_kill_midway_does_the_rest(project: AttemptedProject) -> None:
    made = await begun(project)
    made.put("src/a.py", b"attempt\n")
    made.put("new", b"attempt\n")
    (made.top / "src/b.py").unlink()
    found = await ended(made)
    project.put("src/a.py", b"attempt\n")  # written by the one that was killed
    pick = await picked(project, found)
    assert [one.path for one in pick.diffs] == ["new", "src/b.py"]
    assert pick.conflicts == {}
    assert not (project.folder / "src/b.py").exists()


async def test_pick_takes_no_notice_of_another_umask(project: AttemptedProject) -> None:
    for name in ("src/a.py", "src/b.py", "README.md"):
        (project.folder / name).chmod(0o664)
    made = await begun(project)
    made.put("src/a.py", b"attempt\n")
    (made.top / "src/b.py").unlink()
    (made.top / "README.md").chmod(0o755)
    pick = await picked(project, await ended(made))
    assert pick.conflicts == {}
    assert state_of(project.folder)["src/a.py"] == (0o664, b"attempt\n")
    assert not (project.folder / "src/b.py").exists()
    assert (project.folder / "README.md").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("isolation", ["worktree", "copy"])
async def test_pick_lets_nobody_else_write_or_run_as_the_user(project: AttemptedProject, isolation: str) -> None:
    made = await begun(project, isolation=isolation)
    made.put("new", b"#!/bin/sh\n").chmod(0o6777)
    (made.top / "README.md").chmod(0o4777)
    (made.top / "src/a.py").chmod(0o666)
    await picked(project, await ended(made))
    modes = {name: oct(mode) for name, (mode, _) in state_of(project.folder).items()}
    assert (modes["new"], modes["README.md"], modes["src/a.py"]) == ("0o755", "0o755", "0o644")


async def test_pick_for_a_subfolder_reaches_the_whole_repository(project: AttemptedProject) -> None:
    frozen, attempt = project.frozen("src"), project.attempt()
    made = Attempted(frozen, attempt, await make_workspace(frozen, attempt))
    attempt.write_state(AttemptState(session_id="session", base=made.base))
    made.put("src/a.py", b"attempt\n")
    made.put("README.md", b"attempt\n")
    await picked(project, await ended(made))
    assert (project.folder / "src/a.py").read_bytes() == b"attempt\n"
    assert (project.folder / "README.md").read_bytes() == b"attempt\n"


async def test_pick_writes_through_no_link(project: AttemptedProject, tmp_path: Path) -> None:
    made = await begun(project)
    made.put("src/a.py", b"attempt\n")
    found = await ended(made)
    outside = tmp_path / "outside"
    shutil.move(project.folder / "src", outside)
    (project.folder / "src").symlink_to(outside)
    before = state_of(outside)
    pick = await plan_pick(project.campaign, found)
    assert (list(pick.diffs), list(pick.conflicts)) == ([], ["src/a.py"])
    await apply_pick(project.campaign, pick)
    assert state_of(outside) == before


@pytest.mark.parametrize("campaign", ["project", "project/runs"])
async def test_pick_never_changes_the_campaign(tmp_path: Path, campaign: str) -> None:
    project = AttemptedProject(tmp_path, campaign=campaign)
    made = await begun(project, source=".")
    prefix = "runs/" if campaign.endswith("runs") else ""
    forged = f"{prefix}state/{TASK}/attempt-2/result.json"
    made.put(forged, b"{}")
    made.put(f"{prefix}campaign.toml", b"verify = 'true'\n")
    made.put("src/a.py", b"attempt\n")
    pick = await picked(project, await ended(made))
    expected = {f"{prefix}campaign.toml": "it belongs to the campaign", forged: "it belongs to the campaign"}
    assert pick.conflicts == expected
    assert not project.campaign.campaign_file.exists()
    assert (project.folder / "src/a.py").read_bytes() == b"attempt\n"


async def test_pick_without_kept_files_says_so(project: AttemptedProject) -> None:
    made = await begun(project)
    made.put("src/a.py", b"attempt\n")
    found = result(1, changes=await made.changes())
    shutil.rmtree(made.folder.kept / "objects")
    with pytest.raises(ConfigError, match=r"any more; its workspace .* is still there"):
        await plan_pick(project.campaign, found)
    with pytest.raises(ConfigError, match="are not known, so it cannot be picked"):
        await plan_pick(project.campaign, result(1))


def test_best_attempt_is_chosen(project: AttemptedProject) -> None:
    for number, added in ((1, 9), (2, 3), (10, 5)):
        project.attempt(number).write_result(result(number, changes=Changes(added=added)))
    assert choose_attempt(project.campaign, NAMED).attempt == 2
    assert choose_attempt(project.campaign, NAMED, 10).attempt == 10


def test_tie_is_listed_and_not_chosen(project: AttemptedProject) -> None:
    for number, added in ((1, 3), (2, 9), (3, 3)):
        project.attempt(number).write_result(result(number, changes=Changes(added=added)))
    with pytest.raises(ConfigError, match=r"equally good .*seed=1/1, table/seed=1/3; name one, .* table/seed=1/1$"):
        choose_attempt(project.campaign, NAMED)


def test_attempt_that_failed_is_chosen_only_by_name(project: AttemptedProject) -> None:
    project.attempt().write_result(result(1, "failed"))
    with pytest.raises(ConfigError, match="no attempt at table/seed=1 passed"):
        choose_attempt(project.campaign, NAMED)
    assert choose_attempt(project.campaign, NAMED, 1).status == "failed"


def test_attempt_without_a_result_is_refused(project: AttemptedProject) -> None:
    with pytest.raises(ConfigError, match="no attempt at table/seed=1 has ended"):
        choose_attempt(project.campaign, NAMED)
    with pytest.raises(ConfigError, match="table/seed=1/2 has no result"):
        choose_attempt(project.campaign, NAMED, 2)


async def test_picked_files_are_not_staged(project: AttemptedProject) -> None:
    made = await begun(project)
    made.put("src/a.py", b"attempt\n")
    await picked(project, await ended(made))
    assert git(project.folder, "status", "--porcelain").splitlines() == [" M src/a.py"]
