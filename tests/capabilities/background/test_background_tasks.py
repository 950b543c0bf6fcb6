import os
import re
import stat
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import anyio
import pytest

from panpan.capabilities.background.background_tasks import BackgroundTasks
from panpan.capabilities.background.task import MAX_ENDED
from panpan.config.settings import BackgroundSettings
from panpan.core.background import BackgroundCommand, JobEnd, MovedCommand
from panpan.core.conversation import Conversation
from panpan.errors import ToolError
from panpan.system.files.output_store import DetachedOutput
from panpan.system.processes.process import Child
from panpan.system.processes.process_table import running_processes
from panpan.system.text.redact import KnownKeys
from tests.capabilities.background.harness import ENV, Home, news, start
from tests.system.backends import on_both_backends, run_on, until


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path.resolve())


def marked(mark: str) -> list[str]:
    return sorted(process.name for process in running_processes().values() if mark in process.marks)


async def output_of(tasks: BackgroundTasks, task_id: str, pattern: str | None = None, max_bytes: int = 1000) -> str:
    return (await tasks.output(task_id, pattern=pattern, max_bytes=max_bytes)).text


# commands


@on_both_backends
def test_task_runs_beside_everything_else_to_a_known_end(backend: str, home: Home) -> None:
    async def main() -> None:
        async with home.serving() as tasks:
            info = await start(tasks, "echo begun; while [ ! -e go ]; do sleep 0.01; done; exit 3", cwd=home.folder)

            assert (info.state, info.exit_code, info.kind, info.title) == ("running", None, "command", "a test")
            assert len(info.id) == 8
            assert [task.id for task in tasks.running] == [info.id]
            (home.folder / "go").touch()
            ended = await tasks.wait(info.id, 20)

            assert (ended.state, ended.exit_code, ended.tool_use_id) == ("failed", 3, "toolu_1")
            assert ended.ended_at is not None
            assert ended.ended_at >= ended.started_at
            assert await output_of(tasks, info.id) == "begun\n"
            assert tasks.running == []
            assert tasks.tasks == [ended]

    run_on(backend, main)


async def test_wait_ends_with_its_time(home: Home) -> None:
    async with home.serving() as tasks:
        info = await start(tasks, "sleep 600")

        assert (await tasks.wait(info.id, 0)).is_running


async def test_waiting_hears_of_each_change(home: Home) -> None:
    async with home.serving() as tasks:
        states: list[list[str]] = []

        async def follow() -> None:
            while len(states) < 2:
                await tasks.wait_changed()
                states.append([task.state for task in tasks.tasks])

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(follow)
                await anyio.wait_all_tasks_blocked()
                await start(tasks, "true")
                await tasks.drain()

        assert states == [["running"], ["finished"]]


@on_both_backends
def test_stop_ends_a_task_with_all_its_processes(backend: str, home: Home) -> None:
    async def main() -> None:
        async with home.serving() as tasks:
            info = await start(tasks, "setsid sleep 600 & (sleep 600 &) ; echo up; sleep 600")
            await until(lambda: info.output.read_bytes() == b"up\n")
            assert len(marked(tasks.tree.mark)) >= 4

            ended = await tasks.stop(info.id)

            assert ended.state == "stopped"
            assert marked(tasks.tree.mark) == []
            assert await tasks.stop(info.id) == ended

    run_on(backend, main)


async def test_unknown_task_error_names_the_running_ones(home: Home) -> None:
    async with home.serving() as tasks:
        info = await start(tasks, "sleep 600")

        for use in (
            tasks.stop("0123abcd"),
            tasks.wait("0123abcd", 0),
            tasks.output("0123abcd", pattern=None, max_bytes=1),
        ):
            with pytest.raises(ToolError, match=f"there is no background task '0123abcd'; running are: {info.id}"):
                await use


