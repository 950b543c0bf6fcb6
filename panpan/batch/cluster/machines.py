"""Workers that panpan starts, here, by ssh and as jobs of Slurm, and starts again when they end.

The rule: a machine that cannot be used never holds up the others. Its reason is told, and it is tried again with
growing pauses.
"""

import getpass
import itertools
import os
import shlex
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import anyio
from anyio import CancelScope

from panpan.batch.cluster.hosts import SshHost
from panpan.batch.coordination.pauses import GrowingPause
from panpan.batch.definition.campaign import SlurmSettings
from panpan.batch.store.wording import STARTS, shortened
from panpan.errors import ConfigError, ToolError
from panpan.system.environment import user_environment
from panpan.system.processes.process import Child, capture

if TYPE_CHECKING:
    from dask_jobqueue.slurm import SLURMJob

_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 300.0
_STEADY_S = 30.0
"""A worker that lived this long was no failed start, and is started again at once."""
_LEAVE_S = 12.0
"""Time for a worker to stop its attempts and leave."""
_SLURM_S = 60.0
_TAIL_BYTES = 4_000
_LOG_BYTES = 1_000_000
_SIGNALLED = 128
_ROUTINE = " - INFO - "

Told = Callable[[str], None]
"""Takes the reason that a machine has no worker now."""


class Machine(Protocol):
    """A place for one worker."""

    @property
    def name(self) -> str: ...

    async def run(self, worker: str, told: Told) -> str:
        """Run a worker of that name to its end, and return the reason of the end."""
        ...


def worker_name(machine: str, count: int) -> str:
    """Return the name of a machine's worker; each start has one of its own, since the last may still be known."""
    return f"{machine}~{count}"


def machine_of(worker: str) -> str:
    """Return the machine of a worker that panpan has started."""
    return worker.partition("~")[0]


