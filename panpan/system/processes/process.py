"""The process runner: the one way to run a program.

The rule: a program has empty input (one of panpan's own may get a file), its own session and a bounded time, and it
ends when it does, not when its pipes close. Whoever leaves early, by time-out, cancellation or by closing the
generator, leaves no process behind. After a normal end what a command started in the background runs on, its pipe read
by others or by nobody; the session's own `ProcessTree` ends it with the session.

Not run here are `ps`, where there is no /proc (`process_table.py`), the server of the embedded model, which is told
what to do through its input and ends with it (`capabilities/local_model/server.py`), and what may outlive panpan
(`detached.py`).
"""

import codecs
import errno
import math
import os
import shutil
import signal
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from subprocess import DEVNULL
from typing import IO, Self

import anyio
from anyio import CancelScope
from anyio.abc import Process
from anyio.lowlevel import checkpoint

from panpan.errors import ToolError
from panpan.system.environment import child_environment
from panpan.system.processes.own_process import with_watchdog
from panpan.system.processes.process_table import ProcessTree
from panpan.types.dataclass import dataclass

CHUNK_BYTES = 1 << 16
EXIT_POLL_S = 0.03
"""Between asking a silent process whether it has ended while something else holds its pipe open."""

_LOW_PRIORITY = 10
_REAP_S = 2.0
_SEEN_S = 0.5
"""Time until the end of a process that is over is told."""
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
        if self.write_fd >= 0:
            os.close(self.write_fd)
            self.write_fd = -1

    def close(self) -> None:
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
        """Start a program; errors go where the output goes, unless `has_stderr` gives them a pipe of their own.

        `env` is its whole environment but for marks; `pass_fds` are inherited under the same numbers.

        Raises:
            ToolError: It cannot be started.
        """
        _require_startable(argv, cwd)
        tree = ProcessTree()
        pipes: list[OutputPipe] = []
        try:
            stdout = _opened(pipes)
            stderr = _opened(pipes) if has_stderr else None
            with CancelScope(shield=True):  # a cancelled start would leave an unknown process
                process = await anyio.open_process(
                    list(argv),
                    stdin=stdin,
                    stdout=stdout.write_fd,
                    stderr=(stderr or stdout).write_fd,
                    cwd=cwd,
                    env=tree.marked(with_watchdog(env)),
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
        """Exit code as a shell tells it: 128 and the signal's number when one ended the process.

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
            with suppress(OSError, ValueError):  # it has ended, or has a lower limit already
                resource.prlimit(self._process.pid, resource.RLIMIT_AS, (size_bytes, size_bytes))

    def give_way(self) -> None:
        """Let the process have little time where other programs want it."""
        with suppress(OSError):  # it has ended
            os.setpriority(os.PRIO_PROCESS, self._process.pid, _LOW_PRIORITY)
        with suppress(OSError):  # not Linux, or each session has the same priority here
            Path(f"/proc/{self._process.pid}/autogroup").write_text(f"{_LOW_PRIORITY}\n")

    async def wait(self) -> None:
        """Return when the process itself has ended."""
        await self._process.wait()

    async def end_tree(self, grace_s: float) -> None:
        """End the process and all that came from it; cannot be cancelled."""
        await self.tree.end(grace_s)
        with CancelScope(shield=True), anyio.move_on_after(_REAP_S):
            with anyio.move_on_after(_SEEN_S):  # kill() may reap it, and asyncio would miss the exit code
                await self._process.wait()
            if not self.has_ended:
                with suppress(ProcessLookupError):
                    self._process.kill()  # if no process could be seen, kill at least the known one
                await self._process.wait()

    def close(self) -> None:
        self.stdout.close()
        if self.stderr is not None:
            self.stderr.close()


def _opened(pipes: list[OutputPipe]) -> OutputPipe:
    pipe = OutputPipe()
    pipes.append(pipe)
    return pipe


def _require_startable(argv: Sequence[str], cwd: Path) -> None:
    if not argv or not argv[0]:
        raise ToolError("there is no program to start")
    if not cwd.is_dir():
        raise ToolError(f"cannot start {argv[0]}: the working directory {cwd} is not a folder")


def _not_started(program: str, env: Mapping[str, str], exc: OSError | ValueError) -> ToolError:
    # An unreadable folder on the PATH turns "not found" into "permission denied".
    is_missing = "/" not in program and shutil.which(program, path=env.get("PATH")) is None
    if isinstance(exc, FileNotFoundError) or (isinstance(exc, PermissionError) and is_missing):
        return ToolError(f"cannot start {program}: there is no such program")
    if isinstance(exc, OSError) and exc.errno in (errno.EMFILE, errno.ENFILE):
        return ToolError(
            f"cannot start {program}: too many files are open; run fewer calls at once, or raise `ulimit -n`"
        )
    reason = exc.strerror if isinstance(exc, OSError) else str(exc)
    return ToolError(f"cannot start {program}: {reason}")


INTERRUPT_GRACE_S = 0.3
"""Seconds between TERM and KILL if the caller of a program has left: a user who interrupts waits for it."""

_REST_GRACE_S = 0.1
"""Time for a pipe that others hold to end by itself, as after a process that was about to end anyway."""


@dataclass(frozen=True, slots=True)
class ProcessEnded:
    """The last thing that `run_process` yields."""

    exit_code: int
    """Exit code as a shell tells it: 128 and the signal's number when one ended the process."""
    timed_out: bool


class ChildHandover:
    """The last thing that is yielded of a process that is to go on without the call that started it."""

    def __init__(self, child: Child) -> None:
        self.is_taken = False
        self._child = child

    def take(self) -> Child:
        """Return the process, which runs and is the caller's to follow from now on (see `run_child`)."""
        self.is_taken = True
        return self._child

    def give_back(self) -> None:
        """Let the process be ended after all."""
        self.is_taken = False


@dataclass(frozen=True, slots=True)
class Captured:
    """Output of a program, and how it ended."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    timed_out: bool
    """True if it was ended because its time was up; the output is what came until then."""
    is_truncated: bool
    """True if it printed more than was asked for. It was ended then, and the exit code tells only that."""


async def run_process(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float | None,
    kill_grace_s: float = 2.0,
    pass_fds: Sequence[int] = (),
    take_pipe: Callable[[int], object] | None = None,
    leaves: Callable[[bool], bool] | None = None,
) -> AsyncGenerator[bytes | ProcessEnded | ChildHandover, None]:
    """Run a program and yield what it prints, then how it ended. Consume it under `aclosing`.

    The further arguments are those of `Child.start` and `run_child`.

    Raises:
        ToolError: It cannot be started.
    """
    child = await Child.start(argv, cwd=cwd, env=env, has_stderr=False, pass_fds=pass_fds)
    following = run_child(child, timeout_s=timeout_s, kill_grace_s=kill_grace_s, take_pipe=take_pipe, leaves=leaves)
    async with aclosing(following) as items:
        async for item in items:
            yield item


async def run_child(
    child: Child,
    *,
    timeout_s: float | None,
    kill_grace_s: float = 2.0,
    take_pipe: Callable[[int], object] | None = None,
    leaves: Callable[[bool], bool] | None = None,
) -> AsyncGenerator[bytes | ProcessEnded | ChildHandover, None]:
    """Follow a process to its end: yield what it prints, then how it ended. Consume it under `aclosing`.

    Args:
        child: The process; ended where the caller leaves early.
        timeout_s: Seconds from now after which the whole tree is ended.
        kill_grace_s: Seconds between asking the tree to end and killing it when its time is up; whoever leaves early
            waits no longer than `INTERRUPT_GRACE_S`.
        take_pipe: Called before `ProcessEnded`, with the descriptor to read from and to close, where something that was
            left in the background can still write to the pipe. Without it the pipe is closed, and whoever writes to it
            gets SIGPIPE.
        leaves: Told whether the time is up; where it says so, `ChildHandover` is yielded as the last thing, and the
            process is ended only if nobody takes it.
    """
    deadline = None if timeout_s is None else anyio.current_time() + timeout_s
    has_finished = False
    handover = ChildHandover(child)
    try:
        while not (child.has_ended or _is_over(deadline) or (leaves is not None and leaves(False))):
            if chunk := await _next_chunk(child, deadline, is_asked=leaves is not None):
                yield chunk
        if not child.has_ended and leaves is not None and leaves(_is_over(deadline)):
            yield handover
            return
        timed_out = not child.has_ended
        if timed_out:
            await child.end_tree(kill_grace_s)
        elif take_pipe is not None:
            grace_end = anyio.current_time() + _REST_GRACE_S
            while not (child.stdout.is_at_end or _is_over(grace_end)):
                if chunk := await _next_chunk(child, grace_end):
                    yield chunk
        has_finished = True
        if rest := child.stdout.drain():
            yield rest
        if take_pipe is not None and not (timed_out or child.stdout.is_at_end):
            take_pipe(child.stdout.hand_over())
        yield ProcessEnded(child.exit_code, timed_out)
    finally:
        if not handover.is_taken:
            try:
                if not has_finished:
                    await child.end_tree(min(kill_grace_s, INTERRUPT_GRACE_S))
            finally:
                child.close()


async def capture(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    timeout_s: float | None,
    max_bytes: int = 10_000_000,
    stdin: int | IO[bytes] = DEVNULL,
    pass_fds: Sequence[int] = (),
    gives_way: bool = False,
) -> Captured:
    """Run a program of panpan's own and return what it printed; nothing of it runs on afterwards.

    Args:
        argv: The program and its arguments.
        cwd: Its working directory.
        env: Its whole environment; `child_environment()` if not given.
        timeout_s: Seconds after which it is ended.
        max_bytes: Most that is kept of each of the two outputs; a program that prints more is ended.
        stdin: A file that it reads; empty input if not given.
        pass_fds: Descriptors that it inherits under the same numbers.
        gives_way: True if it gets little time where other programs want it.

    Raises:
        ToolError: It cannot be started.
    """
    own_env = child_environment() if env is None else env
    child = await Child.start(argv, cwd=cwd, env=own_env, has_stderr=True, stdin=stdin, pass_fds=pass_fds)
    if gives_way:
        child.give_way()
    gathered = [_Gathered(pipe, max_bytes) for pipe in (child.stdout, child.stderr) if pipe is not None]
    is_clean = False
    try:
        with anyio.move_on_after(timeout_s):
            async with anyio.create_task_group() as task_group:
                for one in gathered:
                    task_group.start_soon(one.fill, task_group.cancel_scope)
                await child.wait()
                task_group.cancel_scope.cancel()
        timed_out = not child.has_ended and not any(one.is_full for one in gathered)
        if not child.has_ended:
            await child.end_tree(INTERRUPT_GRACE_S)
        for one in gathered:
            one.add(one.pipe.drain())
        is_clean = all(one.pipe.is_at_end for one in gathered)
    finally:
        try:
            if not is_clean:  # it still runs, or left something that holds its pipes
                await child.end_tree(INTERRUPT_GRACE_S)
        finally:
            child.close()
    stdout, stderr = (bytes(one.kept) for one in gathered)
    return Captured(child.exit_code, stdout, stderr, timed_out, any(one.is_full for one in gathered))


class _Gathered:
    def __init__(self, pipe: OutputPipe, max_bytes: int) -> None:
        self.pipe = pipe
        self.kept = bytearray()
        self.is_full = False
        self._max_bytes = max_bytes

    def add(self, chunk: bytes) -> None:
        room = self._max_bytes - len(self.kept)
        self.kept += chunk[:room]
        self.is_full = self.is_full or len(chunk) > room

    async def fill(self, scope: anyio.CancelScope) -> None:
        """Read to the end; cancel `scope` when there is more than fits."""
        while not self.pipe.is_at_end:
            chunk = self.pipe.read()
            if chunk is None:
                await anyio.wait_readable(self.pipe.fd)
                continue
            self.add(chunk)
            if self.is_full:
                scope.cancel()
            await checkpoint()


def _is_over(deadline: float | None) -> bool:
    return deadline is not None and anyio.current_time() >= deadline


async def _next_chunk(child: Child, deadline: float | None, *, is_asked: bool = False) -> bytes | None:
    """Return what the process printed next; nothing when it is time to look whether it has ended or must end.

    `is_asked` means that it must be looked often whether somebody wants it elsewhere, also where it prints no more.
    """
    if child.stdout.is_at_end:
        look_at = math.inf if deadline is None else deadline
        if is_asked:
            look_at = min(look_at, anyio.current_time() + EXIT_POLL_S)
        with anyio.CancelScope(deadline=look_at):
            await child.wait()
        return None
    chunk = child.stdout.read()
    if chunk is None:
        with anyio.move_on_after(EXIT_POLL_S):
            await anyio.wait_readable(child.stdout.fd)
        return None
    await checkpoint()  # a program that never stops printing must not block everything else
    return chunk


MAX_PER_S = 10
BURST = 10
"""Messages that may come at once after a silence."""

FLOOD_BYTES = 16_384
"""Bytes waiting for the screen; with more, they are passed on at once, so that output never slows a command down."""

MAX_SHOWN_CHARS = 8_000


class ProgressPacer:
    """Joins what a command prints into messages for the screen. All times are seconds of one clock."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._waiting = ""
        self._waiting_bytes = 0
        self._is_after_return = False
        self._allowance = float(BURST)
        self._counted_at: float | None = None

    def add(self, data: bytes) -> None:
        self._waiting += self._decoder.decode(data)
        self._waiting_bytes += len(data)
        if len(self._waiting) > 4 * MAX_SHOWN_CHARS:
            self._waiting = "…" + self._waiting[-MAX_SHOWN_CHARS:]

    def pause_s(self, now: float) -> float:
        """Return the seconds to wait before the next message."""
        self._count(now)
        if self._allowance >= 1 or self._waiting_bytes >= FLOOD_BYTES:
            return 0.0
        return (1 - self._allowance) / MAX_PER_S

    def take(self, now: float) -> str:
        """Return the message for the screen; nothing when it is too early."""
        self._count(now)
        if self._allowance < 1 - 1e-3:
            return ""
        self._allowance -= 1
        return self.take_rest()

    def take_rest(self) -> str:
        """Return all that waits, early or not."""
        text, self._waiting, self._waiting_bytes = self._waiting, "", 0
        if len(text) > MAX_SHOWN_CHARS:
            text = "…" + text[-MAX_SHOWN_CHARS:]
        return self._folded(text)

    def _count(self, now: float) -> None:
        if self._counted_at is not None:
            self._allowance = min(BURST, self._allowance + (now - self._counted_at) * MAX_PER_S)
        self._counted_at = now

    def _folded(self, text: str) -> str:
        """Return `text` with each state of a rewritten line on a line of its own, and of those in it only the last."""
        if not text:
            return ""
        was_after_return, self._is_after_return = self._is_after_return, text.endswith("\r")
        if was_after_return and not text.startswith(("\n", "\r")):
            text = "\n" + text
        if "\r" not in text:
            return text
        lead = "\n" if text.startswith("\r") and not text.startswith("\r\n") else ""
        lines = text.replace("\r\n", "\n").split("\n")
        return lead + "\n".join(next((state for state in reversed(line.split("\r")) if state), "") for line in lines)


MAX_HELD_BYTES = 1 << 16


class LineFolder:
    """Takes output piece by piece and returns it with rewritten lines folded."""

    def __init__(self) -> None:
        self._held = b""
        """The unfinished line: a carriage return may still come for it."""

    def feed(self, data: bytes) -> bytes:
        """Return what is certain by now."""
        data = self._held + data
        end = data.rfind(b"\n") + 1
        self._held = data[end:]
        done = self._folded_lines(data[:end])
        if len(self._held) > MAX_HELD_BYTES:
            folded = _folded(self._held)
            self._held = folded if len(folded) < MAX_HELD_BYTES else b""
            done += b"" if self._held else folded
        return done

    def finish(self) -> bytes:
        rest, self._held = _folded(self._held), b""
        return rest

    @staticmethod
    def _folded_lines(data: bytes) -> bytes:
        return b"\n".join(map(_folded, data.split(b"\n"))) if b"\r" in data else data


def _folded(line: bytes) -> bytes:
    """Return the last state of a line; a carriage return at its end, as in CRLF, stays."""
    if b"\r" not in line:
        return line
    states = line.split(b"\r")
    return next((state for state in reversed(states) if state), b"") + (b"" if states[-1] else b"\r")