async def test_running_tasks_are_limited(home: Home) -> None:
    async with home.serving(settings=BackgroundSettings(max_tasks=2)) as tasks:
        first = await start(tasks, "sleep 600")
        await start(tasks, "sleep 600")
        closed: list[str] = []

        async with AsyncExitStack() as resources:
            resources.callback(closed.append, "yes")
            with pytest.raises(ToolError, match="2 tasks run in the background, the most allowed"):
                await tasks.start_command(BackgroundCommand(["true"], Path("/"), ENV, (), "true", "t", "u"), resources)
        assert closed == ["yes"]
        await tasks.stop(first.id)

        assert (await start(tasks, "sleep 600")).is_running


async def test_task_that_cannot_start_leaves_nothing(home: Home) -> None:
    async with home.serving() as tasks:
        async with AsyncExitStack() as resources:
            with pytest.raises(ToolError, match="cannot start the command in the background"):
                await tasks.start_command(
                    BackgroundCommand(["true", "x" * 3_000_000], Path("/"), ENV, (), "true", "t", "u"), resources
                )

        assert tasks.tasks == []
        assert list((home.folder / "tasks").iterdir()) == []


async def test_resources_of_a_task_are_closed_at_its_end(home: Home) -> None:
    async with home.serving() as tasks:
        closed: list[str] = []
        async with AsyncExitStack() as resources:
            resources.callback(closed.append, "yes")
            script = f"while [ ! -e {home.folder}/go ]; do sleep 0.01; done"
            info = await tasks.start_command(
                BackgroundCommand(["sh", "-c", script], Path("/"), ENV, (), script, "t", "u"), resources
            )

        assert closed == []
        (home.folder / "go").touch()
        await tasks.wait(info.id, 20)
        assert closed == ["yes"]


async def test_endlessly_printing_task_is_stopped(home: Home) -> None:
    async with home.serving(settings=BackgroundSettings(max_output_mb=1)) as tasks:
        info = await start(tasks, "yes")

        ended = await tasks.wait(info.id, 20)

        assert ended.state == "stopped"
        assert ended.note == "stopped because it printed more than 1 MB (setting background.max_output_mb)"


async def test_stop_ends_the_processes_a_task_left_running(home: Home) -> None:
    async with home.serving() as tasks:
        info = await start(tasks, "sleep 600 & exit 0")
        await tasks.wait(info.id, 20)
        assert marked(tasks.tree.mark) == ["sleep"]

        stopped = await tasks.stop(info.id)

        assert marked(tasks.tree.mark) == []
        assert (stopped.state, stopped.note) == ("finished", "processes that it left were stopped")
        assert (await tasks.stop(info.id)) == stopped


async def test_leftover_processes_share_the_output_limit(home: Home) -> None:
    flood = "while :; do head -c 100000 /dev/zero; sleep 0.01; done"
    async with home.serving(settings=BackgroundSettings(max_output_mb=1)) as tasks:
        info = await start(tasks, f"({flood}) & exit 0")
        await tasks.wait(info.id, 20)

        await until(lambda: marked(tasks.tree.mark) == [])
        await until(lambda: "more than 1 MB" in tasks.tasks[0].note)


async def test_task_without_a_record_is_not_started(home: Home) -> None:
    (home.folder / "tasks").touch()
    async with home.serving() as tasks:
        with pytest.raises(ToolError, match="its record cannot be written"):
            await start(tasks, "sleep 600")

        assert (tasks.tasks, marked(tasks.tree.mark)) == ([], [])


async def test_leftover_processes_are_named_and_end_with_the_session(home: Home) -> None:
    async with home.serving() as tasks:
        info = await start(tasks, "sleep 600 & echo done")

        ended = await tasks.wait(info.id, 20)

        assert ended.state == "finished"
        assert re.match(r"still running of it: (sleep|sh|bash) \(", ended.note)  # a moment ago it was the shell
    assert marked(tasks.tree.mark) == []


async def test_title_is_one_short_line_that_drives_no_terminal(home: Home) -> None:
    async with home.serving() as tasks:
        info = await start(tasks, "true", title="a\x1b[2J\nb " + "x" * 500)

        assert info.title == "a b " + "x" * 196


