"""A program that is spoken to through its input and output for as long as it is needed, in its box if it has one."""

import os
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio import CancelScope, move_on_after
from anyio.lowlevel import checkpoint

from panpan.system.processes.process import Child
from panpan.system.sandbox.command_sandbox import Bounds, CommandSandbox
from panpan.system.text.terminal_text import clean_line
from panpan.types.pattern import compile_late

_END_S = 0.5
_KILL_GRACE_S = 0.3
_MAX_KEPT_BYTES = 8_000
"""Most bytes kept of each end of its standard error."""
_MAX_REASON_CHARS = 300
_KILLED = (-9, 137)
"""Codes of a process that was killed (SIGKILL), as Python and as a shell or sandbox around it tell them."""
_TELLING = compile_late("error|fail|fatal|panic|cannot|not found|no such", re.IGNORECASE)


class ServerProcess:
    """A server that runs."""

    def __init__(self, child: Child, input_fd: int) -> None:
        self.child = child
        self.input_fd = input_fd
        self._first_errors, self._last_errors = b"", b""
        self._hear: Callable[[bytes], None] | None = None

    async def keep_errors(self, hear: Callable[[bytes], None] | None = None) -> None:
        """Read its standard error until that is closed, and keep the beginning and the end; `hear` gets all of it."""
        self._hear, pipe = hear, self.child.stderr
        while pipe is not None and not pipe.is_at_end:
            chunk = pipe.read()
            if chunk is None:
                await anyio.wait_readable(pipe.fd)
            elif chunk:
                self._keep(chunk)
                await checkpoint()

    def _keep(self, chunk: bytes) -> None:
        if self._hear is not None:
            self._hear(chunk)
        self._first_errors += chunk[: _MAX_KEPT_BYTES - len(self._first_errors)]
        self._last_errors = (self._last_errors + chunk)[-_MAX_KEPT_BYTES:]

    async def exit_reason(self) -> str:
        """Return the end of a server whose output is closed, such as "ended with code 1: out of memory"."""
        with move_on_after(_END_S):
            await self.child.wait()
        if self.child.stderr is not None:
            self._keep(self.child.stderr.drain())
        said = [*_lines(self._first_errors), *_lines(self._last_errors)]
        if any(line.startswith("Traceback (most recent call last)") for line in said):
            said = said[-1:]  # the error of a Python program is its last line
        how = f"with code {self.child.exit_code}" if self.child.has_ended else "its output"
        is_killed = self.child.has_ended and self.child.exit_code in _KILLED  # a killed process could not print why
        telling = "" if is_killed else next(filter(_TELLING.search, said), said[-1] if said else "")
        why = clean_line(telling)[:_MAX_REASON_CHARS].rstrip(".")
        return f"ended {how}{f': {why}' if why else ''}"


def _lines(data: bytes) -> list[str]:
    return [line for line in data.decode("utf-8", "replace").splitlines() if line.strip()]


@asynccontextmanager
async def server_process(
    argv: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    sandbox: CommandSandbox,
    bounds: Bounds,
    *,
    end_s: float = 0.0,
) -> AsyncGenerator[ServerProcess, None]:
    """Run a server for the time of the block.

    Args:
        argv: Its command line.
        cwd: Its folder.
        environment: Its whole environment.
        sandbox: The sandbox of the session.
        bounds: Its box.
        end_s: Seconds to end by itself once its input is closed.

    Raises:
        ToolError: It cannot be started.
        ConfigError: There is no room for temporary files.
    """
    read_fd, write_fd = os.pipe()
    try:
        os.set_blocking(write_fd, False)
        async with sandbox.boxed(argv, environment, cwd, bounds) as start:
            child = await Child.start(
                start.argv, cwd=cwd, env=start.env, has_stderr=True, pass_fds=start.pass_fds, stdin=read_fd
            )
            try:
                os.close(read_fd)
                read_fd = -1
                yield ServerProcess(child, write_fd)
            finally:
                os.close(write_fd)
                write_fd = -1
                with CancelScope(shield=True), move_on_after(end_s):
                    await child.wait()
                await child.end_tree(_KILL_GRACE_S)
                child.close()
    finally:
        for fd in (read_fd, write_fd):
            if fd >= 0:
                os.close(fd)
