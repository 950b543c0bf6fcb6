"""Tests of the look at running processes and of trees of them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from threading import Event

import anyio
import pytest

from panpan.system.environment import child_environment
from panpan.system.processes.process import run_process
from panpan.system.processes.process_table import (
    MARKS_VARIABLE,
    ProcessScans,
    ProcessTree,
    RunningProcess,
    parse_ps,
    running_processes,
    send_signal,
)
from tests.system.backends import on_both_backends, run_on, until


class Scan:
    """Counts its calls, and waits in the first one until it may go on."""

    def __init__(self) -> None:
        self.calls = 0
        self.may_go_on = Event()

    def __call__(self) -> Mapping[int, RunningProcess]:
        self.calls += 1
        number = self.calls
        self.may_go_on.wait(30)
        return {number: RunningProcess(number, 1, 1, 1, "0", f"seen by look {number}")}


@on_both_backends
def test_looks_joined_while_one_runs_share_the_next(backend: str) -> None:
    async def main() -> None:
        scan = Scan()
        looks = ProcessScans(scan)
        seen: list[list[int]] = []

        async def one() -> None:
            seen.append(list(await looks.next()))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one)
            await until(lambda: scan.calls == 1)
            for _ in range(8):
                tasks.start_soon(one)
            await anyio.wait_all_tasks_blocked()
            scan.may_go_on.set()

        assert seen == [[1], *[[2]] * 8]
        assert scan.calls == 2

    run_on(backend, main)


@on_both_backends
def test_looks_made_later_are_fresh(backend: str) -> None:
    async def main() -> None:
        scan = Scan()
        scan.may_go_on.set()
        looks = ProcessScans(scan)

        assert [list(await looks.next()) for _ in range(3)] == [[1], [2], [3]]

    run_on(backend, main)


@on_both_backends
def test_abandoned_look_keeps_nobody_waiting(backend: str) -> None:
    async def main() -> None:
        scan = Scan()
        looks = ProcessScans(scan)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(looks.next)
            await until(lambda: scan.calls == 1)
            tasks.cancel_scope.cancel()
            scan.may_go_on.set()

        assert list(await looks.next()) == [2]

    run_on(backend, main)


PATH_ONLY = {"PATH": os.environ["PATH"]}


def start(argv: list[str], tree: ProcessTree) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(argv, env=tree.marked(PATH_ONLY))


def command_of(pid: int) -> str:
    """Return the command line of a process; empty where it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="elsewhere ps tells of all processes at once")
def test_look_at_newer_reads_nothing_of_older_processes() -> None:
    """An older process cannot come from a tree of this one, whatever its environment holds."""
    tree = ProcessTree()
    looks_by_itself = (
        "from panpan.system.processes.process_table import running_processes as look; import os, sys; "
        "print([look(tells_older=told)[int(sys.argv[1])].marks for told in (True, False)])"
    )
    with start(["sleep", "60"], tree) as older:
        time.sleep(2 / os.sysconf("SC_CLK_TCK"))  # the system tells the time of a start in such ticks
        ran = subprocess.run([sys.executable, "-c", looks_by_itself, str(older.pid)], capture_output=True, check=True)
        newer = tree.members()
        older.kill()

    assert ran.stdout.decode().strip() == f"[frozenset({{{tree.mark!r}}}), frozenset()]"
    assert [one.pid for one in newer] == [older.pid]


def test_marks_of_outer_trees_are_kept() -> None:
    outer, inner = ProcessTree(), ProcessTree()

    env = inner.marked(child_environment(outer.marked(PATH_ONLY)))

    assert env[MARKS_VARIABLE].split(":")[-2:] == [outer.mark, inner.mark]


