"""Tests of the process runner."""

import os
import resource
import signal
import sys
import tracemalloc
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from anyio import CancelScope
from anyio.abc import Process

from panpan.errors import ToolError
from panpan.system.environment import child_environment
from panpan.system.processes.own_process import with_watchdog
from panpan.system.processes.process import (
    Captured,
    Child,
    ChildHandover,
    OutputPipe,
    ProcessEnded,
    capture,
    run_child,
    run_process,
)
from panpan.system.processes.process_table import ProcessTree
from tests.system.backends import on_both_backends, run_on, until


class Ending:
    """A process that has ended, or ends when it is killed; its code is known once it is waited for."""

    pid = 0

    def __init__(self, *, has_ended: bool) -> None:
        self.returncode: int | None = None
        self.kills = 0
        self._end = anyio.Event()
        if has_ended:
            self._end.set()

    def kill(self) -> None:
        self.kills += 1
        self._end.set()

    async def wait(self) -> int:
        await self._end.wait()
        self.returncode = 0
        return 0


@pytest.mark.parametrize(("has_ended", "kills"), [(True, 0), (False, 1)])
async def test_end_tree_kills_only_survivors_again(has_ended: bool, kills: int) -> None:
    process, output = Ending(has_ended=has_ended), OutputPipe()
    child = Child(cast("Process", cast("Any", process)), ProcessTree(), output, None)

    await child.end_tree(0.1)
    child.close()

    assert process.kills == kills
    assert child.has_ended


ENV = {"PATH": os.environ["PATH"]}

# Each leaves a process behind that writes its number to $1 and cannot be ended by ending its parent. The process keeps
# its number through `exec`.
SURVIVORS = {
    "child": "sh -c 'echo $$ > $0; exec sleep 600' $1 & wait",
    "ignores TERM": "sh -c 'trap \"\" TERM; echo $$ > $0; while :; do sleep 0.05; done' $1 & wait",
    "main process ignores TERM": "trap '' TERM; echo $$ > $1; while :; do sleep 0.05; done",
    "own session": "setsid sh -c 'echo $$ > $0; exec sleep 600' $1 & wait",
    "own session, ignores TERM": "setsid sh -c 'trap \"\" TERM; echo $$ > $0; while :; do sleep 0.05; done' $1 & wait",
    "orphan in its own session": "(setsid sh -c 'echo $$ > $0; exec sleep 600' $1 &); sleep 600",
    "silent daemon": "(setsid sh -c 'echo $$ > $0; exec sleep 600' $1 </dev/null >/dev/null 2>&1 &); sleep 600",
    "clears its environment": "(env -i setsid sh -c 'echo $$ > $0; exec sleep 600' $1 &); sleep 600",
    "stopped": "sh -c 'echo $$ > $0; kill -STOP $$; sleep 600' $1 & wait",
    "nohup": "nohup sh -c 'echo $$ > $0; exec sleep 600' $1 >/dev/null 2>&1 & sleep 600",
}
all_survivors = pytest.mark.parametrize("script", SURVIVORS.values(), ids=SURVIVORS.keys())


def is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def open_descriptors() -> list[str]:
    with_watchdog({})  # what watches over all processes stays
    return sorted(entry.name for entry in Path("/proc/self/fd").iterdir())


def has_number(file: Path) -> bool:
    return file.exists() and file.read_text().endswith("\n")


async def everything(script: str, *arguments: str, timeout_s: float | None = 20) -> tuple[bytes, ProcessEnded]:
    argv = ["sh", "-c", script, "sh", *arguments]
    return await everything_of(run_process(argv, cwd=Path("/"), env=ENV, timeout_s=timeout_s, kill_grace_s=0.1))


async def everything_of(
    process: AsyncGenerator[bytes | ProcessEnded | ChildHandover, None],
) -> tuple[bytes, ProcessEnded]:
    output = bytearray()
    async with aclosing(process) as items:
        async for item in items:
            assert not isinstance(item, ChildHandover)
            if isinstance(item, ProcessEnded):
                return bytes(output), item
            output += item
    raise AssertionError("the process never ended")


@on_both_backends
def test_output_and_errors_come_in_printed_order(backend: str) -> None:
    async def main() -> None:
        output, ended = await everything("echo one; echo two >&2; echo three; exit 7")

        assert output == b"one\ntwo\nthree\n"
        assert ended == ProcessEnded(exit_code=7, timed_out=False)

    run_on(backend, main)