async def test_task_files_are_private(home: Home) -> None:
    async with home.serving() as tasks:
        info = await start(tasks, "true")
        await tasks.wait(info.id, 20)

    kept = [*(home.folder / "tasks").iterdir(), info.output]
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}
    assert {stat.S_IMODE(path.parent.stat().st_mode) for path in kept} == {0o700}


# the end of the session


async def test_session_end_stops_and_names_running_tasks(home: Home) -> None:
    async with home.serving() as tasks:
        info = await start(tasks, "trap '' TERM; setsid sleep 600 & while :; do sleep 0.05; done", title="a server")

    assert marked(tasks.tree.mark) == []
    assert [task.state for task in tasks.tasks] == ["stopped"]
    assert home.warnings == [f"stopped in the background with the session: {info.id} (a server): exit code 137"]
    assert [task.state for task in home.opened().tasks] == ["stopped"]


async def test_session_end_says_that_plan_mode_holds_a_task(home: Home) -> None:
    async with home.serving(keep=True, is_locked=True) as tasks:
        await start(tasks, "sleep 600")
        home.warnings.clear()

    assert home.warnings[0].startswith("left in the background, stopped as in plan mode, to be found")
    await home.opened().close(keep=False)


async def test_session_end_leaves_commands_if_the_user_wants(home: Home) -> None:
    async with home.serving(keep=True) as tasks:
        left_over = await start(tasks, "setsid sleep 600 & true")
        await tasks.wait(left_over.id, 20)
        info = await start(tasks, "sleep 600", title="a server")
        await until(lambda: marked(tasks.tree.mark).count("sleep") == 2)
        home.warnings.clear()

    assert marked(tasks.tree.mark).count("sleep") == 1
    assert home.warnings == [f"left in the background, to be found again with the session: {info.id} (a server)"]
    await home.opened().close(keep=False)
    assert marked(tasks.tree.mark) == []


# jobs


@on_both_backends
def test_job_writes_its_output_and_ends_with_its_result(backend: str, home: Home) -> None:
    async def main() -> None:
        async with home.serving(key="sk-very-secret-key") as tasks:

            async def job(write: object) -> JobEnd:
                assert callable(write)
                write("one\n")
                write("the key is sk-very-secret-key\n")
                return JobEnd("all found", is_error=False)

            info = tasks.start_job(kind="subagent", title="look", tool_use_id="toolu_2", agent_id="a" * 8, job=job)
            ended = await tasks.wait(info.id, 20)

            assert (ended.state, ended.agent_id, ended.tool_use_id) == ("finished", "a" * 8, "toolu_2")
            assert await output_of(tasks, info.id) == "one\nthe key is [redacted]\n"

    run_on(backend, main)


async def test_failing_job_costs_itself_alone(home: Home) -> None:
    async def broken(write: object) -> JobEnd:
        raise RuntimeError("no")

    async def refused(write: object) -> JobEnd:
        raise ToolError("there is no such place")

    async def wrong(write: object) -> JobEnd:
        return JobEnd("could not", is_error=True)

    async with home.serving() as tasks:
        infos = [
            tasks.start_job(kind="subagent", title="t", tool_use_id="u", agent_id="a", job=job)
            for job in (broken, refused, wrong)
        ]
        ended = [await tasks.wait(info.id, 20) for info in infos]

        assert [info.state for info in ended] == ["failed"] * 3
        assert [info.note for info in ended] == [
            "it failed unexpectedly: RuntimeError: no",
            "there is no such place",
            "",
        ]


@on_both_backends
def test_job_is_stopped_alone_and_with_the_session(backend: str, home: Home) -> None:
    async def main() -> None:
        ended: list[str] = []

        async def job(write: object) -> JobEnd:
            try:
                await anyio.sleep_forever()
            finally:
                ended.append("x")

        async with home.serving(keep=True) as tasks:
            first, second = (
                tasks.start_job(kind="subagent", title="t", tool_use_id="u", agent_id="a", job=job) for _ in range(2)
            )
            await anyio.wait_all_tasks_blocked()

            assert (await tasks.stop(first.id)).state == "stopped"
            assert ended == ["x"]
            assert [task.id for task in tasks.running] == [second.id]

        assert ended == ["x", "x"]
        assert [(task.state, task.note) for task in tasks.tasks] == [
            ("stopped", ""),
            ("stopped", "panpan ended before it did"),
        ]

    run_on(backend, main)


