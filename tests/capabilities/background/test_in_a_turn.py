"""Notes on a task within a turn: those that the model gets, and those that the log keeps."""

from contextlib import aclosing
from pathlib import Path

import pytest

from panpan.capabilities.background.background_tasks import BackgroundTasks
from panpan.capabilities.background.task_tools import TaskOutputTool, TaskStopTool
from panpan.core.hooks import Hook, ToolCall
from panpan.types.events import Output, ToolStarted
from panpan.types.messages import SystemReminder, ToolResultMessage
from tests.capabilities.background.harness import Home, start
from tests.fakes.scripted_llm import ScriptedLLM, call, say
from tests.fakes.session import recorded, session_in


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path.resolve())


def told(root: Path) -> list[str]:
    return [one.cause for one in recorded(root) if isinstance(one, SystemReminder)]


def tools(tasks: BackgroundTasks) -> tuple[TaskOutputTool, TaskStopTool]:
    return TaskOutputTool(tasks), TaskStopTool(tasks)


@pytest.mark.parametrize("name", ["TaskOutput", "TaskStop"])
async def test_task_end_in_a_result_is_not_told_again(name: str, home: Home, tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    async with home.serving() as tasks:
        script = "sleep 600" if name == "TaskStop" else f"while [ ! -e {home.folder}/go ]; do sleep 0.01; done"
        info = await start(tasks, script)
        llm = ScriptedLLM(call(("1", name, {"task_id": info.id})), say("done"), say("well"))
        async with session_in(root, llm, *tools(tasks), hooks=[tasks]) as session:
            async with aclosing(session.submit("go")) as events:
                async for event in events:
                    if isinstance(event, ToolStarted):
                        (home.folder / "go").touch()
            async with aclosing(session.submit("on")) as events:
                async for _ in events:
                    pass

    assert told(root) == []
    again = home.opened(recorded(root))
    assert not again.wants_turn


async def test_undelivered_result_told_nothing(home: Home, tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    async with home.serving() as tasks:
        info = await start(tasks, f"while [ ! -e {home.folder}/go ]; do sleep 0.01; done")
        llm = ScriptedLLM(call(("1", "TaskOutput", {"task_id": info.id})), say("done"))
        async with session_in(root, llm, *tools(tasks), hooks=[tasks]) as session:
            async with aclosing(session.submit("go")) as events:
                async for event in events:
                    if isinstance(event, ToolStarted):
                        session.interrupt()
            (home.folder / "go").touch()
            await tasks.wait(info.id, 20)
            async with aclosing(session.submit("on")) as events:
                async for _ in events:
                    pass

    assert told(root) == [f"task:{info.id}"]


async def test_task_that_ends_during_a_turn_is_told_in_the_next_round(home: Home, tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    async with home.serving() as tasks:
        first = await start(tasks, "sleep 600")
        second = await start(tasks, f"while [ ! -e {home.folder}/go ]; do sleep 0.01; done")

        class EndsMeanwhile(Hook):
            async def after_tool(self, call: ToolCall, output: Output) -> Output:
                (home.folder / "go").touch()
                await tasks.wait(second.id, 20)
                return output

        llm = ScriptedLLM(call(("1", "TaskOutput", {"task_id": first.id, "block": False})), say("done"))
        hooks = [tasks, EndsMeanwhile()]
        async with (
            session_in(root, llm, *tools(tasks), hooks=hooks) as session,
            aclosing(session.submit("go")) as events,
        ):
            async for _ in events:
                pass

    kinds = [type(one) for one in recorded(root)]
    assert told(root) == [f"task:{second.id}"]
    assert kinds.index(SystemReminder) == kinds.index(ToolResultMessage) + 1
