"""The daemon: imports panpan, and forks a copy for each start that asks for it.

The rule: it knows nothing of anybody. It has a minimal environment, reads no settings, has no thread and no event loop,
and serves only processes that the kernel lets look into it and that are held to the same (`standing.py`). It ends when
a file that it has imported changes, or when nobody has asked for `IDLE_S`.
"""

import fcntl
import gc
import json
import os
import select
import signal
import socket
import stat
import sys
import sysconfig
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

from panpan.cli.daemon.client import (
    MOST_DESCRIPTORS,
    PROOF_BYTES,
    SIZE_BYTES,
    STATUS_BYTES,
    TIMEOUT_S,
    Unserved,
    exactly,
    peer,
)
from panpan.cli.daemon.preload import preload
from panpan.cli.daemon.run import Request, begin, run

IDLE_S = 8 * 60 * 60.0
"""Seconds without a start after which it ends."""

LOOK_S = 60.0
"""Seconds after which it looks whether it should end, if nobody asks."""

READY = "ready"
"""Line on standard output when it can be asked; another one is an error for the user."""

_MOST_BYTES = 8 << 20
"""Most bytes of a request. Arguments and environment of a process are limited to about 6 MB (execve(2))."""
_STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_HEAD_BYTES = PROOF_BYTES + SIZE_BYTES
_REPORT_BYTES = 1 << 16
_WAITING = 16
"""Starts that may wait while another one is answered."""
_INT = 4


class Stamps:
    """The files that were imported, as they are now; of packages that are installed, the folder that has them all.

    Every installation makes or removes an entry there. The files of an editable one are looked at one by one.
    """

    def __init__(self) -> None:
        folders = {path for name, path in sysconfig.get_paths().items() if name.endswith(("lib", "stdlib"))}
        folders |= {path for path in sys.path[1:] if path.endswith("-packages")}
        package = Path(__file__).parents[2]
        files = {str(path) for path in package.rglob("*.*") if path.parent.name != "__pycache__" and path.is_file()}
        files |= {file for module in list(sys.modules.values()) if (file := getattr(module, "__file__", None))}
        below = tuple(f"{folder}/" for folder in folders)
        watched = {*folders, os.path.realpath(sys.executable), *(file for file in files if not file.startswith(below))}
        self._stamps = {path: _stamp(path) for path in sorted(watched)}

    def changed(self) -> str | None:
        """Return a file or folder that is not what it was, or None."""
        return next((path for path, stamp in self._stamps.items() if _stamp(path) != stamp), None)


def _stamp(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)  # many at each start
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino)


class _Run(NamedTuple):
    pid: int
    connection: socket.socket


