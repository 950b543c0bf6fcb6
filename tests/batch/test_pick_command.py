"""`panpan batch pick`: what is shown, and when the project changes."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from panpan.batch.cli import command
from panpan.batch.definition.begun_here import note_begun
from panpan.batch.faces.pick_dialog import ranking_lines
from panpan.batch.store.records import Changes, Result, Status, Task
from panpan.errors import ConfigError
from tests.batch.attempted_project import TASK, AttemptedProject, begun
from tests.batch.campaign_files import result_of, task_of

NAMED = Task(id=TASK, name="table", prompt="go")


async def made(place: Path, *statuses: Status) -> AttemptedProject:
    """Return a project with attempts at a task that have ended; each adds lines of its number."""
    project = AttemptedProject(place)
    for number, status in enumerate(statuses, 1):
        attempt = await begun(project, number)
        attempt.put("new\x1b[2J.txt", b"line\n" * number)
        fields = {"task": "table", "ended_by": "answer", "status": status, "changes": await attempt.changes()}
        attempt.folder.write_result(Result.model_validate({"task_id": TASK, "attempt": number, **fields}))
    project.campaign.tasks_file.write_text(NAMED.model_dump_json() + "\n")
    note_begun(project.campaign, project.campaign.frozen().id, project.home)
    return project


def picked(project: AttemptedProject, *words: str) -> str:
    called = ["pick", str(project.campaign.path), *words]
    result = CliRunner().invoke(command, called, env={"PANPAN_HOME": str(project.home)}, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.output


def files(project: AttemptedProject) -> set[str]:
    return {path.name for path in project.folder.iterdir()}


async def by_thread(project: AttemptedProject, *words: str) -> str:
    import anyio

    return await anyio.to_thread.run_sync(lambda: picked(project, *words))


async def test_pick_shows_ranking_and_changes_and_merges_the_best(tmp_path: Path) -> None:
    project = await made(tmp_path, "failed", "passed")

    said = await by_thread(project, "table", "--yes")

    assert said.splitlines() == [
        "1. attempt 2: passed, 1 file +2 -0, $0.00",
        "2. attempt 1: failed, 1 file +1 -0, $0.00",
        "",
        "new.txt (new) +2 -0",
        "  @@ -0,0 +1,2 @@",
        "  +line",
        "  +line",
        "picked table/2: 1 file changed in the project",
    ]
    assert "new\x1b[2J.txt" in files(project)


async def test_pick_without_a_terminal_needs_yes(tmp_path: Path) -> None:
    project = await made(tmp_path, "passed")

    with pytest.raises(ConfigError, match="say yes beforehand with --yes"):
        await by_thread(project, "table")
    assert "new\x1b[2J.txt" not in files(project)


async def test_pick_of_a_failed_attempt_needs_its_number(tmp_path: Path) -> None:
    project = await made(tmp_path, "failed")

    with pytest.raises(ConfigError, match="no attempt at table passed"):
        await by_thread(project, "table", "--yes")
    assert "picked table/1" in await by_thread(project, "table/1", "--yes")
    assert "nothing to do: table/1 changes no file of the project" in await by_thread(project, "table/1", "--yes")


def test_ranking_shows_ties_with_the_same_place() -> None:
    task = task_of("table")
    small, large = Changes(files=("a",), added=1), Changes(files=("a",), added=9, outside=("a",))
    results = [
        result_of(task, "passed", 1, changes=small),
        result_of(task, "error", 2),
        result_of(task, "passed", 3, changes=small),
        result_of(task, "passed", 4, changes=large),
    ]

    assert list(ranking_lines(results)) == [
        "1. attempt 1: passed, 1 file +1 -0, $0.50 (tie)",
        "1. attempt 3: passed, 1 file +1 -0, $0.50 (tie)",
        "3. attempt 4: passed, 1 file +9 -0, 1 outside the task, $0.50",
        "4. attempt 2: error, $0.50",
    ]


async def test_pick_from_a_state_of_somebody_else_is_refused(tmp_path: Path) -> None:
    project = await made(tmp_path, "passed")
    project.campaign.write_frozen(project.campaign.frozen().model_copy(update={"id": "of somebody else"}))

    with pytest.raises(ConfigError, match="you did not begin the campaign"):
        await by_thread(project, "table", "--yes")

    assert "new\x1b[2J.txt" not in files(project)
