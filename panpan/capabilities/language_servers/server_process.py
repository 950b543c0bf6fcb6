"""The process of a language server: started in a box in which it only reads, and ended with all that it started.

The rule: it gets no network, no keys, and nothing that it may change but a folder of the session for its caches. Where
no sandbox works it runs without: only trusted projects have servers.
"""

import os
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio import move_on_after
from anyio.lowlevel import checkpoint

from panpan.system.processes.child import Child
from panpan.system.sandbox.command_sandbox import Bounds, CommandSandbox
from panpan.system.text.terminal_text import clean_line

_END_S = 0.5
_KILL_GRACE_S = 0.3
_MAX_KEPT_BYTES = 8_000
"""Of each end of what it writes to its standard error."""
_MAX_REASON_CHARS = 300
_KILLED = (-9, 137)
"""Codes of a process that was killed (SIGKILL), as Python and as a shell or sandbox around it tell them."""
_TELLING = re.compile("error|fail|fatal|panic|cannot|not found|no such", re.IGNORECASE)


class ServerProcess:
    """A server that runs.

    Args:
        child: The process.
        input_fd: What it reads from, not blocking.
    """

    def __init__(self, child: Child, input_fd: int) -> None:
        self.child = child
        self.input_fd = input_fd
        self._first_errors, self._last_errors = b"", b""

    async def keep_errors(self) -> None:
        """Read what it writes to its standard error until that is closed, and keep the beginning and the end."""
        pipe = self.child.stderr
        while pipe is not None and not pipe.is_at_end:
            chunk = pipe.read()
            if chunk is None:
                await anyio.wait_readable(pipe.fd)
            elif chunk:
                self._keep(chunk)
                await checkpoint()

    def _keep(self, chunk: bytes) -> None:
        self._first_errors += chunk[: _MAX_KEPT_BYTES - len(self._first_errors)]
        self._last_errors = (self._last_errors + chunk)[-_MAX_KEPT_BYTES:]

    async def how_it_ended(self) -> str:
        """Return how a server ended whose output is closed, such as "ended with code 1: out of memory"."""
        with move_on_after(_END_S):
            await self.child.wait()
        if self.child.stderr is not None:
            self._keep(self.child.stderr.drain())
        said = [*_lines(self._first_errors), *_lines(self._last_errors)]
        how = f"with code {self.child.exit_code}" if self.child.has_ended else "its output"
        is_killed = self.child.has_ended and self.child.exit_code in _KILLED  # then it could say nothing of it
        telling = "" if is_killed else next(filter(_TELLING.search, said), said[-1] if said else "")
        why = clean_line(telling)[:_MAX_REASON_CHARS].rstrip(".")
        return f"ended {how}{f': {why}' if why else ''}"


def _lines(data: bytes) -> list[str]:
    return [line for line in data.decode("utf-8", "replace").splitlines() if line.strip()]


@asynccontextmanager
async def server_process(
    argv: Sequence[str], root: Path, environment: Mapping[str, str], sandbox: CommandSandbox
) -> AsyncGenerator[ServerProcess, None]:
    """Run a server for the time of the block.

    Args:
        argv: The program and its arguments.
        root: Its working directory, canonical.
        environment: What it gets of the environment.
        sandbox: That of the session's commands.

    Raises:
        ToolError: It cannot be started.
        ConfigError: There is no room for temporary files.
    """
    env = await _with_caches(environment, sandbox)
    read_fd, write_fd = os.pipe()
    try:
        os.set_blocking(write_fd, False)
        async with sandbox.boxed(argv, env, root, Bounds(is_read_only=True)) as start:
            child = await Child.start(
                start.argv, cwd=root, env=start.env, has_stderr=True, pass_fds=start.pass_fds, stdin=read_fd
            )
            try:
                os.close(read_fd)
                read_fd = -1
                yield ServerProcess(child, write_fd)
            finally:
                await child.end_tree(_KILL_GRACE_S)
                child.close()
    finally:
        os.close(write_fd)
        if read_fd >= 0:
            os.close(read_fd)


async def _with_caches(environment: Mapping[str, str], sandbox: CommandSandbox) -> dict[str, str]:
    """Return the environment, with places for what servers keep where they could write nowhere else."""
    if not sandbox.is_on or await sandbox.is_missing():
        return dict(environment)
    caches = sandbox.temporary / "language-servers"
    own = {"XDG_CACHE_HOME": caches, "GOCACHE": caches / "go-build", "CARGO_TARGET_DIR": caches / "cargo"}
    return {**environment, **{name: str(path) for name, path in own.items()}}