async def keep(
    machine: Machine,
    told: Told,
    *,
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    clock: Callable[[], float] = anyio.current_time,
) -> None:
    """Keep a worker on a machine, until cancelled."""
    pause = GrowingPause(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
    for count in itertools.count(1):
        began = clock()
        told(STARTS)
        reason = await machine.run(worker_name(machine.name, count), told)
        if clock() - began >= _STEADY_S:
            pause.reset()
        pause_s = pause.take()
        told(f"{shortened(reason)}; tried again in {pause_s:.0f} s")
        await sleep(pause_s)


class WorkerCommand:
    """Command line of a worker.

    Args:
        address: The scheduler's.
        certificate: Folder with the certificate.
    """

    def __init__(self, address: str, certificate: Path) -> None:
        self.address = address
        self.certificate = certificate

    def argv(self, python: str, name: str, slots: int, gpus: Sequence[str] | None) -> list[str]:
        """Return the command of a worker that ends when its input closes."""
        # -P: nothing is imported from the folder that it happens to start in
        module = [python, "-P", "-m", "panpan.batch.cluster.worker_process", self.address]
        options = ["--certificate", str(self.certificate), "--name", name, "--nthreads", str(slots), "--held"]
        return [*module, *options, *([] if gpus is None else ["--gpus", ",".join(gpus)])]


class LocalMachine:
    """A worker on this machine."""

    def __init__(self, name: str, command: WorkerCommand, slots: int, gpus: Sequence[str] | None, logs: Path) -> None:
        self.name = name
        self._command = command
        self._slots = slots
        self._gpus = gpus
        self._logs = logs

    async def run(self, worker: str, told: Told) -> str:
        argv = self._command.argv(sys.executable, worker, self._slots, self._gpus)
        return await _run_held(argv, self._logs / f"{self.name}.log")


class SshMachine:
    """A worker on a host that the user's ssh reaches. It ends with the connection."""

    def __init__(self, host: SshHost, command: WorkerCommand, logs: Path) -> None:
        self.name = host.name
        self._host = host
        self._command = command
        self._logs = logs

    async def run(self, worker: str, told: Told) -> str:
        host = self._host
        line = shlex.join(self._command.argv(host.python, worker, host.slots, host.gpus))
        options = ("BatchMode=yes", "ConnectTimeout=15", "ServerAliveInterval=5", "ServerAliveCountMax=3")
        argv = ["ssh", "-T", *(word for option in options for word in ("-o", option)), "--", host.name, f"exec {line}"]
        return await _run_held(argv, self._logs / f"{self.name}.log")


class SlurmQueue:
    """The user's jobs in the queue of Slurm, asked for all machines at once."""

    def __init__(self, poll_s: float) -> None:
        self._poll_s = poll_s
        self._waiting: dict[str, anyio.Event] = {}

    async def gone(self, job_id: str) -> None:
        """Return when a job has ended."""
        event = self._waiting.setdefault(job_id, anyio.Event())
        try:
            await event.wait()
        finally:
            del self._waiting[job_id]

    async def watch(self) -> None:
        """Ask again and again, until cancelled."""
        while True:
            await anyio.sleep(self._poll_s)
            asked = dict(self._waiting)
            listed = await _listed_jobs() if asked else None
            for job_id, event in asked.items():
                if listed is not None and job_id not in listed:
                    event.set()


class SlurmMachine:
    """A worker in a job of Slurm."""

    def __init__(
        self, name: str, settings: SlurmSettings, command: WorkerCommand, logs: Path, queue: SlurmQueue
    ) -> None:
        self.name = name
        self._settings = settings
        self._command = command
        self._logs = logs
        self._queue = queue

    async def run(self, worker: str, told: Told) -> str:
        log = self._logs / f"{self.name}.log"
        job = slurm_job(self._settings, self._command, worker, log)
        try:
            with CancelScope(shield=True), anyio.fail_after(_SLURM_S):  # a job that nobody knows could not be cancelled
                await job.start()
        except (OSError, RuntimeError, ValueError, TimeoutError) as error:
            return f"sbatch: {_last_line(str(error).encode()) or 'it does not answer'}"
        told(f"job {job.job_id} waits in the queue of Slurm, or starts")
        is_over = False
        try:
            await self._queue.gone(str(job.job_id))
            is_over = True
        finally:
            if not is_over:
                with CancelScope(shield=True), anyio.move_on_after(_SLURM_S):
                    await job.close()
        return f"job {job.job_id} has ended: {await anyio.to_thread.run_sync(_end_of, log) or 'it printed nothing'}"


def slurm_job(settings: SlurmSettings, command: WorkerCommand, worker: str, log: Path) -> "SLURMJob":
    """Return a job that runs a worker; its queue, account and directives are those of the campaign.

    The worker gets SIGTERM a minute before its time is up, or when another job takes its place.

    Raises:
        ConfigError: The settings are wrong.
    """
    own = [f"--output={shlex.quote(str(log))}", "--open-mode=truncate", "--no-requeue"]
    if not any(line.strip().startswith("--signal") for line in settings.directives):
        own.append("--signal=B:TERM@60")
    make = _import_slurm_job()
    try:
        return make(
            scheduler=command.address,
            name=worker,
            job_name="panpan",
            cores=settings.slots,
            processes=1,
            memory=settings.memory,
            job_cpu=settings.cores,
            walltime=settings.walltime,
            queue=settings.queue,
            account=settings.account,
            # exec: the signal goes to the script's own process alone
            python=f"exec {shlex.quote(sys.executable)} -P",
            worker_command="panpan.batch.cluster.worker_process",
            worker_extra_args=["--certificate", shlex.quote(str(command.certificate))],
            job_extra_directives=[*own, *settings.directives],
            job_script_prologue=list(settings.prologue),
        )
    except ValueError as error:  # as of the memory
        raise ConfigError(f"[where.slurm] is wrong: {error}") from error


def _import_slurm_job() -> "type[SLURMJob]":
    """Import the class of jobs, and keep the handler of Ctrl+C, which dask-jobqueue replaces when it is imported."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        from dask_jobqueue.slurm import SLURMJob
    except ValueError as error:  # of signal.signal()
        raise ConfigError("a campaign on Slurm cannot run in a thread; run it in the main thread") from error
    if handler is not signal.getsignal(signal.SIGINT):
        signal.signal(signal.SIGINT, handler)
        signal.siginterrupt(signal.SIGINT, False)  # as asyncio has it
    return SLURMJob


async def _listed_jobs() -> set[str] | None:
    """Return the ids of the user's jobs that wait or run; None if Slurm does not answer."""
    argv = ["squeue", "--noheader", "--format=%i", f"--user={getpass.getuser()}"]
    try:
        done = await capture(argv, cwd=Path("/"), env=user_environment(), timeout_s=_SLURM_S)
    except ToolError:
        return None
    return set(done.stdout.decode(errors="replace").split()) if done.exit_code == 0 else None


async def _run_held(argv: Sequence[str], log: Path) -> str:
    """Run a worker that ends when its input closes, and return the reason of its end."""
    read_end, write_end = os.pipe()
    try:
        # its attempts ask providers, so it gets the keys, too
        child = await Child.start(argv, cwd=Path("/"), env=os.environ, has_stderr=False, stdin=read_end)
    except ToolError as error:
        os.close(write_end)
        return str(error)
    finally:
        os.close(read_end)
    output = _Output(log)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(output.follow, child)
            await child.wait()
            group.cancel_scope.cancel()
    finally:
        os.close(write_end)
        with CancelScope(shield=True), anyio.move_on_after(_LEAVE_S):
            await child.wait()
        await child.end_tree(0)
        output.add(child.stdout.drain())
        child.close()
    if 0 < child.exit_code - _SIGNALLED < 65:  # ssh has 255 for its own errors
        return f"it was ended by signal {child.exit_code - _SIGNALLED}"
    return output.last_line or f"it ended with exit code {child.exit_code}"


class _Output:
    """Output of a worker: the beginning in a file, and the last line."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._written = 0
        self._tail = b""

    @property
    def last_line(self) -> str:
        return _last_line(self._tail)

    async def follow(self, child: Child) -> None:
        while not child.stdout.is_at_end:
            if chunk := child.stdout.read():
                self.add(chunk)
            elif not child.stdout.is_at_end:
                await anyio.wait_readable(child.stdout.fd)

    def add(self, chunk: bytes) -> None:
        self._tail = (self._tail + chunk)[-_TAIL_BYTES:]
        with suppress(OSError), self._log.open("ab" if self._written else "wb") as file:
            file.write(chunk[: max(0, _LOG_BYTES - self._written)])
        self._written += len(chunk)


def _end_of(log: Path) -> str:
    with suppress(OSError), log.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
        return _last_line(file.read(_TAIL_BYTES))
    return ""


def _last_line(output: bytes) -> str:
    """Return the last line that is no routine note of Dask."""
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if _ROUTINE not in line]
    return next((line for line in reversed(lines) if line), "")