@on_both_backends
def test_output_is_yielded_while_the_process_runs(backend: str, tmp_path: Path) -> None:
    async def main() -> None:
        go_on = tmp_path / "go-on"
        script = "echo first; until test -e $1; do sleep 0.01; done; echo second"
        argv = ["sh", "-c", script, "sh", str(go_on)]

        async with aclosing(run_process(argv, cwd=Path("/"), env=ENV, timeout_s=20)) as items:
            first = await anext(items)
            go_on.touch()
            rest = [item async for item in items]

        assert first == b"first\n"
        assert rest == [b"second\n", ProcessEnded(0, timed_out=False)]

    run_on(backend, main)


async def test_input_is_empty() -> None:
    output, ended = await everything("cat; if read line; then echo got $line; fi; echo end")

    assert output == b"end\n"
    assert ended.exit_code == 0


async def test_process_that_gives_way_has_a_low_priority() -> None:
    script = "import os\nwhile os.getpriority(os.PRIO_PROCESS, 0) != 10: pass"  # os.nice(0) writes back what it reads
    done = await capture([sys.executable, "-S", "-c", script], cwd=Path("/"), timeout_s=30, gives_way=True)

    assert (done.exit_code, done.timed_out) == (0, False)


async def test_process_leads_its_own_session_without_a_terminal() -> None:
    output, _ = await everything("ps -o pid=,sid=,tty= -p $$")

    pid, session, terminal = output.split()
    assert pid == session
    assert terminal == b"?"


async def test_process_ended_by_a_signal_has_the_exit_code_of_a_shell() -> None:
    _, ended = await everything("kill -KILL $$")

    assert ended == ProcessEnded(exit_code=128 + signal.SIGKILL, timed_out=False)


@on_both_backends
def test_command_ends_while_a_background_child_holds_its_pipe(backend: str, tmp_path: Path) -> None:
    async def main() -> None:
        session = ProcessTree()
        pid_file = tmp_path / "pid"
        argv = ["sh", "-c", "head -c 50000 /dev/zero; sleep 600 & echo $! > $1", "sh", str(pid_file)]

        async with aclosing(run_process(argv, cwd=Path("/"), env=session.marked(ENV), timeout_s=20)) as items:
            collected = [item async for item in items]
        child = int(pid_file.read_text())
        was_left_alone = is_running(child)
        remaining = await session.end(0.1)

        assert collected[-1] == ProcessEnded(0, timed_out=False)
        assert sum(len(chunk) for chunk in collected[:-1] if isinstance(chunk, bytes)) == 50000
        assert was_left_alone
        assert remaining == []
        assert not is_running(child)

    run_on(backend, main)


@on_both_backends
@pytest.mark.parametrize(
    ("script", "timeout_s", "is_taken"),
    [
        pytest.param("sleep 600 & echo x; touch $0", 20, True, id="held"),
        pytest.param("echo x; touch $0", 20, False, id="not held"),
        pytest.param("echo x; touch $0; setsid sleep 600", 0.1, False, id="timed out"),
    ],
)
def test_pipe_held_by_a_background_child_is_handed_over(
    backend: str, script: str, timeout_s: float, is_taken: bool, tmp_path: Path
) -> None:
    async def main() -> None:
        session = ProcessTree()
        taken: list[int] = []
        before = open_descriptors()
        has_printed = tmp_path / "printed"
        argv = ["sh", "-c", script, str(has_printed)]
        child = await Child.start(argv, cwd=Path("/"), env=session.marked(ENV), has_stderr=False)
        await until(has_printed.exists)

        following = run_child(child, timeout_s=timeout_s, kill_grace_s=0.1, take_pipe=taken.append)
        async with aclosing(following) as items:
            collected = [item async for item in items]
        await session.end(0.1)
        rest = [os.read(fd, 100) for fd in taken]
        for fd in taken:
            os.close(fd)

        assert collected[0] == b"x\n"
        assert rest == ([b""] if is_taken else [])
        assert open_descriptors() == before

    run_on(backend, main)


@on_both_backends
def test_command_ends_while_a_background_child_keeps_printing(backend: str) -> None:
    async def main() -> None:
        session = ProcessTree()
        argv = ["sh", "-c", "yes & sleep 0.05; exit 3"]

        async with aclosing(run_process(argv, cwd=Path("/"), env=session.marked(ENV), timeout_s=20)) as items:
            last = [item async for item in items][-1]
        await session.end(0)

        assert last == ProcessEnded(3, timed_out=False)

    run_on(backend, main)


