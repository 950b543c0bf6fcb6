"""A program that has the terminal: it ends in good order, with all it started, and the terminal is brought back."""

import os
import sys
from pathlib import Path

import anyio
import pytest

from panpan.system.processes.foreground import run_in_foreground

PROGRAM = """
import os, pathlib, signal, subprocess, sys, time
here = pathlib.Path({folder!r})
def end(*_):
    (here / "ended").touch()
    sys.exit(0)
signal.signal(signal.SIGTERM, {on_term})
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session={is_server})
(here / "child.new").write_text(str(child.pid))
(here / "child.new").rename(here / "child")
time.sleep(600)
"""


def program(folder: Path, *, on_term: str = "end", is_server: bool = False) -> list[str]:
    return [sys.executable, "-c", PROGRAM.format(folder=str(folder), on_term=on_term, is_server=is_server)]


async def child_of_cancelled(folder: Path, argv: list[str]) -> int:
    """Run a program, cancel it when it has started its child, and return that one's number."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_in_foreground, argv, os.environ)
        with anyio.fail_after(20):
            while not (folder / "child").exists():  # noqa: ASYNC110 - another process makes it
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    return int((folder / "child").read_text())


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("exit_code", [0, 3])
async def test_foreground_exit_code_comes_back_with_the_terminal(
    exit_code: int, capfd: pytest.CaptureFixture[str]
) -> None:
    assert await run_in_foreground([sys.executable, "-c", f"raise SystemExit({exit_code})"], os.environ) == exit_code
    assert capfd.readouterr().out == ""


async def test_foreground_kill_restores_the_screen(capfd: pytest.CaptureFixture[str]) -> None:
    argv = [sys.executable, "-c", "import os; os.write(1, b'\\x1b[?1049h\\x1b[?25l'); os.kill(os.getpid(), 9)"]

    assert await run_in_foreground(argv, os.environ) == -9

    written = capfd.readouterr().out
    assert written.index("\x1b[?1049h") < written.index("\x1b[?1049l")
    assert written.index("\x1b[?25l") < written.index("\x1b[?25h")


async def test_foreground_cancel_ends_the_program_and_its_child(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    child = await child_of_cancelled(tmp_path, program(tmp_path))

    assert (tmp_path / "ended").exists()
    assert not is_running(child)
    assert capfd.readouterr().out == ""


async def test_foreground_program_that_does_not_end_is_killed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    child = await child_of_cancelled(tmp_path, program(tmp_path, on_term="signal.SIG_IGN"))

    assert not is_running(child)
    assert "\x1b[?1049l" in capfd.readouterr().out


async def test_foreground_background_server_is_left_alone(tmp_path: Path) -> None:
    child = await child_of_cancelled(tmp_path, program(tmp_path, is_server=True))

    try:
        assert is_running(child)
    finally:
        os.kill(child, 9)


async def test_foreground_program_that_cannot_start_is_an_error() -> None:
    with pytest.raises(OSError, match="no-such-program"):
        await run_in_foreground(["no-such-program"], os.environ)
