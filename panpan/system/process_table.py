"""A look at the running processes: who started whom, in which group, and with which marks.

The rule: a look is old at once. Before a process is signalled it is checked to be the one that was seen.
"""

import os
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_DEAD = frozenset("ZX")


@dataclass(frozen=True, slots=True)
class RunningProcess:
    """One process as it was seen."""

    pid: int
    parent: int
    group: int
    session: int
    started: str
    """Tells it from a later process with the same number."""
    name: str


def running_processes() -> dict[int, RunningProcess]:
    """Return all processes by number, without those that are dead and not yet collected."""
    if _has_proc():
        found = (_from_proc(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())
        return {process.pid: process for process in found if process is not None}
    return {process.pid: process for process in parse_ps(_ps("-axo", "pid=,ppid=,pgid=,sess=,stat=,lstart=,comm="))}


def marked(mark: str, pids: Iterable[int]) -> set[int]:
    """Return those of `pids` that were started with `mark` in their environment.

    Processes of other users do not tell; nor, on macOS, do those of the system.
    """
    if _has_proc():
        return {pid for pid in pids if mark.encode() in _environment(pid)}
    lines = (line.split(maxsplit=1) for line in _ps("-axEww", "-o", "pid=,command=").splitlines() if mark in line)
    return {int(words[0]) for words in lines if words[0].isdigit()} & set(pids)


def holds_pipe(pid: int, inode: int) -> bool:
    """Return whether the process has the pipe `inode` open as its output; False where that cannot be seen."""
    for fd in ("1", "2"):
        with suppress(OSError):
            if (_PROC / str(pid) / "fd" / fd).readlink().name == f"pipe:[{inode}]":
                return True
    return False


def send_signal(process: RunningProcess, number: signal.Signals) -> None:
    """Signal the process if it is still the one that was seen; nothing happens where it is gone or another user's."""
    with suppress(ProcessLookupError, PermissionError):
        if not _has_proc() or not hasattr(os, "pidfd_open"):
            os.kill(process.pid, number)
            return
        fd = os.pidfd_open(process.pid)
        try:
            # The descriptor holds on to one process; only now the check cannot be overtaken.
            seen = _from_proc(str(process.pid))
            if seen is not None and seen.started == process.started:
                signal.pidfd_send_signal(fd, number)
        finally:
            os.close(fd)


def parse_ps(text: str) -> Iterator[RunningProcess]:
    """Yield the processes in what `ps -o pid=,ppid=,pgid=,sess=,stat=,lstart=,comm=` prints (lstart has five words)."""
    for line in text.splitlines():
        words = line.split(maxsplit=10)
        if len(words) < 11 or words[4][0] in _DEAD or not all(word.isdigit() for word in words[:3]):
            continue
        pid, parent, group = (int(word) for word in words[:3])
        # macOS prints an address for the session; the group of its leader is the same to us.
        session = int(words[3]) if words[3].isdigit() and words[3] != "0" else group
        yield RunningProcess(pid, parent, group, session, " ".join(words[5:10]), words[10])


def _has_proc() -> bool:
    return (_PROC / "self" / "stat").exists()


def _environment(pid: int) -> bytes:
    try:
        return (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return b""


def _from_proc(pid: str) -> RunningProcess | None:
    try:
        line = (_PROC / pid / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The name is in brackets and may hold anything, brackets and blanks included (proc(5)).
    before, _, after = line.rpartition(")")
    fields = after.split()
    if fields[0] in _DEAD:
        return None
    return RunningProcess(
        pid=int(pid),
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        started=fields[19],
        name=before.partition("(")[2],
    )


def _ps(*arguments: str) -> str:
    """Return what `ps` prints, on systems without /proc such as macOS; synchronous, as a look at /proc is.

    Not by the process runner, which asks this module what to end.
    """
    try:
        found = subprocess.run(["/bin/ps", *arguments], capture_output=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout.decode(errors="replace")