async def test_process_that_closes_its_output_is_awaited() -> None:
    output, ended = await everything("echo before; exec >&- 2>&-; sleep 0.1; exit 9")

    assert output == b"before\n"
    assert ended == ProcessEnded(9, timed_out=False)


@on_both_backends
def test_timeout_ends_the_whole_tree_and_keeps_the_output(backend: str, tmp_path: Path) -> None:
    async def main() -> None:
        ended_by_file: dict[Path, tuple[bytes, ProcessEnded]] = {}

        async def run(script: str, pid_file: Path) -> None:
            argv = ["sh", "-c", f"echo partial; {script}", "sh", str(pid_file)]
            child = await Child.start(argv, cwd=Path("/"), env=ENV, has_stderr=False)
            await until(lambda: has_number(pid_file))  # its time begins behind that
            ended_by_file[pid_file] = await everything_of(run_child(child, timeout_s=0.1, kill_grace_s=0.1))

        async with anyio.create_task_group() as task_group:
            for number, script in enumerate(SURVIVORS.values()):
                task_group.start_soon(run, script, tmp_path / str(number))

        assert len(ended_by_file) == len(SURVIVORS)
        for pid_file, (output, ended) in ended_by_file.items():
            assert output == b"partial\n"
            assert ended.timed_out
            assert ended.exit_code != 0
            assert not is_running(int(pid_file.read_text()))

    run_on(backend, main)


@on_both_backends
@all_survivors
def test_closing_the_generator_ends_the_whole_tree(backend: str, script: str, tmp_path: Path) -> None:
    async def main() -> None:
        pid_file = tmp_path / "pid"
        argv = ["sh", "-c", f"echo started; {script}", "sh", str(pid_file)]

        async with aclosing(run_process(argv, cwd=Path("/"), env=ENV, timeout_s=None, kill_grace_s=0.1)) as items:
            await anext(items)
            await until(lambda: has_number(pid_file))

        assert not is_running(int(pid_file.read_text()))

    run_on(backend, main)


@on_both_backends
def test_leaving_early_skips_the_grace_of_a_timeout(backend: str, tmp_path: Path) -> None:
    async def main() -> None:
        pid_file = tmp_path / "pid"
        argv = ["sh", "-c", f"trap '' TERM; echo started; echo $$ > {pid_file}; while :; do sleep 0.01; done"]

        # with that grace the test would hang
        async with aclosing(run_process(argv, cwd=Path("/"), env=ENV, timeout_s=None, kill_grace_s=3600)) as items:
            await anext(items)
            await until(lambda: has_number(pid_file))

        assert not is_running(int(pid_file.read_text()))

    run_on(backend, main)


@on_both_backends
def test_cancelling_the_consumer_ends_the_whole_tree(backend: str, tmp_path: Path) -> None:
    async def main() -> None:
        pid_files = [tmp_path / str(number) for number in range(len(SURVIVORS))]

        async with anyio.create_task_group() as task_group:
            for script, pid_file in zip(SURVIVORS.values(), pid_files, strict=True):
                task_group.start_soon(partial(everything, script, str(pid_file), timeout_s=None))
            await until(lambda: all(has_number(pid_file) for pid_file in pid_files))
            task_group.cancel_scope.cancel()

        assert not [pid_file for pid_file in pid_files if is_running(int(pid_file.read_text()))]

    run_on(backend, main)


@on_both_backends
def test_consumer_that_raises_leaves_nothing_behind(backend: str, tmp_path: Path) -> None:
    async def main() -> None:
        argv = ["sh", "-c", "echo $$; exec sleep 600"]
        seen = b""

        with pytest.raises(KeyError):
            async with aclosing(run_process(argv, cwd=tmp_path, env=ENV, timeout_s=None)) as items:
                async for item in items:
                    assert isinstance(item, bytes)
                    seen = item
                    raise KeyError

        assert not is_running(int(seen))

    run_on(backend, main)


@on_both_backends
def test_cancelled_start_leaves_nothing_behind(backend: str, tmp_path: Path) -> None:
    async def main() -> None:
        session = ProcessTree()

        with CancelScope() as scope:
            scope.cancel()
            async with aclosing(
                run_process(["sleep", "600"], cwd=tmp_path, env=session.marked(ENV), timeout_s=None)
            ) as items:
                async for _ in items:
                    pass

        assert session.members() == []

    run_on(backend, main)


