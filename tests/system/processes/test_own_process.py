"""Tests of panpan's own process: hidden, ended with its parent, and its watchdog."""

import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest

from panpan.system.processes.own_process import Watchdog, wait_for_end_of
from panpan.system.processes.process_table import MARKS_VARIABLE, running_processes
from tests.needed_programs import need
from tests.system.backends import run_on, until
from tests.system.sandbox.boxes import made

SOURCES = f"{Path(__file__).parents[3]}:{Path(anyio.__file__).parents[1]}"
NOBODY = "65534"

CODE = """
import fcntl, os, subprocess, sys
from panpan.system.processes.own_process import hide_process
hide_process(os.environ)
fcntl.flock(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)
subprocess.run(["/bin/sh", "-c", "cat /proc/$PPID/environ | tr '\\\\0' '\\\\n' | grep KEY"])
look = '''
import os, sys
from panpan.system.files.file_lock import lock_holder
holder = lock_holder(os.open(sys.argv[1], os.O_RDONLY))
print(holder is not None and holder.pid == os.getppid())
'''
subprocess.run([sys.executable, "-B", "-c", look, sys.argv[1]])
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can reach and write to."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name).resolve()


def told(folder: Path, **env: str) -> tuple[list[str], str]:
    """Return what the children of a panpan of an ordinary user print, and what goes wrong."""
    need("setpriv")
    need("/usr/bin/python3")
    as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if os.geteuid() == 0 else []
    python = "/usr/bin/python3" if as_nobody else sys.executable
    ended = subprocess.run(
        [*as_nobody, python, "-B", "-u", "-c", CODE, str(folder / "locked")],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env={"PATH": os.environ["PATH"], "PYTHONPATH": SOURCES, "KEY": "secret", **env},
    )
    if "ModuleNotFoundError" in ended.stderr:
        pytest.skip("other users cannot read panpan or its libraries here")
    return ended.stdout.splitlines(), ended.stderr


def test_environment_of_panpan_is_hidden_from_commands(open_folder: Path) -> None:
    lines, errors = told(open_folder)

    assert lines == ["True"], errors  # who owns a lock is known still
    assert "Permission denied" in errors


def test_panpan_within_another_one_stays_visible(open_folder: Path) -> None:
    lines, errors = told(open_folder, **{MARKS_VARIABLE: "0" * 32})

    assert lines == ["KEY=secret", "True"], errors


def test_wait_ends_with_the_process() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    waiting = threading.Thread(target=wait_for_end_of, args=(process.pid,), kwargs={"getppid": lambda: process.pid})
    waiting.start()
    was_waiting = waiting.is_alive()

    process.communicate(b"\n")
    waiting.join(20)

    assert (was_waiting, waiting.is_alive()) == (True, False)


def test_wait_without_a_descriptor_ends_with_another_parent() -> None:
    seen = iter([0, 0, 7])  # 0 is a parent in another namespace, which no descriptor can be had of

    wait_for_end_of(0, getppid=lambda: next(seen))

    assert list(seen) == []


def test_wait_ends_at_once_if_the_parent_is_gone() -> None:
    wait_for_end_of(os.getppid(), getppid=lambda: os.getppid() + 1)


PROGRAM = """
import os, sys
from contextlib import nullcontext
from pathlib import Path
import anyio
from panpan.system.processes.process import run_process
from tests.system.sandbox.boxes import ENV, made
from panpan.system.sandbox.profile import workspace_write

async def main(kind, script, token, folder):
    argv = ["/bin/bash", "-c", script, "bash", token]
    box = nullcontext() if kind == "off" else (await made(kind)).wrap(argv, workspace_write([folder]), folder)
    with box as boxed:
        fds = () if boxed is None else boxed.pass_fds
        running = run_process(argv if boxed is None else boxed.argv, cwd=folder, env=ENV, timeout_s=60, pass_fds=fds)
        async for item in running:
            os.write(1, item)

