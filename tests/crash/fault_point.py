"""Runs panpan so that something befalls it right before its N-th write, fsync, rename, start of a process or the like.

    python -m tests.crash.fault_point FAULT N REPORT ARGUMENTS...

FAULT is `kill` (SIGKILL), `full` (from then on no file can grow, as on a full disk) or `sync` (from then on no fsync
succeeds). With N = 0 nothing befalls it, and REPORT gets a line for each moment that there was. What a process does
between two such moments nobody else can see, so that a kill there is the same as one right before the second.
"""

import errno
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

CALLS = ("write", "pwrite", "fsync", "fdatasync", "rename", "replace", "link", "unlink", "mkdir", "posix_spawn", "kill")
"""Functions of `os` after which something outside of this process is not as it was."""

_WRITES = os.O_WRONLY | os.O_RDWR


class FaultPoint:
    """Counts moments, and lets the fault come at one.

    Args:
        befalls: The fault.
        at: The number of the moment, from 1; 0: never.
        report: File that gets a line for each, where it never comes.
    """

    def __init__(self, befalls: Callable[[], None], at: int, report: Path) -> None:
        self._befalls = befalls
        self._at = at
        self._left = at
        self._lock = threading.Lock()
        self._report = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._write, self._pid = os.write, os.getpid()

    def passed(self, name: str) -> None:
        """One more moment has come."""
        if os.getpid() != self._pid:  # a child that was forked and has not begun to be another program
            return
        with self._lock:
            if self._at == 0:
                self._write(self._report, f"{name}\n".encode())
                return
            self._left -= 1
            if self._left == 0:
                self._befalls()

    def before(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        """Return `function` with a moment before it."""

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.passed(name)
            return function(*args, **kwargs)

        return counted

    def heard(self, event: str, args: tuple[Any, ...]) -> None:
        """An audit hook: files that are opened for writing, whichever way."""
        if event == "open" and isinstance(args[2], int) and args[2] & _WRITES:
            self.passed("open")


def killed(kill: Callable[[int, int], None] = os.kill) -> None:
    """End this process at once."""
    kill(os.getpid(), signal.SIGKILL)
    signal.pause()


def disk_is_full() -> None:
    """Let no file grow any more, neither here nor in what is started from here."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))


class Sync:
    """The fsync of a disk that may fail."""

    def __init__(self) -> None:
        self._fails = False
        self._fsync = os.fsync

    def breaks(self) -> None:
        """Fail from now on."""
        self._fails = True

    def __call__(self, fd: int) -> None:
        if self._fails:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._fsync(fd)


def main() -> None:
    """Run the command line in this process."""
    sync = Sync()
    os.fsync = os.fdatasync = sync  # type: ignore[assignment]
    faults = {"kill": killed, "full": disk_is_full, "sync": sync.breaks}
    point = FaultPoint(faults[sys.argv[1]], int(sys.argv[2]), Path(sys.argv[3]))
    for name in CALLS:
        setattr(os, name, point.before(getattr(os, name), name))
    subprocess._fork_exec = point.before(subprocess._fork_exec, "fork_exec")  # type: ignore[attr-defined]
    sys.addaudithook(point.heard)
    sys.argv = ["panpan", *sys.argv[4:]]
    from panpan.cli.start import main as start

    sys.exit(start())  # type: ignore[func-returns-value]


if __name__ == "__main__":
    main()
