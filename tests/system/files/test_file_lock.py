"""Tests of locks between processes."""

import errno
import fcntl
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from panpan.errors import ConfigError
from panpan.system.files.file_lock import LockHeldError, LockUnsupportedError, hold_lock, lock_holder

HOLDER = """
import sys
from pathlib import Path
from panpan.system.files.file_lock import hold_lock
with hold_lock(Path(sys.argv[1]), wait_s=10):
    print("held", flush=True)
    sys.stdin.readline()
"""


def start_holder(path: Path) -> "subprocess.Popen[str]":
    """Start a process that holds the lock until its input ends."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_lock_of_another_process_is_an_error_that_names_it(tmp_path: Path) -> None:
    with start_holder(tmp_path / "lock") as holder:
        with (
            pytest.raises(LockHeldError, match=f"is locked by process {holder.pid}") as caught,
            hold_lock(tmp_path / "lock", wait_s=0),
        ):
            pass
        holder.communicate("")

    assert caught.value.pid == holder.pid
    with hold_lock(tmp_path / "lock", wait_s=0):
        pass


def test_lock_ends_with_a_killed_process(tmp_path: Path) -> None:
    with start_holder(tmp_path / "lock") as holder:
        holder.kill()
        holder.wait()

    with hold_lock(tmp_path / "lock", wait_s=0):
        pass


def test_lock_released_in_time_is_awaited(tmp_path: Path) -> None:
    with start_holder(tmp_path / "lock") as holder:
        assert holder.stdin is not None
        timer = threading.Timer(0.05, holder.stdin.close)
        timer.start()

        with hold_lock(tmp_path / "lock", wait_s=30):
            is_over = holder.stdin.closed

        timer.join()
    assert is_over


def test_locks_in_one_process_exclude_each_other(tmp_path: Path) -> None:
    with (
        hold_lock(tmp_path / "lock", wait_s=0),
        pytest.raises(LockHeldError, match=f"is locked by process {os.getpid()}"),
        hold_lock(tmp_path / "lock", wait_s=0),
    ):
        pass


def test_lock_is_released_when_the_block_fails(tmp_path: Path) -> None:
    with pytest.raises(KeyError), hold_lock(tmp_path / "lock", wait_s=0):
        raise KeyError

    with hold_lock(tmp_path / "lock", wait_s=0):
        pass


def test_removed_lock_file_does_not_let_two_in(tmp_path: Path) -> None:
    with hold_lock(tmp_path / "lock", wait_s=0):
        (tmp_path / "lock").unlink()

        # then: the new file is another lock; whoever waited on the old one comes to the new
        with hold_lock(tmp_path / "lock", wait_s=0):
            assert (tmp_path / "lock").exists()


def test_unreadable_lock_file_names_nobody(tmp_path: Path) -> None:
    with start_holder(tmp_path / "lock") as holder:
        (tmp_path / "lock").write_text("nonsense")
        with pytest.raises(LockHeldError, match="is locked by another process"), hold_lock(tmp_path / "lock", wait_s=0):
            pass
        holder.communicate("")


def test_lock_file_is_private_and_its_folder_unchanged(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project").chmod(0o755)

    with hold_lock(tmp_path / "project" / "lock", wait_s=0):
        mode = stat.S_IMODE((tmp_path / "project" / "lock").stat().st_mode)
    with hold_lock(tmp_path / "new" / "lock", wait_s=0):
        new_mode = stat.S_IMODE((tmp_path / "new").stat().st_mode)

    assert mode == 0o600
    assert stat.S_IMODE((tmp_path / "project").stat().st_mode) == 0o755
    assert new_mode == 0o700


def test_lock_is_not_inherited_by_children(tmp_path: Path) -> None:
    with hold_lock(tmp_path / "lock", wait_s=0):
        child = subprocess.Popen(["sleep", "600"])
    try:
        with hold_lock(tmp_path / "lock", wait_s=0):
            pass
    finally:
        child.kill()
        child.wait()


def test_lock_file_that_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("elsewhere")

    for name in ("folder", "fifo", "link"):
        with pytest.raises(ConfigError), hold_lock(tmp_path / name, wait_s=0):
            pass


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_file_system_without_locks_is_told_apart(code: int, tmp_path: Path) -> None:
    def no_locks(fd: int, operation: int) -> None:
        raise OSError(code, os.strerror(code))

    with (
        pytest.raises(LockUnsupportedError, match="on a file system without locks"),
        hold_lock(tmp_path / "lock", wait_s=0, lock=no_locks),
    ):
        pass


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
    """True if this system has a table of locks that names this process; boxes and other systems may not."""
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        return lock_holder(fd) is not None
    finally:
        fcntl.flock(fd, fcntl.LOCK_UN)


def test_lock_holder_has_its_command_and_start_time(opened: int, tmp_path: Path) -> None:
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


def test_lock_holder_of_a_free_lock_is_none(opened: int) -> None:
    assert lock_holder(opened) is None


def test_lock_holder_without_a_table_is_none(opened: int, tmp_path: Path) -> None:
    assert lock_holder(opened, proc=tmp_path / "no-proc") is None


def table(tmp_path: Path, line: str) -> Path:
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "locks").write_text(line)
    return proc


def test_lock_holder_must_have_the_file_open(opened: int, tmp_path: Path) -> None:
    inode = os.fstat(opened).st_ino
    proc = table(tmp_path, f"1: FLOCK  ADVISORY  WRITE 77 00:2f:{inode} 0 EOF\n")
    (proc / "77" / "fd").mkdir(parents=True)
    (proc / "77" / "fd" / "3").symlink_to(tmp_path)

    assert lock_holder(opened, proc=proc) is None


@pytest.mark.parametrize("locked", ["fd", "none"])
def test_lock_holder_omits_unknown_parts(opened: int, tmp_path: Path, locked: str) -> None:
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
