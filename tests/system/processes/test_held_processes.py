"""Processes stand still while they are held, and go on afterwards; with real processes."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from panpan.system.processes.detached import HeldProcesses, mark_as_user_command
from panpan.system.processes.process_table import MARKS_VARIABLE, ProcessTree, RunningProcess
from tests.fakes.processes import UnreachableTree, sleeping
from tests.system.backends import on_both_backends, run_on, until

PATH_ONLY = {"PATH": os.environ["PATH"]}
BEATS = "while :; do echo x >> beats; sleep 0.01; done"


class Tree(ProcessTree):
    """A tree that is told what was started with it."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, folder: Path, command: str, env: Mapping[str, str] = PATH_ONLY) -> "subprocess.Popen[bytes]":
        folder.mkdir(exist_ok=True)
        self.started.append(subprocess.Popen(["/bin/sh", "-c", command], cwd=folder, env=self.marked(env)))
        return self.started[-1]

    def kill(self) -> None:
        held = HeldProcesses(self)
        for _ in range(50):
            if held.hold():  # so that none has children meanwhile
                break
        for process in self.members():
            with suppress(ProcessLookupError):  # one that was waited for by its parent just now
                os.kill(process.pid, signal.SIGKILL)
        for popen in self.started:
            popen.wait()


@pytest.fixture
def tree() -> Iterator[Tree]:
    tree = Tree()
    yield tree
    tree.kill()


def moving(tree: ProcessTree) -> list[str]:
    """Return states of what neither stands still nor waits in the kernel until a stopped child begins (vfork(2))."""
    members = tree.members()
    states = {one.pid: Path(f"/proc/{one.pid}/stat").read_text().rpartition(")")[2].split()[0] for one in members}
    waiting = {one.parent for one in members if states[one.pid] == "T"}
    return [state for pid, state in states.items() if state != "T" and not (state == "D" and pid in waiting)]


def beats(folder: Path) -> int:
    file = folder / "beats"
    return file.stat().st_size if file.exists() else 0


async def until_it_beats(folder: Path) -> None:
    before = beats(folder)
    await until(lambda: beats(folder) > before)


async def hold_all(held: HeldProcesses) -> None:
    held.hold()
    with anyio.fail_after(20):
        while await held.hold_rest():  # a disk that stands still keeps what waits for it from stopping
            pass


async def test_held_processes_change_nothing_until_released(tmp_path: Path, tree: Tree) -> None:
    witness = Tree()
    witness.start(tmp_path / "other", BEATS)
    tree.start(tmp_path / "held", f"setsid sh -c '{BEATS}' & {BEATS}")
    await until_it_beats(tmp_path / "held")
    held = HeldProcesses(tree)

    await hold_all(held)
    before = beats(tmp_path / "held")
    await until_it_beats(tmp_path / "other")  # time has passed in which it could have gone on
    await until_it_beats(tmp_path / "other")
    assert beats(tmp_path / "held") == before
    assert any(name.startswith("sh (") for name in held.names)

    held.release()
    await until_it_beats(tmp_path / "held")
    assert held.names == []
    witness.kill()


@pytest.mark.parametrize(("child", "stands_still"), [("T", True), ("S", False)])
async def test_held_shell_waiting_in_the_kernel_stands_with_its_child(
    tmp_path: Path, tree: Tree, child: str, stands_still: bool
) -> None:
    shell = tree.start(tmp_path / "one", "sleep 600; true")
    await until(lambda: {one.name for one in tree.members()} == {"sh", "sleep"})

    held = HeldProcesses(tree, state_of=lambda process: "D" if process.pid == shell.pid else child)

    held.hold()  # what it returns depends on the machine's load: it gives up where a look takes long
    assert (await held.hold_rest() == []) == stands_still
    held.release()


async def test_hold_covers_several_trees(tmp_path: Path, tree: Tree) -> None:
    other = Tree()
    other.start(tmp_path / "other", BEATS)
    tree.start(tmp_path / "one", BEATS)
    await until_it_beats(tmp_path / "other")
    await until_it_beats(tmp_path / "one")
    held = HeldProcesses(tree, other)

    await hold_all(held)

    assert (moving(tree), moving(other)) == ([], [])
    assert tree.members()
    assert other.members()
    held.release()
    await until_it_beats(tmp_path / "other")
    other.kill()


async def test_hold_catches_processes_that_multiply(tmp_path: Path, tree: Tree) -> None:
    tree.start(tmp_path, "while :; do (echo x >> beats; sleep 0.05) & sleep 0.01; done")
    await until_it_beats(tmp_path)

    await hold_all(HeldProcesses(tree))

    assert moving(tree) == []
    assert tree.members()


class SlowToShow(Tree):
    """Each look at it takes long, and shows one process more."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def members_among(self, processes: Mapping[int, RunningProcess]) -> list[RunningProcess]:
        time.sleep(0.3)
        self.looks += 1
        return super().members_among(processes)[: self.looks]


async def test_hold_catches_late_processes_despite_slow_lookups(tmp_path: Path) -> None:
    slow = SlowToShow()
    for _ in range(4):
        slow.start(tmp_path, "exec sleep 600")
    held = HeldProcesses(slow)
    try:
        assert not held.hold()
        assert await held.hold_rest() == []

        assert len(held.names) == 4
    finally:
        for process in slow.started:
            process.kill()
            process.wait()


async def test_hold_spares_processes_of_the_user(tmp_path: Path, tree: Tree) -> None:
    tree.start(tmp_path, BEATS, mark_as_user_command(tree, PATH_ONLY))
    await until_it_beats(tmp_path)
    held = HeldProcesses(tree)

    await hold_all(held)

    await until_it_beats(tmp_path)
    assert held.names == []
    assert tree.members()  # it belongs to the session all the same


async def test_held_process_ends_with_its_tree(tmp_path: Path, tree: Tree) -> None:
    process = tree.start(tmp_path, BEATS)
    await until_it_beats(tmp_path)
    held = HeldProcesses(tree)
    await hold_all(held)

    assert await tree.end(1) == []

    assert process.wait() == -signal.SIGTERM
    assert held.names == []


@on_both_backends
def test_hold_names_processes_that_cannot_be_stopped(backend: str) -> None:
    async def main() -> None:
        tree = UnreachableTree()
        process = sleeping(tree)
        held = HeldProcesses(tree)
        try:
            await until(lambda: [one.name for one in tree.members()] == ["sleep"])

            assert not held.hold()
            assert await held.hold_rest() == [f"sleep ({process.pid})"]
            held.release()
            assert await held.hold_rest() == []
        finally:
            process.kill()
            process.wait()

    run_on(backend, main)


def test_hold_of_an_empty_tree_needs_no_lookup() -> None:
    assert HeldProcesses(ProcessTree()).hold()


def test_users_mark_belongs_to_one_tree() -> None:
    tree, inner = ProcessTree(), ProcessTree()

    env = inner.marked(tree.marked(mark_as_user_command(tree, PATH_ONLY)))

    assert env[MARKS_VARIABLE].split(":")[-3:] == [f"{tree.mark}00", tree.mark, inner.mark]