async def test_timeout_spares_other_commands(tmp_path: Path) -> None:
    collected: list[tuple[bytes, ProcessEnded]] = []
    other_is_up = tmp_path / "up"
    first_is_over = tmp_path / "over"

    async def run_other() -> None:
        script = "touch $1; until test -e $2; do sleep 0.01; done; echo unharmed"
        collected.append(await everything(script, str(other_is_up), str(first_is_over)))

    async with anyio.create_task_group() as task_group:
        task_group.start_soon(run_other)
        await until(other_is_up.exists)
        _, ended = await everything("sleep 600", timeout_s=0.05)
        first_is_over.touch()

    assert ended.timed_out
    assert collected == [(b"unharmed\n", ProcessEnded(0, timed_out=False))]


async def test_process_that_keeps_starting_others_is_ended(tmp_path: Path) -> None:
    session = ProcessTree()
    argv = ["sh", "-c", "trap '' TERM; echo up; while :; do setsid sleep 600 & sleep 0.01; done"]

    async with aclosing(
        run_process(argv, cwd=tmp_path, env=session.marked(ENV), timeout_s=None, kill_grace_s=0.1)
    ) as items:
        await anext(items)

    assert session.members() == []


@on_both_backends
def test_hundreds_of_megabytes_cost_constant_memory(backend: str) -> None:
    async def main() -> None:
        size = 200_000_000
        received = 0

        tracemalloc.start()
        try:
            argv = ["head", "-c", str(size), "/dev/zero"]
            async with aclosing(run_process(argv, cwd=Path("/"), env=ENV, timeout_s=60)) as items:
                async for item in items:
                    received += len(item) if isinstance(item, bytes) else 0
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

        assert received == size
        assert peak < 10_000_000

    run_on(backend, main)


@on_both_backends
@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["no-such-program-here", "x"], "cannot start no-such-program-here: there is no such program"),
        (["/etc/passwd"], "cannot start /etc/passwd: Permission denied"),
        (["echo", "a\0b"], "cannot start echo: embedded null byte"),
        ([], "there is no program to start"),
    ],
)
def test_command_that_cannot_start_is_a_tool_error(backend: str, argv: list[str], said: str) -> None:
    async def main() -> None:
        open_before = len(open_descriptors())

        with pytest.raises(ToolError, match=f"^{said}$"):
            await capture(argv, cwd=Path("/"), timeout_s=30)
        with pytest.raises(ToolError, match=f"^{said}$"):
            async with aclosing(run_process(argv, cwd=Path("/"), env=ENV, timeout_s=30)) as items:
                await anext(items)

        assert len(open_descriptors()) == open_before

    run_on(backend, main)


async def test_missing_working_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"the working directory .*/gone is not a folder"):
        await capture(["true"], cwd=tmp_path / "gone", timeout_s=30)


@on_both_backends
def test_runner_leaves_no_descriptor_open(backend: str, tmp_path: Path) -> None:
    async def main() -> None:
        await everything("true")
        open_before = open_descriptors()

        for _ in range(5):
            await everything("echo x")
            await everything("sleep 600", timeout_s=0.01)
            await capture(["true"], cwd=tmp_path, timeout_s=30)

        assert open_descriptors() == open_before

    run_on(backend, main)


@on_both_backends
def test_capture_keeps_output_and_errors_apart(backend: str, tmp_path: Path) -> None:
    async def main() -> None:
        script = "import sys; sys.stdout.write('o' * 300000); sys.stderr.write('e' * 300000); sys.exit(4)"

        captured = await capture([sys.executable, "-c", script], cwd=tmp_path, timeout_s=20)

        assert captured == Captured(4, b"o" * 300000, b"e" * 300000, timed_out=False, is_truncated=False)

    run_on(backend, main)


@on_both_backends
def test_capture_ends_a_program_that_prints_too_much(backend: str, tmp_path: Path) -> None:
    async def main() -> None:
        captured = await capture(["yes"], cwd=tmp_path, timeout_s=20, max_bytes=1000)

        assert captured.stdout == b"y\n" * 500
        assert captured.is_truncated
        assert not captured.timed_out

    run_on(backend, main)


async def test_capture_takes_exactly_its_limit(tmp_path: Path) -> None:
    captured = await capture(["printf", "12345"], cwd=tmp_path, timeout_s=20, max_bytes=5)

    assert captured.stdout == b"12345"
    assert not captured.is_truncated


