"""Background tasks belong to the session: who decides about them, what the model hears, what a resumed one finds."""

import json
from pathlib import Path

import pytest

from panpan.capabilities.background.background_tasks import BackgroundTasks
from panpan.session.session import Session
from panpan.system.processes.process_table import running_processes
from panpan.types.events import TaskInfo, ToolStarted
from panpan.types.messages import SystemReminder
from panpan.types.permission import PermissionAnswer, PermissionQuestion
from tests.capabilities.plan_mode.test_plan_sessions import DONE, Place, allow, results, turn
from tests.system.backends import until


def bash(command: str, **arguments: object) -> str:
    given = {"command": command, "run_in_background": True, **arguments}
    written = ", ".join(f"{name} = {json.dumps(value)}" for name, value in given.items())
    return f'tool_use = [{{ name = "Bash", input = {{ {written} }} }}]'


BEAT = bash("while :; do date >>beats; sleep 0.02; done", description="beat")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "workspace").mkdir()
    return Place(tmp_path, {"HOME": str(tmp_path), "PANPAN_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"})


def configure(place: Place, text: str) -> None:
    place.home.mkdir(exist_ok=True)
    (place.home / "settings.toml").write_text(text)


def marked(session: Session) -> list[str]:
    mark = session[BackgroundTasks].tree.mark
    return [process.name for process in running_processes().values() if mark in process.marks]


def causes(session: Session) -> list[str]:
    reminders = [one for one in session.conversation.messages if isinstance(one, SystemReminder)]
    return [one.cause for one in reminders if one.cause.startswith("task:")]


def the_task(session: Session) -> TaskInfo:
    (task,) = session[BackgroundTasks].tasks
    return task


async def test_background_command_is_asked_about_like_any_other(place: Place) -> None:
    questions: list[PermissionQuestion] = []

    async def no(question: PermissionQuestion) -> PermissionAnswer:
        questions.append(question)
        return PermissionAnswer(is_allowed=False)

    async with place.open(bash("touch made"), DONE, ask=no) as session:
        (refused,) = results(await turn(session))

        assert refused.is_error
        assert session[BackgroundTasks].tasks == []
    assert [question.title for question in questions] == ["touch made (in the background)"]
    assert not (place.root / "workspace" / "made").exists()


async def test_background_command_is_refused_in_plan_mode_as_usual(place: Place) -> None:
    async with place.open(bash("touch made"), DONE, ask=allow, mode="plan") as session:
        (refused,) = results(await turn(session))

        assert refused.is_error
        assert session[BackgroundTasks].tasks == []


async def test_task_end_is_told_once_and_known_on_resuming(place: Place) -> None:
    async with place.open(bash("echo hi; exit 3"), DONE, DONE, DONE, ask=allow) as session:
        (started,) = results(await turn(session))
        info = await session[BackgroundTasks].wait(the_task(session).id, 20)
        assert f"runs in the background as task {info.id}" in started.text
        await turn(session)
        await turn(session)
        assert causes(session) == [f"task:{info.id}"]
        assert not session[BackgroundTasks].wants_turn
    async with place.open(DONE, DONE, DONE, DONE, DONE, ask=allow, continue_latest=True) as session:
        await turn(session)

        assert the_task(session) == info
        assert causes(session) == [f"task:{info.id}"]
    assert place.warnings == []
    assert info.output.read_text() == "hi\n"


async def test_running_task_is_stopped_with_the_session_and_named(place: Place) -> None:
    async with place.open(BEAT, DONE, ask=allow) as session:
        events = await turn(session)
        assert [event.title for event in events if isinstance(event, ToolStarted)] == [
            "while :; do date >>beats; sleep 0.02; done (in the background)"
        ]
        await until(lambda: (place.root / "workspace" / "beats").exists())

    assert marked(session) == []
    assert place.warnings == [
        f"stopped in the background with the session: {the_task(session).id} (beat): exit code 143"
    ]


async def test_kept_task_runs_on_in_its_sandbox_and_is_found_again(place: Place) -> None:
    configure(place, '[background]\nat_exit = "keep"\n')
    beats = place.root / "workspace" / "beats"
    async with place.open(BEAT, DONE, ask=allow) as session:
        await turn(session)
        await until(beats.exists)
        temporary = session.agent.context.sandbox.temporary
    task = the_task(session)
    size = beats.stat().st_size
    await until(lambda: beats.stat().st_size > size)
    assert place.warnings == [f"left in the background, to be found again with the session: {task.id} (beat)"]

    configure(place, "")
    async with place.open(DONE):
        assert place.warnings == [
            "still running here, left by an earlier session: beat; "
            f"`panpan -r {session.info.id}` shows them, and /tasks there stops them"
        ]
    async with place.open(DONE, DONE, DONE, ask=allow, resume=session.info.id) as again:
        assert temporary.exists() or not again.agent.context.sandbox.is_on
        assert place.warnings == [f"still running in the background, as before: {task.id} (beat)"]
        await turn(again)
        assert causes(again) == [f"task:{task.id}:running"]
        assert (await again[BackgroundTasks].stop(task.id)).state == "stopped"
    assert marked(again) == []

    # what its sandbox needed is gone with it
    assert not temporary.exists()
    assert [path.name for path in (place.root / "workspace").iterdir()] == ["beats"]


async def test_plan_mode_holds_a_task_and_releases_it(place: Place) -> None:
    beats = place.root / "workspace" / "beats"

    async def beat() -> None:
        before = beats.stat().st_size
        await until(lambda: beats.stat().st_size > before)

    async with place.open(BEAT, DONE, ask=allow) as session:
        await turn(session)
        await until(beats.exists)
        session.set_permission_mode("plan")
        assert any("stopped until plan mode ends: " in warning for warning in place.warnings)
        await until(lambda: all(_stands_still(pid) for pid in _pids(session)))
        size = beats.stat().st_size
        assert beats.stat().st_size == size
        session.set_permission_mode("default")
        await beat()


async def test_held_task_can_be_stopped(place: Place) -> None:
    async with place.open(BEAT, DONE, ask=allow) as session:
        await turn(session)
        await until((place.root / "workspace" / "beats").exists)
        session.set_permission_mode("plan")

        assert (await session[BackgroundTasks].stop(the_task(session).id)).state == "stopped"
        assert marked(session) == []


def _pids(session: Session) -> list[int]:
    mark = session[BackgroundTasks].tree.mark
    return [process.pid for process in running_processes().values() if mark in process.marks]


def _stands_still(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "TtZX"
    except OSError:
        return True
