"""A program on a pseudo-terminal: bytes go in and come out, in the order in which they were sent.

Two threads read and write, so that neither side ever waits for a busy test.
"""

import contextlib
import fcntl
import os
import queue
import select
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol


class Running(Protocol):
    """The part of `subprocess.Popen` that is used here."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, sig: int) -> None: ...


class Start(Protocol):
    """Starts a program as the leader of a session with a controlling terminal."""

    def __call__(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path | str, terminal: int) -> Running: ...


class PtyProcess:
    """A running program, leader of a session of its own with the pseudo-terminal as its controlling terminal.

    Args:
        argv: Command line.
        env: The whole environment.
        cwd: Working directory.
        columns: Width of the terminal.
        rows: Height of the terminal.
        received: Called in the reading thread with output of the program; with b"" at the end.
        start: Starts the program on a terminal in another way.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | str,
        columns: int,
        rows: int,
        received: Callable[[bytes], None],
        start: Start | None = None,
    ) -> None:
        self._received = received
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._fd, theirs = os.openpty()
        self._is_closed = False
        self._wake, self._woken = os.pipe()
        """Pipe that tells the reader to stop: a terminal is not closed as long as it is being read."""
        self.resize(columns, rows)
        self.settings_before: list[Any] = termios.tcgetattr(theirs)
        """Settings of the terminal (termios) before the program ran."""
        self.process: Running = (start or _started)(argv, env=env, cwd=cwd, terminal=theirs)
        os.close(theirs)
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._read, self._write)]
        for thread in self._threads:
            thread.start()

    @property
    def settings(self) -> list[Any]:
        """Current settings of the terminal (termios)."""
        return termios.tcgetattr(self._fd)

    def send(self, data: bytes) -> None:
        """Type `data`; returns at once."""
        self._outgoing.put(data)

    def resize(self, columns: int, rows: int) -> None:
        """Change the size, for which the program gets a SIGWINCH."""
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait(self, timeout_s: float) -> int:
        """Wait until all output is read, and return the exit code, or minus the number of the signal that ended it.

        Raises:
            subprocess.TimeoutExpired: The program still runs.
            TimeoutError: It has ended, but a process that it started has the terminal open.
        """
        code = self.process.wait(timeout_s)
        self._threads[0].join(timeout_s)
        if self._threads[0].is_alive():
            raise TimeoutError("the program has ended, but something that it started has the terminal open")
        return code

    def hang_up(self) -> None:
        """Close the terminal, as when its window is closed."""
        if self._is_closed:
            return
        self._is_closed = True
        self._outgoing.put(None)
        os.write(self._woken, b"x")
        for thread in self._threads:
            thread.join(30)
        for fd in (self._fd, self._wake, self._woken):
            os.close(fd)

    def end(self) -> None:
        """Kill the program and close the terminal."""
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.hang_up()

    def _read(self) -> None:
        while True:
            readable, _, _ = select.select([self._fd, self._wake], [], [])
            try:
                data = os.read(self._fd, 65_536) if self._wake not in readable else b""
            except OSError:  # EIO: the other side is closed
                data = b""
            self._received(data)
            if not data:
                return

    def _write(self) -> None:
        while (data := self._outgoing.get()) is not None:
            try:
                while data:
                    data = data[os.write(self._fd, data) :]
            except OSError:
                return  # the other side is closed


def _started(argv: Sequence[str], *, env: Mapping[str, str], cwd: Path | str, terminal: int) -> Running:
    return subprocess.Popen(
        argv,
        env=dict(env),
        cwd=cwd,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=_take_terminal,
    )


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in (signal.SIGINT, signal.SIGHUP):  # a shell or nohup may have the tests ignore them
        signal.signal(number, signal.SIG_DFL)
