import json
import re
from contextlib import aclosing
from pathlib import Path

import pytest

from panpan.capabilities.background.announcements import ended_in_result, state_line
from panpan.capabilities.background.background_tasks import BackgroundTasks
from panpan.capabilities.background.task_tools import TaskOutputInput, TaskOutputTool, TaskStopInput, TaskStopTool
from panpan.types.events import Output, TaskInfo, TaskState
from tests.capabilities.background.harness import Home, start
from tests.fakes.context import context_in
from tests.system.backends import until


async def result(tool: TaskOutputTool | TaskStopTool, tmp_path: Path, **arguments: object) -> str:
    args = tool.input_model.model_validate(arguments)
    async with aclosing(tool.run(args, context_in(tmp_path))) as yields:  # type: ignore[arg-type]
        outputs = [one async for one in yields]
    assert isinstance(outputs[-1], Output)
    return outputs[-1].text


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path.resolve())


async def test_task_output_waits_and_shows_new_lines(home: Home, tmp_path: Path) -> None:
    async with home.serving() as tasks:
        tool = TaskOutputTool(tasks)
        script = "echo one; while [ ! -e go ]; do sleep 0.01; done; echo two; exit 3"
        info = await start(tasks, script, cwd=home.folder)
        await until(lambda: info.output.read_bytes() == b"one\n")

        begun = await result(tool, tmp_path, task_id=info.id, block=False)
        silent = await result(tool, tmp_path, task_id=info.id, timeout=1)
        (home.folder / "go").touch()
        ended = await result(tool, tmp_path, task_id=info.id)
        matching = await result(tool, tmp_path, task_id=info.id, filter="t.o")

    place = f"[all of its output: {info.output}]"
    assert re.fullmatch(rf"task {info.id}: running, \d+ s\n{re.escape(place)}\none", begun)
    assert silent.endswith(f"{place}\n(nothing new)")
    assert re.fullmatch(rf"task {info.id}: failed, exit code 3, \d+ s\n{re.escape(place)}\ntwo", ended)
    assert matching.endswith(f"{place}\n2:two")


async def test_task_output_shows_only_the_end_of_much_and_says_so(home: Home, tmp_path: Path) -> None:
    async with home.serving() as tasks:
        info = await start(tasks, "seq 1 20000")

        text = await result(TaskOutputTool(tasks), tmp_path, task_id=info.id)

    assert "[only the end of what is new]\n" in text
    assert text.endswith("\n19999\n20000")
    assert 30 * 1024 < len(text) < 33 * 1024


async def test_task_stop_ends_a_task(home: Home, tmp_path: Path) -> None:
    async with home.serving() as tasks:
        info = await start(tasks, "echo begun; exec sleep 600")
        await until(lambda: info.output.read_bytes() == b"begun\n")

        text = await result(TaskStopTool(tasks), tmp_path, task_id=info.id)

    assert re.fullmatch(rf"task {info.id}: stopped, exit code 143, \d+ s", text)


@pytest.mark.parametrize("state", ["finished", "failed", "stopped", "lost"])
def test_task_end_is_read_from_its_line(state: TaskState) -> None:
    info = TaskInfo("0a1b2c3d", "command", "t", state, 1.0, Path("/o"), ended_at=3.0, note="a note")

    assert state_line(info) == f"task 0a1b2c3d: {state}, 2 s (a note)"
    assert ended_in_result("TaskOutput", f"{state_line(info)}\nmore") == "0a1b2c3d"
    assert ended_in_result("TaskStop", state_line(info)) == "0a1b2c3d"
    assert ended_in_result("Bash", state_line(info)) is None


def test_task_end_is_not_read_from_other_results() -> None:
    running = TaskInfo("0a1b2c3d", "command", "t", "running", 1.0, Path("/o"))

    for text in (state_line(running), "", "see\ntask 0a1b2c3d: finished", "task 0a1b2c3d: finishing"):
        assert ended_in_result("TaskOutput", text) is None


def test_arguments_are_bounded() -> None:
    assert TaskOutputInput(task_id="x").timeout == 30_000
    for wrong in ({"timeout": 600_001}, {"timeout": -1}, {"filter": "x" * 1001}, {"filter": ""}, {"task_id": ""}):
        with pytest.raises(ValueError, match="validation error"):
            TaskOutputInput.model_validate({"task_id": "x", **wrong})
    with pytest.raises(ValueError, match="validation error"):
        TaskStopInput(task_id="")


def test_tool_descriptions_are_short() -> None:
    for tool, most in ((TaskOutputTool(BackgroundTasks()), 700), (TaskStopTool(BackgroundTasks()), 250)):
        definition = tool.definition
        assert len(json.dumps([definition.name, definition.description, definition.input_schema])) < most


def test_task_tools_only_read_and_run_beside_others() -> None:
    assert TaskOutputTool(BackgroundTasks()).may_run_in_parallel(TaskOutputInput(task_id="x"))
    assert TaskOutputTool(BackgroundTasks()).only_reads
    assert TaskStopTool(BackgroundTasks()).only_reads
    assert TaskOutputTool(BackgroundTasks()).time_limit_s(TaskOutputInput(task_id="x", timeout=2000)) == 2
    assert TaskOutputTool(BackgroundTasks()).timeout_s is None
