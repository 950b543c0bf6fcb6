"""A forked copy of the daemon becomes the run that a start asked for.

The rule: what the copy cannot take over must be equal, or the start runs by itself. It takes over descriptors,
environment, folder, umask, arguments, ignored signals, limits, priority and control group. Rights must be equal, and so
must everything that Python or a module reads only once.
"""

import atexit
import fcntl
import io
import os
import resource
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from panpan.cli.daemon.client import ACCEPTED, GO, REFUSED, Unserved, python_setup
from panpan.cli.daemon.standing import bounds, first_difference, rights

_AT_START = ("PYTHON", "LC_", "LD_", "GLIBC_", "MALLOC_", "OPENSSL_", "COVERAGE_")
_NAMES_AT_START = frozenset({"HOME", "LANG", "LANGUAGE", "LOCPATH"})

_ARGUMENTS_BEGIN, _ARGUMENTS_END = 45, 46
"""Fields of `/proc/PID/stat` behind the name of the program, counted from 0: where its command line is in memory."""


class Request(NamedTuple):
    """A start that asks to be run."""

    connection: socket.socket
    pid: int
    pidfd: int
    descriptors: Sequence[int]
    """Descriptors of the folder, and then those that it has inherited."""
    umask: int
    numbers: Sequence[int]
    """Numbers of the inherited descriptors."""
    ignored: Sequence[int]
    """Signals."""
    setup: str
    """Result of `python_setup` there."""
    first_path: str
    """First entry of `sys.path`."""
    argv: Sequence[str]
    env: Mapping[bytes, bytes]


def is_read_at_start(name: str) -> bool:
    """Return True for a variable that Python or a library reads only once. The daemon has no others."""
    return name in _NAMES_AT_START or name.startswith(_AT_START)


def begin(request: Request, read_at_import: Mapping[str, str | None], reports: int) -> None:
    """Become the run, and return when the start has said that it wants it; else end the process.

    Args:
        request: What to become.
        read_at_import: Variables that a module has read while it was imported.
        reports: Where the daemon reads why it was refused; closed here.
    """
    connection = request.connection
    try:
        _take_over_bounds(request.pid)
        _check(request, read_at_import)
        connection, reports = _take_over_descriptors(request, reports)
        _take_over_rest(request)
        own = os.pidfd_open(os.getpid())
        socket.send_fds(connection, [ACCEPTED], [own])
        connection.settimeout(None)  # the start may be stopped meanwhile, and has the run once it has sent this
        if connection.recv(1) != GO:
            raise Unserved("the start did not wait")
    except (OSError, ValueError, Unserved) as error:
        with suppress(OSError):
            os.write(reports, f"{error}\n".encode())
        with suppress(OSError):
            connection.send(REFUSED)
        os._exit(0)
    os.close(own)
    os.close(reports)
    connection.close()


def run() -> NoReturn:
    """Run panpan, and end as Python does, but without taking apart what the daemon has imported."""
    from panpan.cli.main import main

    try:
        main()
    except SystemExit as end:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(end.code if isinstance(end.code, int) else 1)
        raise  # and Python says that it could not write


def _take_over_bounds(pid: int) -> None:
    """Take over what this process may; what is left is found by the comparison."""
    os.setsid()
    groups = bounds(pid)["control group"]
    if groups != bounds("self")["control group"]:
        for path in (line.removeprefix("0::") for line in groups.splitlines() if line.startswith("0::/")):
            _write(f"/sys/fs/cgroup{path}/cgroup.procs", str(os.getpid()))
    if (score := bounds(pid)["oom_score_adj"]) != bounds("self")["oom_score_adj"]:
        _write("/proc/self/oom_score_adj", score)
    with suppress(OSError):
        os.sched_setaffinity(0, os.sched_getaffinity(pid))
        os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, pid))
    for name in dir(resource):
        if name.startswith("RLIMIT_"):
            with suppress(OSError, ValueError):
                resource.setrlimit(getattr(resource, name), resource.prlimit(pid, getattr(resource, name)))


def _write(path: str, text: str) -> None:
    with suppress(OSError), open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _check(request: Request, read_at_import: Mapping[str, str | None]) -> None:
    """Raise `Unserved` if a run here would differ from one that the start made by itself."""
    theirs = {**rights(request.pid), **bounds(request.pid)}
    if name := first_difference(theirs, {**rights("self"), **bounds("self")}):
        raise Unserved(f"{name} differs")
    has_ended = select.poll()
    has_ended.register(request.pidfd, select.POLLIN)
    if has_ended.poll(0):  # then another process may have been looked at
        raise Unserved("the start has ended")
    if request.setup != python_setup():
        raise Unserved("Python was started in another way, or from elsewhere")
    env = {os.fsdecode(name): os.fsdecode(value) for name, value in request.env.items()}
    once = {name: os.environ.get(name) for name in (*env, *os.environ) if is_read_at_start(name)}
    for name, value in (*once.items(), *read_at_import.items()):
        if env.get(name) != value:
            raise Unserved(f"the variable {name} differs")


def _take_over_descriptors(request: Request, reports: int) -> tuple[socket.socket, int]:
    """Give the inherited descriptors their numbers, and close all others but these two, which are returned."""
    above = max(*request.numbers, *map(int, os.listdir("/proc/self/fd"))) + 1

    def moved(fd: int) -> int:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, above)

    folder, *inherited = (moved(fd) for fd in request.descriptors)
    connection, reports = socket.socket(fileno=moved(request.connection.fileno())), moved(reports)
    connection.settimeout(request.connection.gettimeout())
    request.connection.detach()
    os.closerange(0, above)
    for fd, number in zip(inherited, request.numbers, strict=True):
        os.dup2(fd, number)
        os.close(fd)
    os.fchdir(folder)
    os.close(folder)
    return connection, reports


def _take_over_rest(request: Request) -> None:
    os.umask(request.umask)
    os.environb.clear()
    os.environb.update(request.env)
    time.tzset()
    sys.argv = list(request.argv)
    sys.orig_argv = [sys.executable, *request.argv]
    sys.path[0] = request.first_path
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = _stream(number, getattr(sys, name))
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    for number in request.ignored:
        signal.signal(number, signal.SIG_IGN)
    _show_command_line(sys.orig_argv)


def _stream(number: int, before: Any) -> Any:
    """Return a standard stream as Python makes it when it starts."""
    raw = open(number, "rb" if number == 0 else "wb", buffering=0, closefd=False)  # noqa: SIM115
    buffered = io.BufferedReader(raw) if number == 0 else io.BufferedWriter(raw)
    is_by_line = raw.isatty() or number == 2
    return io.TextIOWrapper(buffered, encoding=before.encoding, errors=before.errors, line_buffering=is_by_line)


def _show_command_line(argv: Sequence[str]) -> None:
    """Let `ps` show the command line of the run, as far as it fits into that of the daemon."""
    _write("/proc/self/comm", "panpan")
    with suppress(OSError):
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        begin_, end = int(fields[_ARGUMENTS_BEGIN]), int(fields[_ARGUMENTS_END])
        text = b"\0".join(map(os.fsencode, argv))[: end - begin_ - 1]
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            memory.seek(begin_)
            memory.write(text.ljust(end - begin_, b"\0"))