@on_both_backends
def test_capture_bounds_the_time_and_keeps_the_output(backend: str, tmp_path: Path) -> None:
    async def main() -> None:
        for timeout_s in (0.3, 3, 15):  # a machine that stands still has not printed anything when the time is up
            captured = await capture(["sh", "-c", "echo here; exec sleep 600"], cwd=tmp_path, timeout_s=timeout_s)
            assert captured.timed_out
            if captured.stdout:
                break

        assert captured.stdout == b"here\n"
        assert captured.exit_code == 128 + signal.SIGTERM

    run_on(backend, main)


@on_both_backends
def test_capture_leaves_no_holder_of_its_pipes(backend: str, tmp_path: Path) -> None:
    async def main() -> None:
        captured = await capture(["sh", "-c", "setsid sleep 600 & echo $!; exit 5"], cwd=tmp_path, timeout_s=20)

        assert captured.exit_code == 5
        assert not is_running(int(captured.stdout))

    run_on(backend, main)


async def test_capture_cancelled_leaves_nothing_behind(tmp_path: Path) -> None:
    session = ProcessTree()
    env = session.marked(child_environment())
    is_up = tmp_path / "up"

    async with anyio.create_task_group() as task_group:

        async def run() -> None:
            await capture(["sh", "-c", "touch $0; sleep 600", str(is_up)], cwd=tmp_path, env=env, timeout_s=None)

        task_group.start_soon(run)
        await until(is_up.exists)
        task_group.cancel_scope.cancel()

    assert session.members() == []


async def test_environment_is_exactly_the_given_one_with_marks() -> None:
    captured = await capture(["env"], cwd=Path("/"), env={"PATH": ENV["PATH"], "ONE": "1"}, timeout_s=20)

    names = {line.partition(b"=")[0] for line in captured.stdout.splitlines()}
    assert names - {b"PWD", b"SHLVL", b"_"} == {b"PATH", b"ONE", b"PANPAN_PROCESS_MARKS"}


@on_both_backends
@pytest.mark.parametrize("free", [0, 1, 2, 3, 4])
def test_descriptor_shortage_is_a_tool_error_and_leaks_none(backend: str, free: int) -> None:
    async def main() -> None:
        before = open_descriptors()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, before)) + 1 + free, hard))
        filler = [os.open("/dev/null", os.O_RDONLY) for _ in range(max(map(int, before)) + 1 - len(before))]
        try:
            with pytest.raises(ToolError, match="too many files are open; run fewer calls at once"):
                await capture(["true"], cwd=Path("/"), env=ENV, timeout_s=30)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for fd in filler:
                os.close(fd)
        assert open_descriptors() == before

    run_on(backend, main)


@on_both_backends
@pytest.mark.parametrize("script", ["echo x; sleep 600", "echo x; exec >&- 2>&-; sleep 600"], ids=["open", "closed"])
@pytest.mark.parametrize("is_taken", [True, False])
def test_process_goes_on_if_taken_over_and_ends_otherwise(backend: str, script: str, is_taken: bool) -> None:
    async def main() -> None:
        before = open_descriptors()
        told: list[bool] = []
        seen: list[object] = []
        children: list[Child] = []

        def leaves(is_time_up: bool) -> bool:
            told.append(is_time_up)
            return bool(seen)

        process = run_process(["sh", "-c", script], cwd=Path("/"), env=ENV, timeout_s=20, leaves=leaves)
        async with aclosing(process) as items:
            async for item in items:
                seen.append(item)
                if isinstance(item, ChildHandover) and is_taken:
                    children.append(item.take())
        assert seen[0] == b"x\n"
        assert isinstance(seen[-1], ChildHandover)
        assert True not in told
        if children:
            assert children[0].tree.members() != []
            async with aclosing(run_child(children[0], timeout_s=0.1, kill_grace_s=0.1)) as items:
                rest = [item async for item in items]
            assert rest[-1] == ProcessEnded(exit_code=143, timed_out=True)
        assert open_descriptors() == before

    run_on(backend, main)


@on_both_backends
@pytest.mark.parametrize("goes_on", [True, False])
def test_process_out_of_time_is_offered_for_takeover(backend: str, goes_on: bool) -> None:
    async def main() -> None:
        process = run_process(
            ["sleep", "600"],
            cwd=Path("/"),
            env=ENV,
            timeout_s=0.1,
            kill_grace_s=0.1,
            leaves=lambda is_time_up: is_time_up and goes_on,
        )
        async with aclosing(process) as items:
            last = [item async for item in items][-1]

        assert isinstance(last, ChildHandover) if goes_on else last == ProcessEnded(exit_code=143, timed_out=True)

    run_on(backend, main)
