"""Commands that are started in the background, or moved there while they run."""

import os
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import pytest

from panpan.capabilities.background.background_tasks import BackgroundTasks
from panpan.capabilities.shell.bash import BashInput, BashTool
from panpan.config.settings import BackgroundSettings
from panpan.core.tool import ToolContext
from panpan.errors import ToolError
from panpan.system.files.output_store import OutputStore
from panpan.system.processes.own_process import with_watchdog
from panpan.system.processes.process_table import running_processes
from panpan.system.text.redact import KnownKeys
from panpan.types.content import SummaryDisplay
from panpan.types.events import Output, Progress
from tests.capabilities.background.harness import Home
from tests.fakes.context import context_in
from tests.system.backends import on_both_backends, run_on, until


@dataclass
class Desk:
    """A shell in a workspace whose session has background tasks."""

    root: Path
    ctx: ToolContext
    tasks: BackgroundTasks

    async def run(self, **arguments: object) -> Output:
        """Run a command, and return its result."""
        outputs = []
        async with aclosing(BashTool(self.tasks).run(BashInput.model_validate(arguments), self.ctx)) as yields:
            async for one in yields:
                if not isinstance(one, Progress):
                    outputs.append(one)
        assert len(outputs) == 1
        assert isinstance(outputs[0], Output)
        return outputs[0]

    async def moved(self, command: str, *, when: Path, **arguments: object) -> Output:
        """Run a command, and let it be moved to the background when there is a file."""
        results: list[Output] = []

        async def run() -> None:
            results.append(await self.run(command=command, **arguments))

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await until(when.exists)
            assert self.tasks.movable == [self.ctx.tool_use_id]
            assert self.tasks.move() == [self.ctx.tool_use_id]
        assert self.tasks.movable == []
        return results[0]


@asynccontextmanager
async def desk_in(tmp_path: Path, settings: BackgroundSettings | None = None, key: str = "") -> AsyncGenerator[Desk]:
    root = (tmp_path / "work").resolve()
    root.mkdir()
    ctx = replace(context_in(root, tool_use_id="toolu_1"), outputs=OutputStore(tmp_path / "out", keys=KnownKeys([key])))
    async with Home(tmp_path).serving(settings=settings, key=key) as tasks:
        try:
            yield Desk(root, ctx, tasks)
        finally:
            await ctx.processes.end(0)


def descriptors() -> set[str]:
    with_watchdog({})  # what watches over all processes stays
    return set(os.listdir("/proc/self/fd"))  # noqa: PTH208


def running_with(mark: str) -> list[str]:
    return [process.name for process in running_processes().values() if mark in process.marks]