async def test_jobs_count_towards_the_limit(home: Home) -> None:
    async def job(write: object) -> JobEnd:
        await anyio.sleep_forever()
        raise AssertionError

    async with home.serving(settings=BackgroundSettings(max_tasks=1)) as tasks:
        tasks.start_job(kind="subagent", title="t", tool_use_id="u", agent_id="a", job=job)

        with pytest.raises(ToolError, match="the most allowed"):
            tasks.start_job(kind="subagent", title="t", tool_use_id="u", agent_id="a", job=job)


async def test_tasks_start_only_while_the_session_is_open(home: Home) -> None:
    tasks = home.opened(settings=BackgroundSettings(at_timeout="go_on"))

    with pytest.raises(RuntimeError, match="not served"):
        await start(tasks, "touch made", cwd=home.folder)
    with tasks.foreground("a") as asked:
        assert tasks.move() == ()
    assert not asked.is_set()
    assert not tasks.continues_after_timeout
    assert tasks.tasks == []
    assert not (home.folder / "made").exists()


async def test_ended_tasks_beyond_the_limit_are_forgotten(home: Home) -> None:
    async def job(write: Callable[[str], None]) -> JobEnd:
        return JobEnd("done", is_error=False)

    async with home.serving() as tasks:
        first = tasks.start_job(kind="subagent", title="t", tool_use_id="u", agent_id="a", job=job)
        for _ in range(MAX_ENDED + 1):
            await tasks.drain()
            last = tasks.start_job(kind="subagent", title="t", tool_use_id="u", agent_id="a", job=job)

        ids = [task.id for task in tasks.tasks]
        assert len(ids) == MAX_ENDED + 1
        assert first.id not in ids
        assert ids[-1] == last.id


# outputs


async def test_output_read_in_an_interrupted_round_is_new_again(home: Home) -> None:
    conversation = Conversation()
    async with home.serving() as tasks:
        info = await start(tasks, "echo one")
        await tasks.wait(info.id, 20)
        read = partial(tasks.read, info.id, pattern=None, max_bytes=1000)
        texts = [(await read()).text]
        await tasks.interrupted(conversation)
        texts.append((await read()).text)
        await news(tasks, conversation)
        await tasks.interrupted(conversation)
        texts.append((await read()).text)

    assert texts == ["one\n", "one\n", ""]


async def test_moved_output_that_cannot_be_kept_is_reported_at_the_end(home: Home) -> None:
    in_the_way = home.folder / "file"
    in_the_way.touch()
    async with home.serving() as tasks:
        child = await Child.start(["sh", "-c", "echo more"], cwd=home.folder, env=ENV, has_stderr=False)
        left = DetachedOutput(in_the_way / "output", KnownKeys().stream(), "")
        info = tasks.take_command(MovedCommand(child, left, "echo more", "t", "toolu_1", 0.0), AsyncExitStack())
        ended = await tasks.wait(info.id, 20)

    assert ended.state == "finished"
    assert "not all of its output could be kept" in ended.note


async def test_model_reads_on_where_it_stopped(home: Home) -> None:
    async with home.serving() as tasks:
        info = await start(tasks, "printf 'one\\ntw'; while [ ! -e go ]; do sleep 0.01; done; echo o", cwd=home.folder)
        await until(lambda: info.output.read_bytes() == b"one\ntw")
        first = await tasks.read(info.id, pattern=None, max_bytes=1000)
        (home.folder / "go").touch()
        await tasks.wait(info.id, 20)
        second = await tasks.read(info.id, pattern=None, max_bytes=1000)
        third = await tasks.read(info.id, pattern=None, max_bytes=1000)

        assert [one.text for one in (first, second, third)] == ["one\ntw", "two\n", ""]
        assert await output_of(tasks, info.id) == "one\ntwo\n"