@on_both_backends
def test_session_end_ends_processes_left_running(backend: str) -> None:
    async def main() -> None:
        session, other = ProcessTree(), ProcessTree()
        stranger = start(["sleep", "600"], other)
        for _ in range(3):
            argv = ["sh", "-c", "setsid sleep 600 >/dev/null 2>&1 &"]
            items = [
                item async for item in run_process(argv, cwd=Path("/"), env=session.marked(PATH_ONLY), timeout_s=20)
            ]
            assert len(items) == 1
        await until(lambda: [member.name for member in session.members()] == ["sleep"] * 3)

        remaining = await session.end(1)

        assert remaining == []
        assert session.members() == []
        assert [member.pid for member in other.members()] == [stranger.pid]
        assert await other.end(1) == []
        assert stranger.wait() == -signal.SIGTERM

    run_on(backend, main)


async def test_process_gets_the_time_to_end_by_itself(tmp_path: Path) -> None:
    tree = ProcessTree()
    script = "trap 'echo tidy > $0/tidied; exit 0' TERM; touch $0/up; while :; do sleep 0.01; done"
    process = start(["sh", "-c", script, str(tmp_path)], tree)
    await until((tmp_path / "up").exists)

    await tree.end(10)

    assert process.wait() == 0
    assert (tmp_path / "tidied").read_text() == "tidy\n"


async def test_tree_end_kills_known_processes_without_another_look() -> None:
    seen: list[Mapping[int, RunningProcess]] = []

    async def first_look_only() -> Mapping[int, RunningProcess]:
        if seen:
            await anyio.sleep_forever()
        seen.append(running_processes())
        return seen[0]

    tree = ProcessTree(scan=first_look_only)
    process = start(["sleep", "600"], tree)
    await until(lambda: process.pid in [member.pid for member in tree.members()])

    await tree.end(0)

    assert process.wait(10) == -signal.SIGKILL


async def test_tree_end_kills_a_disguised_child_of_an_ended_parent(tmp_path: Path) -> None:
    tree = ProcessTree()
    stubborn = f"trap '' TERM; touch {tmp_path}/up; while :; do sleep 0.01; done"
    parent = start(["sh", "-c", 'env -i setsid sh -c "$0" & wait', stubborn], tree)
    await until((tmp_path / "up").exists)
    # what is about to become `sleep` is called sh for a moment, too
    await until(lambda: [member.name for member in tree.members() if member.name == "sh"] == ["sh", "sh"])

    remaining = await tree.end(0.2)

    assert remaining == []
    assert parent.wait() == -signal.SIGTERM
    assert [one for one in running_processes().values() if str(tmp_path) in command_of(one.pid)] == []


async def test_tree_end_without_members_does_nothing() -> None:
    assert await ProcessTree().end(10) == []


def test_reused_process_number_is_not_signalled() -> None:
    process = subprocess.Popen(["sleep", "600"])
    try:
        seen = running_processes()[process.pid]
        earlier = RunningProcess(seen.pid, seen.parent, seen.group, seen.session, started="1", name="sleep")

        send_signal(earlier, signal.SIGKILL)
        is_unharmed = process.pid in running_processes()
        send_signal(seen, signal.SIGKILL)

        assert is_unharmed
        assert process.wait() == -signal.SIGKILL
    finally:
        process.kill()


def test_zombies_are_not_listed() -> None:
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    listed = process.pid in running_processes()

    assert not listed
    assert process.wait() == 0


def test_names_with_brackets_and_blanks_are_parsed(tmp_path: Path) -> None:
    odd = tmp_path / "a) S 1 (b"
    odd.symlink_to("/bin/sleep")
    process = subprocess.Popen([str(odd), "600"])
    try:
        seen = running_processes()[process.pid]
    finally:
        process.kill()
        process.wait()

    assert seen.parent == os.getpid()
    assert seen.name == "a) S 1 (b"


@pytest.mark.parametrize("session", ["0", "7fa3c0", "501"])
def test_ps_table_is_read(session: str) -> None:
    text = (
        f"  501   1   501 {session} Ss   Sat Nov 21 23:04:05 2026 /usr/sbin/some daemon\n"
        f"  502 501   501 {session} Z+   Sat Nov 21 23:04:06 2026 (sh)\n"
        "nonsense\n"
    )

    found = list(parse_ps(text))

    assert found == [RunningProcess(501, 1, 501, 501, "Sat Nov 21 23:04:05 2026", "/usr/sbin/some daemon")]