@on_both_backends
def test_background_call_returns_at_once_and_the_command_goes_on(backend: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with desk_in(tmp_path) as desk:
            command = "echo on; while [ ! -e go ]; do sleep 0.01; done; pwd; exit 2"
            output = await desk.run(command=command, run_in_background=True, description="wait for it")

            (info,) = desk.tasks.running
            assert output.text == f"runs in the background as task {info.id}; its output goes to {info.output}"
            assert output.display == SummaryDisplay(text=f"runs in the background as task {info.id} (/tasks)")
            assert (info.title, info.tool_use_id) == ("wait for it", "toolu_1")
            assert running_with(desk.ctx.processes.mark) == []
            (desk.root / "go").touch()
            ended = await desk.tasks.wait(info.id, 20)
            assert (ended.state, ended.exit_code) == ("failed", 2)
            assert info.output.read_text() == f"on\n{desk.root}\n"

    run_on(backend, main)


async def test_background_command_leaves_the_working_directory(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as desk:
        await desk.run(command="mkdir sub; cd sub", run_in_background=True)
        await desk.tasks.drain()

        assert desk.ctx.paths.cwd == desk.root


async def test_background_command_needs_background_tasks(tmp_path: Path) -> None:
    tool = BashTool()
    ctx = context_in(tmp_path)
    with pytest.raises(ToolError, match="nothing can run in the background here; call again without"):
        async with aclosing(tool.run(BashInput(command="touch made", run_in_background=True), ctx)) as yields:
            async for _ in yields:
                pass

    assert not (tmp_path / "made").exists()


def test_background_question_names_where_it_would_run() -> None:
    tool = BashTool()

    assert tool.title(BashInput(command="make\nmake check", run_in_background=True)) == "make … (in the background)"
    assert tool.time_limit_s(BashInput(command="make", run_in_background=True)) is None
    assert tool.may_run_in_parallel(BashInput(command="ls", run_in_background=True))
    assert not tool.may_run_in_parallel(BashInput(command="make", run_in_background=True))


@on_both_backends
def test_moved_command_keeps_its_output(backend: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with desk_in(tmp_path, key="sk-very-secret-key") as desk:
            before = descriptors()
            lines = "".join(f"line {number}\n" for number in range(9000))
            (desk.root / "lines").write_text(lines)
            command = (
                "cat lines; printf 'sk-very'; touch up; while [ ! -e go ]; do sleep 0.01; done; "
                "echo -secret-key; cd /; exit 4"
            )
            output = await desk.moved(command, when=desk.root / "up")

            (info,) = desk.tasks.running
            assert output.text == (
                f"the user wants it in the background: it goes on in the background as task {info.id}, and ends with "
                f"panpan; what it printed so far, and what it prints from now on, is in {info.output}"
            )
            assert output.display == SummaryDisplay(text=f"goes on in the background as task {info.id} (/tasks)")
            assert not output.is_error
            await until(lambda: info.output.read_text() == lines)  # what was in the pipe is read from there
            (desk.root / "go").touch()
            ended = await desk.tasks.wait(info.id, 20)

            assert (ended.state, ended.exit_code) == ("failed", 4)
            assert info.output.read_text() == f"{lines}[redacted]\n"
            assert desk.ctx.paths.cwd == desk.root
            assert [path.name for path in (tmp_path / "out").iterdir()] == [info.output.name]
            assert descriptors() <= before

    run_on(backend, main)


async def test_moved_command_may_have_closed_its_output(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as desk:
        await desk.moved("touch up; exec >&- 2>&-; sleep 600", when=desk.root / "up")

        (info,) = desk.tasks.running
        assert (await desk.tasks.stop(info.id)).state == "stopped"


async def test_moved_command_is_stopped_with_all_its_processes(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as desk:
        await desk.moved("setsid sleep 600 & touch up; sleep 600", when=desk.root / "up")
        (info,) = desk.tasks.running

        ended = await desk.tasks.stop(info.id)

        assert ended.state == "stopped"
        assert running_with(desk.ctx.processes.mark) == []


async def test_moved_command_ends_with_the_session(tmp_path: Path) -> None:
    home = Home(tmp_path)
    root = tmp_path / "work"
    root.mkdir()
    ctx = context_in(root.resolve(), tool_use_id="toolu_1")
    async with home.serving(keep=True) as tasks:
        await Desk(root, ctx, tasks).moved("touch up; sleep 600", when=root / "up")

    assert [task.state for task in tasks.tasks] == ["stopped"]
    assert running_with(ctx.processes.mark) == []


class JustEnded(BackgroundTasks):
    """Background tasks of a session that ends in the moment in which the user wants a command to go on."""

    @contextmanager
    def foreground(self, tool_use_id: str, on_asked: Callable[[], None] = lambda: None) -> Iterator[anyio.Event]:
        with super().foreground(tool_use_id, on_asked) as asked:
            asked.set()
            yield asked


async def test_command_moved_at_the_sessions_end_leaves_nothing(tmp_path: Path) -> None:
    ctx = context_in(tmp_path, tool_use_id="toolu_1")
    tasks = JustEnded()
    before = descriptors()

    with pytest.raises(ToolError, match="the session is ending"):
        await Desk(tmp_path, ctx, tasks).run(command="sleep 600 & sleep 600")

    assert tasks.tasks == []
    assert running_with(ctx.processes.mark) == []
    assert descriptors() <= before


async def test_moved_command_that_prints_without_end_is_stopped(tmp_path: Path) -> None:
    async with desk_in(tmp_path, BackgroundSettings(max_output_mb=1)) as desk:
        await desk.moved("touch up; while [ ! -e go ]; do sleep 0.01; done; yes", when=desk.root / "up")
        (info,) = desk.tasks.running
        (desk.root / "go").touch()

        ended = await desk.tasks.wait(info.id, 20)

        assert ended.state == "stopped"
        assert "more than 1 MB" in ended.note
        assert info.output.stat().st_size <= 10**6


async def test_move_affects_only_the_named_call(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as desk:
        with desk.tasks.foreground("a") as first, desk.tasks.foreground("b") as second:
            assert desk.tasks.movable == ["a", "b"]
            assert desk.tasks.move("b") == ["b"]
            assert desk.tasks.move("c") == []
            assert (first.is_set(), second.is_set()) == (False, True)
            assert desk.tasks.movable == ["a"]


async def test_timeout_moves_the_command_if_the_user_wants(tmp_path: Path) -> None:
    async with desk_in(tmp_path, BackgroundSettings(at_timeout="go_on")) as desk:
        output = await desk.run(command="echo on; while [ ! -e go ]; do sleep 0.01; done; echo off", timeout=300)

        (info,) = desk.tasks.running
        assert output.text.startswith(f"its time was up, so it goes on in the background as task {info.id}, ")
        shown = f"its time was up; it goes on in the background as task {info.id} (/tasks)"
        assert output.display == SummaryDisplay(text=shown)
        (desk.root / "go").touch()
        assert (await desk.tasks.wait(info.id, 20)).state == "finished"
        assert info.output.read_text() == "on\noff\n"


async def test_timeout_stops_the_command_if_too_many_run(tmp_path: Path) -> None:
    async with desk_in(tmp_path, BackgroundSettings(at_timeout="go_on", max_tasks=1)) as desk:
        await desk.run(command="sleep 600", timeout=100)
        output = await desk.run(command="sleep 600", timeout=100)

        assert "timed out after 0.1 s and was stopped" in output.text
        assert len(desk.tasks.tasks) == 1


async def test_timeout_stops_the_command_by_default(tmp_path: Path) -> None:
    async with desk_in(tmp_path) as desk:
        output = await desk.run(command="sleep 600", timeout=100)

        assert "timed out after 0.1 s and was stopped" in output.text
        assert desk.tasks.tasks == []