async def test_long_output_is_shown_from_the_start_of_a_late_line(home: Home) -> None:
    async with home.serving() as tasks:
        info = await start(tasks, "seq 1 100000")
        await tasks.wait(info.id, 20)

        output = await tasks.read(info.id, pattern=None, max_bytes=18)

        assert (output.text, output.is_cut, output.path) == ("99999\n100000\n", True, info.output)


async def test_keys_are_redacted_even_at_the_edge_of_the_window(home: Home) -> None:
    key = "sk-" + "0123456789" * 5
    async with home.serving(key=key) as tasks:
        info = await start(tasks, f"echo first {key}; echo {key}")
        await tasks.wait(info.id, 20)

        for size in range(1, 140):
            text = await output_of(tasks, info.id, max_bytes=size)
            assert "0123456789" not in text, size
        assert await output_of(tasks, info.id, max_bytes=1000) == "first [redacted]\n[redacted]\n"
        assert await output_of(tasks, info.id, "sk-", max_bytes=1000) == "1:first [redacted]\n2:[redacted]"


async def test_keys_are_redacted_in_output_without_lines(home: Home) -> None:
    key = "sk-" + "0123456789" * 5
    script = f"printf 'xxxxxxxx{key[:20]}'; until [ -e go ]; do sleep 0.01; done; printf '{key[20:]}yyyyyyyy'"
    async with home.serving(key=key) as tasks:
        info = await start(tasks, script, cwd=home.folder)
        await until(lambda: info.output.exists() and info.output.stat().st_size == 28)
        first = (await tasks.read(info.id, pattern=None, max_bytes=10)).text
        (home.folder / "go").touch()
        await tasks.wait(info.id, 20)
        second = (await tasks.read(info.id, pattern=None, max_bytes=100)).text

        assert "0123456789" not in first
        assert second == "[redacted]yyyyyyyy"
        for size in range(1, 70):
            assert "9yyy" not in await output_of(tasks, info.id, max_bytes=size), size


async def test_matching_lines_are_found_in_all_of_the_output(home: Home) -> None:
    async with home.serving() as tasks:
        info = await start(tasks, "seq 1 3000; printf 'a\\rb\\r\\n'")
        await tasks.wait(info.id, 20)
        await tasks.read(info.id, pattern=None, max_bytes=10)

        found = await tasks.read(info.id, pattern="^29.7$", max_bytes=1000)
        cut = await tasks.read(info.id, pattern="7$", max_bytes=15)

        assert (found.text, found.is_cut) == ("\n".join(f"29{digit}7:29{digit}7" for digit in range(10)), False)
        assert (cut.text, cut.is_cut) == ("2997:2997", True)
        assert await output_of(tasks, info.id, "nothing") == ""


async def test_wrong_pattern_is_an_error_and_a_slow_one_blocks_nothing(home: Home) -> None:
    async with home.serving() as tasks:
        info = await start(tasks, f"echo {'a' * 40}b")
        await tasks.wait(info.id, 20)

        with pytest.raises(ToolError, match="the search cannot run"):
            await output_of(tasks, info.id, "(")
        beats = 0
        with anyio.move_on_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(output_of, tasks, info.id, "^(a+)+$")
                while beats < 50:
                    await anyio.sleep(0.01)
                    beats += 1
                group.cancel_scope.cancel()
        assert beats == 50


async def test_silent_task_has_an_empty_output(home: Home) -> None:
    async with home.serving() as tasks:

        async def job(write: object) -> JobEnd:
            return JobEnd("", is_error=False)

        info = tasks.start_job(kind="subagent", title="t", tool_use_id="u", agent_id="a", job=job)
        await tasks.wait(info.id, 20)

        assert await output_of(tasks, info.id) == ""
        assert await output_of(tasks, info.id, "x") == ""


async def test_output_replaced_by_a_link_is_not_followed(home: Home, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hush\n")
    async with home.serving() as tasks:
        info = await start(tasks, "true")
        await tasks.wait(info.id, 20)
        os.unlink(info.output)  # noqa: PTH108
        info.output.symlink_to(secret)

        with pytest.raises(ToolError, match="cannot be read"):
            await output_of(tasks, info.id)
