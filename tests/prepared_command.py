"""Starts panpan from a process that has imported it: a fork, which has the answer before Python would have begun.

Most tests of the command are about what it does and not about how it starts, and importing it is most of their time.
What they get has the arguments, environment, folder, streams and session that a start of the installed command has.
Who starts a command line gets one by `argv`, of a tiny program that stands for the fork. Signals reach the fork, and
each ends as the other does, though the fork a moment after a kill. Some things differ: `/proc` shows the command line
and environment of the process that it was forked from, which is also its parent, and all modules and what a first turn
makes of them are there already. Tests of these run the installed command.
"""

import atexit
import fcntl
import gc
import io
import marshal
import os
import pkgutil
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio

COMMAND = Path(sys.executable).with_name("panpan")
"""The installed command."""
_STAND_IN = Path(__file__).with_name("prepared_start.py")
"""Stands for a fork in `argv`."""

_IS_POSSIBLE = hasattr(os, "pidfd_open") and "COVERAGE_PROCESS_START" not in os.environ
_AT_START = ("PYTHON", "LANG", "LC_", "LD_", "COVERAGE")
"""Beginnings of the names of variables that Python reads at its start."""
_LAZY = ("anyio._backends._asyncio", "httpcore2", "prompt_toolkit.shortcuts", "tree_sitter_bash", "truststore")
"""Modules that panpan imports inside functions, beside the SDK."""


