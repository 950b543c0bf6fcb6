"""The place with many machines: workers of a Dask scheduler, which panpan starts or the user has."""

import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import anyio
import sniffio
from anyio import CancelScope

from panpan.batch.cluster.hosts import (
    LocalWorkers,
    Machines,
    SchedulerAddress,
    SlurmWorkers,
    SshWorkers,
    parse_machines,
)
from panpan.batch.cluster.machines import (
    LocalMachine,
    Machine,
    SlurmMachine,
    SlurmQueue,
    SshMachine,
    WorkerCommand,
    keep,
    slurm_job,
)
from panpan.batch.cluster.security import make_certificate, require_packages, security_in
from panpan.batch.definition.campaign import Where
from panpan.batch.store.folder import CampaignFolder
from panpan.batch.store.records import AttemptEnd, HostState, Job
from panpan.errors import ConfigError
from panpan.system.files.folder_tree import make_private_folder

if TYPE_CHECKING:
    from distributed.security import Security

    from panpan.batch.cluster.roster import Roster
    from panpan.batch.cluster.runs import ClusterRuns
    from panpan.batch.cluster.worker import ProofOrder

RUNNER = "panpan.batch.attempts.attempt:run_attempt"
"""Function that runs an attempt on a worker."""

_CLOSE_S = 10.0


