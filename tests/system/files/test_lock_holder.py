"""Who holds a lock is told where the system knows it, and nobody is accused where it does not."""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from panpan.system.files.file_lock import lock_holder

_HOLD = """
import fcntl, os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(fd, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process holds the lock for the length of the block."""
    argv = [sys.executable, "-c", _HOLD, str(path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.communicate()


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path / "locked", os.O_RDWR | os.O_CREAT)
    yield fd
    os.close(fd)


def tells_of_locks(fd: int) -> bool:
    """Whether this system has a table of locks that names this very process; boxes and other systems may not."""
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        return lock_holder(fd) is not None
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)


def test_the_process_is_named_with_its_command_and_when_it_was_started(opened: int, tmp_path: Path) -> None:
    is_told = tells_of_locks(opened)
    with held(tmp_path / "locked") as process:
        holder = lock_holder(opened)

    if not is_told:
        assert holder is None
        return
    assert holder is not None
    assert holder.pid == process.pid
    assert holder.command.endswith(str(tmp_path / "locked"))
    assert holder.started_at is not None
    assert abs(time.time() - holder.started_at) < 3600


def test_a_lock_that_nobody_holds_has_no_holder(opened: int) -> None:
    assert lock_holder(opened) is None


def test_a_system_without_such_a_table_names_nobody(opened: int, tmp_path: Path) -> None:
    assert lock_holder(opened, proc=tmp_path / "no-proc") is None


def table(tmp_path: Path, line: str) -> Path:
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "locks").write_text(line)
    return proc


def test_a_process_that_does_not_have_the_file_open_is_not_named(opened: int, tmp_path: Path) -> None:
    inode = os.fstat(opened).st_ino
    proc = table(tmp_path, f"1: FLOCK  ADVISORY  WRITE 77 00:2f:{inode} 0 EOF\n")
    (proc / "77" / "fd").mkdir(parents=True)
    (proc / "77" / "fd" / "3").symlink_to(tmp_path)

    assert lock_holder(opened, proc=proc) is None


@pytest.mark.parametrize("locked", ["fd", "none"])
def test_what_is_missing_of_a_process_is_left_out(opened: int, tmp_path: Path, locked: str) -> None:
    inode = os.fstat(opened).st_ino
    lines = ["garbage", "2: -> FLOCK x", f"1: FLOCK  ADVISORY  WRITE 77 00:2f:{inode} 0 EOF"]
    proc = table(tmp_path, "\n".join(lines))
    if locked == "fd":
        (proc / "77" / "fd").mkdir(parents=True)
        (proc / "77" / "fd" / "3").symlink_to(tmp_path / "locked")

    holder = lock_holder(opened, proc=proc)

    if locked == "none":
        assert holder is None
    else:
        assert holder is not None
        assert (holder.pid, holder.command, holder.started_at) == (77, "", None)