class Daemon:
    """Listens until nobody has asked for long, a file changes or it is told to stop; then waits for what still runs.

    Args:
        listener: The socket, which listens.
        lock: Descriptor that keeps other daemons from that place; closed when this one stops to listen.
        stamps: Files that must stay as they are.
        clock: Seconds.
    """

    def __init__(
        self, listener: socket.socket, lock: int, stamps: Stamps, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._listener: socket.socket | None = listener
        self._lock = lock
        self._path = listener.getsockname()
        self._stamps = stamps
        self._clock = clock
        self._asked_at = clock()
        self._facts: dict[str, Any] = {"pid": os.getpid(), "since": time.time(), "served": 0}
        self._runs: dict[int, _Run] = {}
        self._proof = os.memfd_create("panpan-daemon")
        self._reports, self._report_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._wake, self._wake_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._poll = select.poll()
        for fd in (listener.fileno(), self._reports, self._wake):
            self._poll.register(fd, select.POLLIN)
        for number in _STOPPING:
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(self._wake_end)

    def serve(self) -> tuple[Request, int] | None:
        """Serve; return in a forked copy, with what it has to become and where to report, and at the end with None."""
        while self._listener is not None or self._runs:
            happened = self._poll.poll(self._patience_ms())
            fd = happened[-1][0] if happened else None  # one at a time, since it may give numbers to others
            if self._listener is not None and fd == self._listener.fileno():
                if (request := self._accepted(self._listener)) is not None:
                    return request, self._report_end
            elif fd == self._wake:
                os.read(self._wake, 1)
                self._stop_listening()
            elif fd == self._reports:
                self._read_reports()
            elif fd in self._runs:
                self._tell_end(fd)
            elif fd is not None:
                self._hang_up(fd)
            elif self._clock() - self._asked_at >= IDLE_S or self._stamps.changed() is not None:
                self._stop_listening()
        return None

    def _patience_ms(self) -> float | None:
        return None if self._listener is None else LOOK_S * 1000

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._poll.unregister(self._listener)
            with suppress(OSError):
                os.unlink(self._path)
            self._listener.close()
            self._listener = None
            os.close(self._lock)

    def _accepted(self, listener: socket.socket) -> Request | None:
        """Answer one connection. Return what it asks for in a forked copy, and None in the daemon."""
        try:
            connection, _ = listener.accept()
        except OSError:  # no more descriptors, or no memory
            self._stop_listening()
            return None
        with ExitStack() as opened:
            opened.callback(connection.close)
            try:
                request = self._request(connection, opened)
                if request is not None and self._is_copy(request):
                    opened.pop_all()  # the run needs some, and closes the others
                    return request
                if request is not None:  # to be told how it ends
                    opened.pop_all()
                    for fd in (request.pidfd, *request.descriptors):
                        os.close(fd)
            except (OSError, ValueError, Unserved) as error:
                self._note_refusal(str(error))
        return None

    def _request(self, connection: socket.socket, opened: ExitStack) -> Request | None:
        """Return the start that asks to be run, or None if something else was asked and has been answered.

        Args:
            connection: Where it asks.
            opened: Closes what was received.

        Raises:
            OSError: It has closed the connection, or says nothing.
            ValueError: It says something else.
            Unserved: It may not ask, or the daemon would run old code.
        """
        connection.settimeout(TIMEOUT_S)
        pid, user = peer(connection)
        if user != os.geteuid():
            raise Unserved("another user asked")
        pidfd = os.pidfd_open(pid)
        opened.callback(os.close, pidfd)
        proof = os.urandom(PROOF_BYTES)
        os.pwrite(self._proof, proof, 0)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        connection.sendall(self._proof.to_bytes(_INT, sys.byteorder))
        descriptors, (kind, *fields) = _received(connection, pid, proof, opened)
        if kind == b"run":
            self._asked_at = self._clock()
            if (path := self._stamps.changed()) is not None:
                self._stop_listening()
                raise Unserved(f"{path} has changed")
            return _request_of(connection, (pid, pidfd), descriptors, fields)
        if kind == b"stop":
            self._stop_listening()
        connection.sendall(json.dumps(self._status()).encode())
        return None

    def _is_copy(self, request: Request) -> bool:
        """Fork; return True in the copy, which has no handlers and nothing to answer to."""
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            if pid := os.fork():
                run = os.pidfd_open(pid)
                self._runs[run] = _Run(pid, request.connection)
                self._poll.register(run, select.POLLIN)
                self._poll.register(request.connection, 0)  # its end is told always
                self._facts["served"] += 1
                return False
            signal.set_wakeup_fd(-1)
            for number in _STOPPING:
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            if self._listener is not None:
                self._listener.close()
            for one in self._runs.values():
                one.connection.close()
            return True
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def _tell_end(self, run: int) -> None:
        """Tell the start how its run has ended."""
        pid, connection = self._runs.pop(run)
        _, status = os.waitpid(pid, 0)
        self._poll.unregister(run)
        os.close(run)
        with suppress(KeyError):  # it has hung up
            self._poll.unregister(connection)
        with connection, suppress(OSError):
            connection.sendall(status.to_bytes(STATUS_BYTES, sys.byteorder))
        self._asked_at = self._clock()

    def _hang_up(self, connection: int) -> None:
        """End the run whose start is gone as the end of its terminal would."""
        self._poll.unregister(connection)
        for pidfd, (_, waiting) in self._runs.items():
            if waiting.fileno() == connection:
                for number in (signal.SIGHUP, signal.SIGCONT):  # it may be stopped
                    signal.pidfd_send_signal(pidfd, number)

    def _read_reports(self) -> None:
        for reason in os.read(self._reports, _REPORT_BYTES).decode(errors="replace").splitlines():
            self._facts["served"] -= 1
            self._note_refusal(reason)

    def _note_refusal(self, reason: str) -> None:
        self._facts |= {"refused_at": time.time(), "refused": reason}

    def _status(self) -> Mapping[str, Any]:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
        memory_mb = pages * os.sysconf("SC_PAGESIZE") // 1_000_000
        return {**self._facts, "memory_mb": memory_mb, "running": len(self._runs)}


def _received(
    connection: socket.socket, pid: int, proof: bytes, opened: ExitStack
) -> tuple[Sequence[int], Sequence[bytes]]:
    """Return the descriptors and fields of a message that `pid` itself has sent, with the proof.

    Raises:
        OSError: The connection was closed.
        ValueError: It is no message of a start.
        Unserved: Another process has sent it, or one that cannot look at the daemon.
    """
    room = socket.CMSG_SPACE(_INT * (MOST_DESCRIPTORS + 1)) + socket.CMSG_SPACE(3 * _INT)
    head, extra, flags, _ = connection.recvmsg(_HEAD_BYTES, room, socket.MSG_CMSG_CLOEXEC)
    descriptors, sender = array("i"), 0
    for _, kind, data in extra:
        if kind == socket.SCM_RIGHTS:
            descriptors.frombytes(data[: len(data) - len(data) % _INT])
        elif kind == socket.SCM_CREDENTIALS:  # the kernel's word at the time of sending
            sender = int.from_bytes(data[:_INT], sys.byteorder)
    for fd in descriptors:
        opened.callback(os.close, fd)
    if sender != pid or head[:PROOF_BYTES] != proof:
        raise Unserved("a process asked that may not look at the daemon")
    size = int.from_bytes(head[PROOF_BYTES:], sys.byteorder)
    if len(head) < _HEAD_BYTES or flags & socket.MSG_CTRUNC or size > _MOST_BYTES:
        raise ValueError("a message was not as expected")
    return descriptors, exactly(connection, size).split(b"\0")


def _request_of(
    connection: socket.socket, process: tuple[int, int], descriptors: Sequence[int], fields: Sequence[bytes]
) -> Request:
    """Return the request in the fields that `client.py` sends; raise `ValueError` if they are others."""
    umask, numbers, ignored, setup, first_path, count, *texts = fields
    inherited = [int(number) for number in numbers.split()]
    if len(descriptors) != len(inherited) + 1:
        raise ValueError("a message was not as expected")
    argv, env = texts[: int(count)], texts[int(count) :]
    return Request(
        connection,
        *process,
        descriptors,
        int(umask),
        inherited,
        [int(number) for number in ignored.split()],
        os.fsdecode(setup),
        os.fsdecode(first_path),
        [os.fsdecode(word) for word in argv],
        {name: value for name, _, value in (variable.partition(b"=") for variable in env)},
    )


def listening(path: str) -> tuple[socket.socket, int]:
    """Return the socket at `path`, in a folder that only this user can enter, and what keeps other daemons from it.

    Raises:
        OSError: It cannot be made there.
        Unserved: Another daemon listens, or the folder is open to others.
    """
    folder = os.path.dirname(path)
    with suppress(FileExistsError):
        os.makedirs(folder, 0o700)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise Unserved(f"{folder} must be a folder of yours that nobody else may enter; run: chmod 700 {folder}")
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Unserved("it runs already") from None
    with suppress(FileNotFoundError):
        os.unlink(path)  # of a daemon that was killed
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(_WAITING)
    return listener, lock


def main() -> None:
    """Be the daemon, and in each forked copy a run."""
    os.umask(0o077)
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(sys.executable)  # a run takes over that of its start
    try:
        listener, lock = listening(sys.argv[1])
        read_at_import = preload()
        if len(os.listdir("/proc/self/task")) > 1:
            raise Unserved("a module has started a thread, which no copy would have")
    except (OSError, Unserved) as error:
        print(error, flush=True)  # noqa: T201
        sys.exit(1)
    daemon = Daemon(listener, lock, Stamps())
    gc.collect()
    gc.freeze()
    print(READY, flush=True)  # noqa: T201
    with open(os.devnull, "r+b") as null:
        os.dup2(null.fileno(), 1)
    forked = daemon.serve()
    if forked is not None:
        request, reports = forked
        begin(request, read_at_import, reports)
        run()


if __name__ == "__main__":
    main()