anyio.run(main, sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]), backend=sys.argv[5])
"""

WAYS_OUT = {
    "in its group": 'sleep "$1"',
    "in a session of its own": 'setsid sleep "$1"',
    "without the environment": 'env -i setsid sleep "$1"',
    "deaf": 'bash -c \'trap "" HUP INT TERM; sleep "$1"\' bash "$1"',
    "below a parent that has ended": '(setsid sleep "$1" >/dev/null 2>&1 &)',
}
ALL_AT_ONCE = '(env -i setsid sleep "$1" >/dev/null 2>&1 &)'
"""A way out that only a sandbox closes."""


@pytest.fixture
def seconds() -> Iterator[str]:
    """Seconds that a test's processes sleep: a number that no other process is given."""
    number = f"600.{secrets.randbelow(10**9):09}"
    yield number
    for pid in asleep(number):
        os.kill(pid, 9)


def asleep(seconds: str) -> list[int]:
    """Return the processes that were told to sleep so long."""
    found = []
    for pid in running_processes():
        words = command_line(pid)
        if seconds in words and words[0] == "sleep":
            found.append(pid)
    return found


def command_line(pid: int) -> list[str]:
    """Return the words that a process was started with; none where it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return []


def begun(argv: list[str]) -> "tuple[subprocess.Popen[bytes], str]":
    """Start a panpan whose command tells its marks first; return it with that of its watchdog."""
    panpan = subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3])
    assert panpan.stdout is not None
    return panpan, panpan.stdout.readline().decode().strip().split(":")[-2]


def killed(panpan: "subprocess.Popen[bytes]") -> None:
    panpan.kill()
    panpan.communicate()


def watches(mark: str) -> bool:
    """Return whether the watchdog of a mark is there, waiting or at work."""
    return any(mark in command_line(pid) for pid in running_processes())


@pytest.mark.parametrize(("kind", "backend"), [("bubblewrap", "asyncio"), ("Landlock", "trio"), ("off", "asyncio")])
@pytest.mark.parametrize("are_started", [False, True])
def test_kill_of_panpan_ends_all_of_a_command(
    kind: str, backend: str, are_started: bool, seconds: str, tmp_path: Path
) -> None:
    ways = [*WAYS_OUT.values(), *(() if kind == "off" else (ALL_AT_ONCE,))]
    script = f"echo $PANPAN_PROCESS_MARKS; {''.join(f'{way} & ' for way in ways)} wait"

    async def main() -> None:
        if kind != "off":
            await made(kind)
        argv = [sys.executable, "-c", PROGRAM, kind, script, seconds, str(tmp_path), backend]
        panpan, mark = begun(argv)
        if are_started:
            await until(lambda: len(asleep(seconds)) == len(ways))

        killed(panpan)

        await until(lambda: not watches(mark))
        assert asleep(seconds) == []

    run_on("asyncio", main)


def test_detached_command_outlives_a_killed_panpan(seconds: str, tmp_path: Path) -> None:
    code = (
        "import os, sys, time\nfrom pathlib import Path\nimport anyio\n"
        "from panpan.system.processes.detached import start_detached\n"
        "from panpan.system.processes.process import capture\n"
        "from panpan.system.processes.process_table import ProcessTree\n"
        "async def main(seconds, folder):\n"
        "    shown = await capture(['sh', '-c', 'echo $PANPAN_PROCESS_MARKS'], cwd=folder, timeout_s=60)\n"
        "    start_detached(['sleep', seconds], cwd=folder, env=dict(os.environ), tree=ProcessTree(),\n"
        "        output=folder / 'out' / 'put', exit_file=folder / 'exit')\n"
        "    print(shown.stdout.decode(), end='', flush=True)\n"
        "    time.sleep(600)\n"
        "anyio.run(main, sys.argv[1], Path(sys.argv[2]))"
    )

    async def main() -> None:
        argv = [sys.executable, "-c", code, seconds, str(tmp_path)]
        panpan, mark = begun(argv)
        await until(lambda: len(asleep(seconds)) == 1)

        killed(panpan)

        await until(lambda: not watches(mark))
        assert len(asleep(seconds)) == 1

    run_on("asyncio", main)


def test_watchdog_leaves_with_an_orderly_end() -> None:
    watchdog = Watchdog()
    mark = watchdog.tree.mark
    assert watches(mark)

    del watchdog

    run_on("asyncio", lambda: until(lambda: not watches(mark)))
