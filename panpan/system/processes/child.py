"""One child process with its output pipes, which are read without waiting for whoever else holds them.

The rule: the pipes are ours and non-blocking. When the process has ended, all that it wrote is in them and is read at
once, so that the end of the output never has to be guessed from a silence.
"""

import errno
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL
from typing import IO, Self

import anyio
from anyio import CancelScope
from anyio.abc import Process

from panpan.errors import ToolError
from panpan.system.processes.process_tree import ProcessTree
from panpan.system.processes.watchdog import ended_with_panpan

CHUNK_BYTES = 1 << 16
EXIT_POLL_S = 0.03
"""How often a silent process is asked whether it has ended while something else holds its pipe open."""

_REAP_S = 2.0
_SEEN_S = 0.5
"""In which the end of a process that is over is told."""
_DRAIN_BYTES = 4 << 20
"""Most that is read after the end; a pipe holds 64 KiB, or 1 MiB where a program made it larger (pipe(7))."""


class OutputPipe:
    """The reading end of a pipe."""

    def __init__(self) -> None:
        self.fd, self.write_fd = os.pipe()
        os.set_blocking(self.fd, False)
        self.is_at_end = False
        self.inode = os.fstat(self.fd).st_ino

    def read(self) -> bytes | None:
        """Return what is there, `b""` at the end, None while there is nothing."""
        try:
            chunk = os.read(self.fd, CHUNK_BYTES)
        except BlockingIOError:
            return None
        self.is_at_end = not chunk
        return chunk

    def drain(self) -> bytes:
        """Return all that is there now, up to what a pipe can hold."""
        chunks = bytearray()
        while len(chunks) < _DRAIN_BYTES and (chunk := self.read()):
            chunks += chunk
        return bytes(chunks)

    def hand_over(self) -> int:
        """Return the reading end, which is the caller's from now on."""
        fd, self.fd = self.fd, -1
        return fd

    def close_write_end(self) -> None:
        """Leave the writing to the child."""
        if self.write_fd >= 0:
            os.close(self.write_fd)
            self.write_fd = -1

    def close(self) -> None:
        """Give both ends back."""
        self.close_write_end()
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class Child:
    """A started process that leads its own session. Made by `start`; `close` gives its pipes back."""

    def __init__(self, process: Process, tree: ProcessTree, stdout: OutputPipe, stderr: OutputPipe | None) -> None:
        self._process = process
        self.tree = tree
        self.stdout = stdout
        self.stderr = stderr

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        has_stderr: bool,
        pass_fds: Sequence[int] = (),
        stdin: int | IO[bytes] = DEVNULL,
    ) -> Self:
        """Start a program.

        Args:
            argv: The program and its arguments.
            cwd: Its working directory.
            env: Its whole environment; marks are added.
            has_stderr: Whether errors get a pipe of their own; else they go where the output goes.
            pass_fds: Descriptors that it inherits under the same numbers, beside its input and outputs.
            stdin: What it reads; empty, unless a file is given.

        Raises:
            ToolError: It cannot be started.
        """
        _require_startable(argv, cwd)
        tree = ProcessTree()
        pipes: list[OutputPipe] = []
        try:
            stdout = _opened(pipes)
            stderr = _opened(pipes) if has_stderr else None
            with CancelScope(shield=True):  # a cancelled start would leave a process that nobody knows
                process = await anyio.open_process(
                    list(argv),
                    stdin=stdin,
                    stdout=stdout.write_fd,
                    stderr=(stderr or stdout).write_fd,
                    cwd=cwd,
                    env=tree.marked(ended_with_panpan(env)),
                    start_new_session=True,
                    pass_fds=pass_fds,
                )
        except BaseException as exc:
            for pipe in pipes:
                pipe.close()
            if isinstance(exc, (OSError, ValueError)):
                raise _not_started(argv[0], env, exc) from exc
            raise
        for pipe in pipes:
            pipe.close_write_end()
        tree.root_at(process.pid, tuple(pipe.inode for pipe in pipes))
        return cls(process, tree, stdout, stderr)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.returncode is not None

    @property
    def exit_code(self) -> int:
        """As a shell tells it: 128 and the signal's number when one ended the process.

        A process that hangs in the kernel, where no signal reaches it, counts as killed.
        """
        code = self._process.returncode
        if code is None:
            code = -signal.SIGKILL
        return code if code >= 0 else 128 - code

    def bound_memory(self, size_bytes: int) -> None:
        """Let the process use no more memory than this, where the system can say so of another one; Linux can."""
        import resource

        if hasattr(resource, "prlimit"):
            with suppress(OSError, ValueError):  # it has ended, or has a lower bound already
                resource.prlimit(self._process.pid, resource.RLIMIT_AS, (size_bytes, size_bytes))

    async def wait(self) -> None:
        """Return when the process itself has ended."""
        await self._process.wait()

    async def end_tree(self, grace_s: float) -> None:
        """End the process and all that came from it; cannot be cancelled."""
        await self.tree.end(grace_s)
        with CancelScope(shield=True), anyio.move_on_after(_REAP_S):
            with anyio.move_on_after(_SEEN_S):  # asyncio would collect its code itself to kill it, and miss it then
                await self._process.wait()
            if not self.has_ended:
                with suppress(ProcessLookupError):
                    self._process.kill()  # where no process could be seen, at least the one that is known
                await self._process.wait()

    def close(self) -> None:
        """Give the pipes back."""
        self.stdout.close()
        if self.stderr is not None:
            self.stderr.close()


def _opened(pipes: list[OutputPipe]) -> OutputPipe:
    """Return a new pipe, added to those that have to be closed."""
    pipe = OutputPipe()
    pipes.append(pipe)
    return pipe


def _require_startable(argv: Sequence[str], cwd: Path) -> None:
    if not argv or not argv[0]:
        raise ToolError("there is no program to start")
    if not cwd.is_dir():
        raise ToolError(f"cannot start {argv[0]}: the working directory {cwd} is not a folder")


def _not_started(program: str, env: Mapping[str, str], exc: OSError | ValueError) -> ToolError:
    # A folder on the PATH that may not be searched turns "not found" into "permission denied".
    is_missing = "/" not in program and shutil.which(program, path=env.get("PATH")) is None
    if isinstance(exc, FileNotFoundError) or (isinstance(exc, PermissionError) and is_missing):
        return ToolError(f"cannot start {program}: there is no such program")
    if isinstance(exc, OSError) and exc.errno in (errno.EMFILE, errno.ENFILE):
        return ToolError(
            f"cannot start {program}: too many files are open; run fewer calls at once, or raise `ulimit -n`"
        )
    reason = exc.strerror if isinstance(exc, OSError) else str(exc)
    return ToolError(f"cannot start {program}: {reason}")
