import os
import resource
import shlex
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from panpan.capabilities.shell.bash import BashInput, BashTool
from tests.capabilities.shell.conftest import Shell


def is_running(pid: int) -> bool:
    """Return whether there is such a process; one that only waits to be reaped does not count."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False).stdout
    return bool(shown.strip()) and not shown.strip().startswith(b"Z")


async def until_gone(pid_file: Path) -> bool:
    """Return whether the process whose number is in the file ends soon."""
    pid = int(await anyio.Path(pid_file).read_text())
    for _ in range(1000):
        if not is_running(pid):
            return True
        await anyio.sleep(0.02)
    return False


def is_written(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


async def until_written(path: Path) -> None:
    with anyio.fail_after(20):
        while not is_written(path):  # noqa: ASYNC110 - another process writes it
            await anyio.sleep(0.01)


async def test_timeout_keeps_the_output(shell: Shell) -> None:
    for timeout in (300, 3_000, 15_000):  # a machine that stands still has not printed anything when the time is up
        output = await shell.run("echo so far; touch printed; sleep 60; echo never", timeout=timeout)
        if (shell.root / "printed").exists():
            break

    said = f"[timed out after {timeout / 1000:g} s and was stopped; what it printed until then is above]"
    assert output.content == f"so far\n{said}"
    assert output.is_error


@pytest.mark.parametrize(
    "command",
    [
        "trap '' TERM HUP INT; echo $$ >pid; while :; do sleep 1; done",
        "setsid sh -c 'echo $$ >pid; exec sleep 60'",
        "(setsid sh -c 'trap \"\" TERM; echo $$ >pid; sleep 60; sleep 60' &) ; sleep 60",
        "sleep 60 & echo $! >pid; sleep 60",
    ],
    ids=["ignores TERM", "own session", "double fork that ignores TERM", "background child"],
)
async def test_timeout_ends_the_whole_tree(shell: Shell, command: str) -> None:
    for timeout in (700, 3_000, 15_000):  # a machine that stands still has started nothing when the time is up
        output = await shell.run(command, timeout=timeout)
        assert f"timed out after {timeout / 1000:g} s" in str(output.content)
        if is_written(shell.root / "pid"):
            break

    assert await until_gone(shell.root / "pid")


async def test_leaving_early_ends_the_whole_tree(shell: Shell) -> None:
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as task_group:
            task_group.start_soon(shell.run, "setsid sh -c 'echo $$ >pid; exec sleep 60'")
            await until_written(shell.root / "pid")
            scope.cancel()

    assert await until_gone(shell.root / "pid")


async def test_background_child_does_not_hang_the_call(shell: Shell) -> None:
    text = await shell.text("sleep 60 & echo $! >pid; echo started")

    assert text.startswith("started\n[something still runs in the background]\n")
    os.kill(int((shell.root / "pid").read_text()), 9)


async def test_background_job_lives_on_and_its_output_file_is_named(
    shell: Shell,
) -> None:
    job = "echo first; touch up; while ! [ -e go ]; do sleep 0.02; done; echo second; echo third >&2; touch done"

    text = await shell.text(f"({job}) & while ! [ -e up ]; do sleep 0.01; done; echo started")
    (shell.root / "go").touch()
    with anyio.fail_after(20):
        while not (shell.root / "done").exists():  # noqa: ASYNC110 - another process makes it
            await anyio.sleep(0.01)

    head, _, place = text.partition("\n[something still runs in the background]\n[what it prints from now on goes to ")
    assert sorted(head.split("\n")) == ["first", "started"]
    file = shell.ctx.paths.resolve(place.removesuffix("]"), access="read")
    with anyio.fail_after(20):
        while file.read_text() != "second\nthird\n":  # noqa: ASYNC110 - a thread of the tool writes it
            await anyio.sleep(0.01)


async def test_background_job_with_its_own_file_is_not_mentioned(shell: Shell) -> None:
    job = "sh -c 'echo $$ >pid; exec sleep 60' >log 2>&1"

    text = await shell.text(f"{job} & while ! [ -s pid ]; do sleep 0.01; done; echo ok")

    assert text == "ok"
    os.kill(int((shell.root / "pid").read_text()), 9)


async def test_child_that_holds_the_pipe_does_not_hang_the_call(shell: Shell) -> None:
    text = await shell.text(
        "setsid sh -c 'echo $$ >pid; exec sleep 60' & while ! [ -s pid ]; do sleep 0.01; done; echo ok"
    )

    assert text.startswith("ok\n[something still runs in the background]\n")
    os.kill(int((shell.root / "pid").read_text()), 9)


async def test_output_flood_costs_neither_memory_nor_its_end(shell: Shell) -> None:
    flood = "import sys; line = b'x' * 99 + b'\\n'\nfor _ in range(20): sys.stdout.buffer.write(line * 100_000)"
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    text = await shell.text(f"{shlex.quote(sys.executable)} -c {shlex.quote(flood)}; echo the end")

    after_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert text.endswith("the end")
    assert "of 200,000,008 characters left out" in text
    assert after_kb - before_kb < 40_000
    assert all(len(part) < 10_000 for part in shell.progress)


async def test_output_flood_in_one_line_is_bounded(shell: Shell) -> None:
    text = await shell.text("head -c 5000000 /dev/zero | tr '\\0' x; echo; echo the end")

    assert text.endswith("x\nthe end")
    assert len(text) < 31_000


async def test_consumer_that_stops_listening_leaves_no_process(shell: Shell) -> None:
    generator = BashTool().run(BashInput(command="echo $$ >pid; echo hi; sleep 60"), shell.ctx)

    async for _ in generator:
        break
    await generator.aclose()

    assert await until_gone(shell.root / "pid")