class ClusterPlace:
    """Runs attempts on the workers of a Dask scheduler; see `Place`.

    Args:
        where: The machines, with `on`.
        folder: The campaign's folder, with its state.
        runner: Function that runs an attempt on a worker, as `module:name`.
        queue_poll_s: Seconds between looks into the queue of Slurm.
        connect_s: Seconds to wait for the scheduler.

    Raises:
        ConfigError: The extra `cluster` is not installed, or the machines are named wrongly.
    """

    def __init__(
        self,
        where: Where,
        folder: CampaignFolder,
        *,
        runner: str = RUNNER,
        queue_poll_s: float = 10.0,
        connect_s: float = 10.0,
    ) -> None:
        require_packages()
        self._where = where
        self._machines = parse_machines(where.on or "", folder.path, where.at_once)
        self._folder = folder
        self._runner = runner
        self._queue = SlurmQueue(queue_poll_s)
        self._connect_s = connect_s
        self._stack = AsyncExitStack()
        self._changed = anyio.Event()
        self._without_worker: dict[str, str] = {}
        self._roster: Roster | None = None
        self._runs: ClusterRuns | None = None

    async def __aenter__(self) -> Self:
        if sniffio.current_async_library() != "asyncio":
            raise ConfigError("a cluster needs asyncio, since Dask does; run the campaign under asyncio, not trio")
        import dask

        from panpan.batch.cluster.dask_library import SETTINGS, log_in
        from panpan.batch.cluster.roster import Roster
        from panpan.batch.cluster.runs import ClusterRuns

        logs = self._folder.state / "cluster" / "logs"
        async with AsyncExitStack() as stack:
            stack.enter_context(dask.config.set(SETTINGS))
            order = self._proof_order()
            # in the home, which no sandbox shows: attempts may read the campaign's folder
            certificate = Path(order.home) / "clusters" / order.campaign_id
            await anyio.to_thread.run_sync(_make_private, logs, certificate)
            stack.enter_context(log_in(logs / "scheduler.log"))
            address, security = await self._scheduler(stack, certificate)
            machines = self._started_machines(WorkerCommand(address, certificate), logs)
            runs = ClusterRuns(self._runner)
            roster = Roster(
                address,
                security,
                order,
                take_event=runs.take_event,
                changed=self._tell,
                polled=lambda: runs.submit_lost(roster),
                connect_s=self._connect_s,
            )
            await roster.connect()
            stack.push_async_callback(lambda: _close(roster.client.close))  # of the last connection
            group = await stack.enter_async_context(anyio.create_task_group())
            stack.callback(group.cancel_scope.cancel)
            group.start_soon(roster.watch, group)
            group.start_soon(self._queue.watch)
            for machine in machines:
                group.start_soon(keep, machine, partial(self._tell_machine, machine.name))
            self._roster, self._runs = roster, runs
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._stack.aclose()  # without the error, which the group would wrap

    @property
    def slots(self) -> int:
        return 0 if self._roster is None else self._roster.slots

    @property
    def hosts(self) -> Sequence[HostState]:
        listed = [] if self._roster is None else self._roster.hosts
        names = {host.name for host in listed}
        others = ((name, why) for name, why in self._without_worker.items() if name not in names)
        return [*listed, *(HostState(name=name, slots=0, problem=why) for name, why in others)]

    async def changed(self) -> None:
        await self._changed.wait()

    async def run(self, job: Job) -> AttemptEnd:
        if self._runs is None or self._roster is None:
            raise RuntimeError("the place has not been entered")
        return await self._runs.run(job, self._roster)

    def _proof_order(self) -> "ProofOrder":
        from panpan.batch.cluster.worker import ProofOrder

        frozen = self._folder.frozen()
        # workers that panpan starts here and by ssh have the numbers from their command line
        is_told = isinstance(self._machines, LocalWorkers | SshWorkers)
        return ProofOrder(
            folder=str(self._folder.path),
            campaign_id=frozen.id,
            home=frozen.home,
            gpus_each=frozen.campaign.attempt.gpu,
            gpus=None if is_told else self._where.gpus,
        )

    @property
    def _gpus(self) -> tuple[str, ...] | None:
        return None if self._where.gpus is None else tuple(map(str, self._where.gpus))

    async def _scheduler(self, stack: AsyncExitStack, certificate: Path) -> "tuple[str, Security | None]":
        """Return the address of the scheduler, which is started unless the user has one, and the way to speak to it."""
        if isinstance(self._machines, SchedulerAddress):
            return self._machines.address, None  # the user's settings of Dask say which certificates to use
        from panpan.batch.cluster.dask_library import QuietScheduler

        await anyio.to_thread.run_sync(make_certificate, certificate)
        security = security_in(certificate)
        host = await anyio.to_thread.run_sync(_own_address, self._machines, self._where.listen)
        try:
            scheduler = await QuietScheduler(protocol="tls://", host=host, port=0, security=security)
        except (OSError, RuntimeError) as error:  # RuntimeError: Dask's own, as for an address that is none
            raise ConfigError(f"no scheduler can listen at {host}: {error}; set [where] listen") from error
        stack.push_async_callback(_close, scheduler.close)
        return str(scheduler.address), security

    def _started_machines(self, command: WorkerCommand, logs: Path) -> Sequence[Machine]:
        """Return the machines whose workers panpan starts."""
        match self._machines:
            case LocalWorkers(count=count):
                numbers = self._gpus
                return [
                    LocalMachine(
                        f"local-{first + 1}",
                        command,
                        max(1, len(range(first, self._where.at_once, count))),  # at_once counts for the whole machine
                        None if numbers is None else numbers[first::count],
                        logs,
                    )
                    for first in range(count)
                ]
            case SshWorkers(hosts=hosts):
                return [SshMachine(host, command, logs) for host in hosts]
            case SlurmWorkers():
                slurm_job(
                    self._where.slurm, command, "trial", logs
                )  # so that mistakes in the settings are told at once
                slurm = self._where.slurm
                names = [f"slurm-{number}" for number in range(1, slurm.jobs + 1)]
                return [SlurmMachine(name, slurm, command, logs, self._queue) for name in names]
            case SchedulerAddress():
                return ()

    def _tell_machine(self, name: str, problem: str) -> None:
        self._without_worker[name] = problem
        self._tell()

    def _tell(self) -> None:
        told, self._changed = self._changed, anyio.Event()
        told.set()


async def _close(close: Callable[[], Awaitable[Any]]) -> None:
    with suppress(Exception), CancelScope(shield=True), anyio.move_on_after(_CLOSE_S):
        await close()


def _make_private(*folders: Path) -> None:
    for folder in folders:
        make_private_folder(folder)


def _own_address(machines: Machines, listen: str | None) -> str:
    """Return the address of this machine at which its workers reach it."""
    from distributed.utils import get_ip

    if isinstance(machines, LocalWorkers):
        return "127.0.0.1"
    if listen is not None:
        return listen
    if isinstance(machines, SshWorkers):
        with suppress(OSError, ValueError):
            return str(get_ip(socket.gethostbyname(machines.hosts[0].name.rpartition("@")[2])))
    return str(get_ip())