class ForkedCommand:
    """A run of panpan whose end its parent tells.

    Args:
        status: Where the parent writes its id, and its exit code when it has ended.
    """

    def __init__(self, status: int) -> None:
        self._status = os.fdopen(status, "rb", buffering=0)
        self._code: int | None = None
        self.pid = int(self._status.readline())

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        if self._code is None and select.select([self._status], [], [], 0)[0]:
            self.wait()
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return its exit code, negative where a signal ended it.

        Args:
            timeout: Seconds; None waits for ever.

        Raises:
            subprocess.TimeoutExpired: It still runs.
        """
        if self._code is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired([str(COMMAND)], timeout or 0)
            self._code = int(self._status.readline())
            self._status.close()
        return self._code

    def send_signal(self, sig: int) -> None:
        """Send it a signal, if it runs."""
        if self.poll() is None:
            os.kill(self.pid, sig)


class PreparedCommand:
    """The process that has imported panpan; started when it is first needed.

    Args:
        main: Module and function of another program that it starts instead, which imports what panpan does.
        **variables: Further variables of its environment, such as PYTHONPATH.
    """

    def __init__(self, main: str = "panpan.cli.start:main", **variables: str) -> None:
        self._main = main
        self._socket: socket.socket | None = None
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "TMPDIR")}
        self.environment = kept | variables
        """Variables of a run that differs in nothing."""

    def can_start(self, environment: Mapping[str, str]) -> bool:
        """Return True if a run with this environment does not differ from one of the installed command."""
        ours, theirs = (
            # Python takes C.UTF-8 where no locale is set
            {name: value for name, value in one.items() if name.startswith(_AT_START) and value != "C.UTF-8"}
            for one in (self.environment, environment)
        )
        return _IS_POSSIBLE and ours == theirs

    def argv(self, *args: str, env: Mapping[str, str]) -> list[str]:
        """Return a command line that starts panpan, from this process if `env` makes no difference.

        Args:
            *args: Arguments of panpan.
            env: The whole environment in which it will be started.
        """
        if not self.can_start(env):
            module = self._main.partition(":")[0]
            return [*([str(COMMAND)] if module.startswith("panpan.") else [sys.executable, "-m", module]), *args]
        self._server()
        return [sys.executable, "-I", "-S", str(_STAND_IN), str(self._door), *args]

    def start(
        self, args: Sequence[str], *, env: Mapping[str, str], cwd: Path | str, streams: Sequence[int]
    ) -> ForkedCommand:
        """Start panpan in a session of its own.

        Args:
            args: Its arguments.
            env: The whole environment.
            cwd: Where.
            streams: Its standard input, output and error; a terminal becomes its controlling one.
        """
        status, theirs = os.pipe()
        request = marshal.dumps((list(args), dict(env), os.fspath(cwd), []))
        head = len(request).to_bytes(8, "big")
        server = self._server()
        socket.send_fds(server, [head], [*streams, theirs])
        os.close(theirs)
        server.sendall(request)
        return ForkedCommand(status)

    def start_on_terminal(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path | str, terminal: int
    ) -> ForkedCommand:
        """Start panpan as the leader of a session with a controlling terminal; `argv` begins with its name."""
        return self.start(argv[1:], env=env, cwd=cwd, streams=(terminal, terminal, terminal))

    def close(self) -> None:
        """End the process, but not what it started."""
        if self._socket is not None:
            self._socket.close()
            self._process.wait()
            self._socket = None

    def _server(self) -> socket.socket:
        if self._socket is None:
            self._socket, theirs = socket.socketpair()
            self._door = Path(tempfile.mkdtemp(prefix="panpan-")) / "door"
            atexit.register(self.close)
            with theirs, socket.socket(socket.AF_UNIX) as door:
                door.bind(str(self._door))
                door.listen()
                fds = [theirs.fileno(), door.fileno()]
                self._process = subprocess.Popen(
                    [sys.executable, __file__, self._main, *map(str, fds)],
                    env=self.environment,
                    pass_fds=fds,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                    preexec_fn=_heed_signals,
                )
        return self._socket


PREPARED = PreparedCommand()
"""The one that tests share."""


def _heed_signals() -> None:
    for number in (signal.SIGINT, signal.SIGHUP):  # which a shell or nohup has the tests ignore
        signal.signal(number, signal.SIG_DFL)


# the process that has imported it


def _import_all() -> None:
    import panpan
    from panpan.models.sdk_clients import load_sdk

    for module in pkgutil.walk_packages(panpan.__path__, "panpan."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    for name in _LAZY:
        import_module(name)
    load_sdk("anthropic", client_name="AsyncAnthropic", error_name="AnthropicError")


async def _work_once(folder: Path) -> None:
    """Do a turn, so that what panpan makes when it is first needed and then keeps, such as JSON schemas, is there."""
    from panpan.api import open_session

    tape = folder / "tape.toml"
    tape.write_text('version = 1\n[[reply]]\ntext = "done"\n', encoding="utf-8")
    env = {"HOME": str(folder), "PANPAN_HOME": str(folder / "home"), "PATH": os.environ["PATH"]}
    async with open_session(folder, env=env, overrides={"model": f"cassette:{tape}"}) as session:
        async for _ in session.submit("go"):
            pass


def _serve(requests: socket.socket, door: socket.socket) -> None:
    """Fork for each request, and return in the child; in the parent, never.

    Args:
        requests: Where requests come from, each with a pipe for its status.
        door: Where stand-ins call, each to get the status over its connection. A run is killed when that is closed.
    """
    running: dict[int, tuple[int, int]] = {}
    callers: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([requests, door, *running, *callers], [], [])
        for process in [one for one in ready if one in running]:
            pid, status = running.pop(process)
            callers.pop(status, None)
            _tell(status, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
            os.close(status)
            os.close(process)
        for caller in [one for one in ready if one in callers]:
            _kill(callers.pop(caller))
        for source in [one for one in ready if one in (requests, door)]:
            connection = requests if source is requests else door.accept()[0]
            head, fds, _, _ = socket.recv_fds(connection, 8, 4)
            if not head and source is requests:
                shutil.rmtree(Path(door.getsockname()).parent)
                os._exit(0)
            if not (request := _received(connection, int.from_bytes(head, "big"))):
                connection.close()  # its caller was ended before it said anything
                continue
            streams, status = fds[:3], fds[3] if source is requests else connection.detach()
            if not (pid := os.fork()):
                _become(*marshal.loads(request), streams)
                return
            _tell(status, pid)
            running[os.pidfd_open(pid)] = (pid, status)
            if source is door:
                callers[status] = pid
            for stream in streams:
                os.close(stream)


def _kill(pid: int) -> None:
    """Kill a run and what is in its group, which it may not have made yet."""
    os.kill(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def _received(requests: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size and (part := requests.recv(size - len(data))):
        data += part
    return bytes(data)


def _tell(status: int, number: int) -> None:
    with suppress(BrokenPipeError):  # nobody waits for it any more
        os.write(status, b"%d\n" % number)


def _become(
    args: Sequence[str], env: Mapping[str, str], cwd: str, ignored: Sequence[int], streams: Sequence[int]
) -> None:
    """Give this process all that a start of the command would have given it."""
    os.setsid()
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    if os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    os.chdir(cwd)
    if (command := sys.modules.get("panpan.cli.run_command")) is not None:
        command.PARENT = os.getppid()  # type: ignore[attr-defined]  # as its import has found it
    sys.argv = [str(COMMAND), *args]
    sys.stdin = sys.__stdin__ = _stream(0, sys.stdin)
    sys.stdout = sys.__stdout__ = _stream(1, sys.stdout)
    sys.stderr = sys.__stderr__ = _stream(2, sys.stderr)


def _stream(number: int, before: Any) -> Any:
    """Return a standard stream as Python makes it at its start."""
    raw = open(number, "rb" if number == 0 else "wb", buffering=0, closefd=False)  # noqa: SIM115
    buffered = io.BufferedReader(raw) if number == 0 else io.BufferedWriter(raw)
    is_by_line = raw.isatty() or number == 2
    return io.TextIOWrapper(buffered, encoding=before.encoding, errors=before.errors, line_buffering=is_by_line)


def _exit_code(main: Callable[[], object]) -> int:
    """Run a program and return its exit code."""
    try:
        main()
    except SystemExit as end:
        if not isinstance(end.code, int):
            raise
        return end.code
    return 0


def _end(code: int) -> None:
    """End as Python does, but leave all that was imported as it is: to take it apart takes longer than most runs."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)  # and Python tells that it could not write


if __name__ == "__main__":
    sys.path[0] = str(COMMAND.parent)
    _import_all()
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(_work_once, Path(folder))
    tempfile.tempdir = None  # by the variables of each run
    gc.collect()
    gc.freeze()
    module, function = sys.argv[1].split(":")
    main = getattr(import_module(module), function)
    _serve(*(socket.socket(fileno=int(fd)) for fd in sys.argv[2:]))
    _end(_exit_code(main))
