"""Processes that multiply are ended. The bombs and the watch run in a box with process numbers of its own."""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import gettempdir

import pytest

from panpan.system.processes.limits import NOT_COUNTED, Limits, end_fork_bombs, process_watches
from panpan.system.processes.process_table import ProcessTree, RunningProcess
from tests.needed_programs import need
from tests.system.processes.test_limits import BOX, as_ordinary_user

# Starts a command of a session, again where it has ended by itself (a bomb may die out at the limit of the system
# before anybody has counted it), until the watch has ended it or enough is tried; prints what was said and is left.
DRIVER = """
import json, os, sys
from contextlib import aclosing
from pathlib import Path
import anyio
from panpan.system.processes.process import run_process
from panpan.system.processes.process_table import ProcessTree
from panpan.system.processes.limits import end_fork_bombs

async def main(argv, most, tries):
    tree, said, ended = ProcessTree(), [], anyio.Event()
    def warn(text):
        said.append(text)
        ended.set()
    async with anyio.create_task_group() as task_group:
        task_group.start_soon(end_fork_bombs, tree, most, warn)
        await anyio.lowlevel.checkpoint()
        while tries and not ended.is_set():
            tries -= 1
            process = run_process(argv, cwd=Path("/"), env=tree.marked(dict(os.environ)), timeout_s=None)
            async with aclosing(process) as items:
                async for item in items:
                    if isinstance(item, bytes) and not tries:
                        print(item.decode(), end="", flush=True)
            while tries and tree.members():
                await anyio.sleep(0.05)
            with anyio.move_on_after(1):
                await ended.wait()
        task_group.cancel_scope.cancel()
    with anyio.move_on_after(30):  # what was killed has to be collected, on a busy machine a moment later
        while tree.members() or processes() > 3:
            await anyio.sleep(0.05)
    print(json.dumps({"said": said, "members": len(tree.members()), "processes": processes()}))

def processes():
    return sum(name.isdigit() for name in os.listdir("/proc"))

anyio.run(main, json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[4]), backend=sys.argv[3])
"""
TRIES = 10
MOST, HELD = 60, 200

BOMBS = {
    "in the foreground": "f() { f | f & }; f; sleep 600",
    "in the background": "f() { f | f & sleep 1; }; f &",
    "ignores TERM": "trap '' TERM; f() { f | f & }; f; sleep 600",
    "children that stay": "while :; do sleep 600 & done; wait",
    "own sessions, in the background": "(while :; do setsid sleep 600 & done) &",
}


@pytest.fixture
def alone() -> Iterator[None]:
    """No other bomb bursts meanwhile: the watch counts what runs on the machine, and would take one for the other."""
    with (Path(gettempdir()) / f"panpan-bombs-{os.getuid()}").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
def test_multiplying_processes_are_ended_whole(backend: str, bomb: str) -> None:
    need("bwrap")
    need("setpriv")
    need("prlimit")
    # The limit of the system keeps the bomb small enough for a machine that runs tests.
    command = as_ordinary_user(["prlimit", f"--nproc={_own_tasks() + HELD}", "bash", "-c", bomb])

    driver = [sys.executable, "-c", DRIVER, json.dumps(command), str(MOST), backend, str(TRIES)]
    found = subprocess.run(
        [*BOX, *driver], env=dict(os.environ), capture_output=True, text=True, timeout=100, check=False
    )

    assert found.returncode == 0, found.stderr
    result = json.loads(found.stdout)
    assert result["members"] == 0
    assert result["processes"] <= 3  # the first of the box, the driver, and one that is not collected yet
    assert [text.partition(" ended;")[2] for text in result["said"]] == [
        f" {MOST} are allowed (setting limits.processes)"
    ]


class Undying(ProcessTree):
    """A tree that outlives so many attempts to end it."""

    def __init__(self, lives: int) -> None:
        super().__init__(mark="1")
        self.lives = lives

    async def look(self) -> list[RunningProcess]:
        return [RunningProcess(1, 0, 1, 1, "1", "bomb", threads=MOST)]

    async def end(self, grace_s: float = 2.0) -> list[RunningProcess]:
        self.lives -= 1
        return await self.look() if self.lives > 0 else []


@pytest.mark.parametrize(
    ("lives", "said"),
    [(3, "60 processes and threads and were all ended;"), (99, "and were ended, but for 1 that could not be;")],
)
async def test_watch_retries_the_end_and_claims_it_only_if_it_came(lives: int, said: str) -> None:
    warnings: list[str] = []
    counts = iter([10, 10 + MOST, None])

    await end_fork_bombs(Undying(lives), MOST, warnings.append, running_tasks=lambda: next(counts))

    assert said in warnings[0]
    assert warnings[1:] == [NOT_COUNTED]


@pytest.mark.parametrize(
    ("limits", "warnings"),
    [
        (Limits(already_running=None), []),
        (Limits(already_running=None, required=frozenset({"processes"})), [NOT_COUNTED]),
        (Limits(already_running=10, required=frozenset({"processes"})), []),
        (Limits(already_running=None, processes=None, required=frozenset({"processes"})), []),
    ],
)
def test_required_count_that_cannot_begin_is_a_warning(limits: Limits, warnings: list[str]) -> None:
    told: list[str] = []

    watches = process_watches(limits, [ProcessTree(), ProcessTree()], told.append)

    assert told == warnings
    assert len(watches) == (0 if limits.processes is None else 2)


def _own_tasks() -> int:
    """Number of processes and threads that count against the bomb's user before it starts."""
    if os.geteuid() == 0:
        return 0
    mine = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit() and entry.stat().st_uid == os.getuid()]
    return sum(len(list((entry / "task").iterdir())) for entry in mine)


def test_processes_within_the_limit_are_left_alone() -> None:
    need("bwrap")
    script = "for i in $(seq 40); do sleep 600 & done; sleep 1; jobs -r | wc -l; exit"
    watched = DRIVER.replace("move_on_after(30)", "move_on_after(0)")  # nobody ends what the command left

    driver = [sys.executable, "-c", watched, json.dumps(["bash", "-c", script]), str(MOST), "asyncio", "1"]
    found = subprocess.run(
        [*BOX, *driver], env=dict(os.environ), capture_output=True, text=True, timeout=100, check=False
    )

    assert found.stdout.splitlines()[0] == "40"
    assert json.loads(found.stdout.splitlines()[1])["said"] == []
