"""The side of a worker: its proof that it can run a campaign's attempts, and the attempts themselves.

The rule: the coordinator names `prove` and `run_on_worker`, and a worker has its own panpan run them. Text goes to and
fro, since objects of two versions need not match.
"""

import os
import socket
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

import anyio
from distributed import Worker, WorkerPlugin, get_worker
from distributed.core import Status

from panpan.batch.coordination.local_place import RunAttempt, find_gpus
from panpan.batch.store.folder import CampaignFolder
from panpan.batch.store.lease import LeaseLostError
from panpan.batch.store.records import AttemptEnd, Job, Record, Stopped, Unfit
from panpan.errors import OutputError, PanpanError
from panpan.version import __version__

_POLL_S = 0.3
"""Between looks whether an attempt is still wanted."""
_LEAVE_S = 9.0
"""Time for all attempts of a worker to stop; one needs six seconds at most."""


class ProofOrder(Record):
    """Facts of the campaign that a worker is held against."""

    folder: str
    campaign_id: str
    home: str
    version: str = __version__
    gpus_each: int = 0
    """GPUs for one attempt."""
    gpus: tuple[int, ...] | None = None
    """Numbers of the GPUs to use; None: those that the worker was started with, or sees."""


class Proof(Record):
    """The answer of a worker."""

    host: str
    slots: int = 0
    problem: str = ""
    """Reason that it is unfit; empty if it is fit."""


class WorkerEnd(Record):
    """The end of one run on a worker."""

    worker: str = ""
    """Address; empty where none has run it."""
    end: AttemptEnd
    has_left: bool = False
    """True if the attempt stopped because the worker leaves, so that it goes on elsewhere."""


class Seat(WorkerPlugin):
    """The share of one campaign in one worker: the runs that go on, and the GPUs that are free.

    Args:
        gpus: Numbers of the GPUs.
    """

    def __init__(self, gpus: Sequence[str] = ()) -> None:
        self.all_gpus = tuple(gpus)
        self._free = deque(gpus)
        self._lock = threading.Lock()
        self._running = 0
        self._is_leaving = False
        self._worker: Worker | None = None

    def setup(self, worker: Worker) -> None:
        self._worker = worker

    async def teardown(self, worker: Worker) -> None:
        await self.leave()

    @property
    def is_leaving(self) -> bool:
        """True if the worker leaves, and its attempts go on elsewhere."""
        worker = self._worker
        return self._is_leaving or (worker is not None and worker.status not in (Status.running, Status.paused))

    def is_wanted(self, key: str) -> bool:
        """True if the scheduler still wants the run of that name. May be called in any thread."""
        if self.is_leaving or self._worker is None:
            return False
        task = self._worker.state.tasks.get(key)
        return task is not None and task.state not in ("cancelled", "resumed")

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count a run while it lasts."""
        with self._lock:
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1

    def take_gpus(self, count: int) -> Sequence[str] | None:
        """Take GPUs that nobody else has; None while a run that was stopped still holds some."""
        with self._lock:
            return [self._free.popleft() for _ in range(count)] if len(self._free) >= count else None

    def give_gpus_back(self, gpus: Sequence[str]) -> None:
        with self._lock:
            self._free.extend(gpus)

    async def leave(self) -> None:
        """Stop all attempts, and wait for them, within limits."""
        self._is_leaving = True
        with anyio.move_on_after(_LEAVE_S):
            while self._running:  # noqa: ASYNC110 -- other threads count
                await anyio.sleep(0.05)


def seat_name(campaign_id: str) -> str:
    """Return the name of a campaign's seat at a worker, of its slots as a resource, and of its events."""
    return f"panpan-{campaign_id}"


async def prove(text: str, dask_worker: Worker) -> str:
    """Check that this worker can run a campaign's attempts, and offer its slots to the scheduler if so.

    Args:
        text: A `ProofOrder`.
        dask_worker: Given by Dask.

    Returns:
        A `Proof`.
    """
    order = ProofOrder.model_validate_json(text)
    name = seat_name(order.campaign_id)
    host = f"{dask_worker.name}" if isinstance(dask_worker.name, str) else socket.gethostname()
    problem = await anyio.to_thread.run_sync(_problem, order)
    old = dask_worker.plugins.get(name)
    if isinstance(old, Seat):
        gpus: Sequence[str] = old.all_gpus
    else:
        gpus = await find_gpus(order.gpus) if order.gpus_each else ()
        await dask_worker.plugin_add(Seat(gpus), name=name)
    slots = dask_worker.state.nthreads
    if order.gpus_each:
        slots = min(slots, len(gpus) // order.gpus_each)
        problem = problem or ("" if slots else f"it has {len(gpus)} GPUs, and an attempt needs {order.gpus_each}")
    offered = {name: 0 if problem else slots}
    if "GPU" not in dask_worker.state.total_resources:  # else the user has said how many
        offered["GPU"] = len(gpus)
    await dask_worker.set_resources(**offered)
    return Proof(host=host, slots=slots, problem=problem).model_dump_json()


async def withdraw(campaign_id: str, dask_worker: Worker) -> None:
    """Take this worker's slots away from a campaign, since it has turned out to be unfit."""
    await dask_worker.set_resources(**{seat_name(campaign_id): 0})


def _problem(order: ProofOrder) -> str:
    """Return the reason that this machine is unfit; empty if it is fit."""
    if order.version != __version__:
        return f"it has panpan {__version__}, and the campaign runs with {order.version}"
    try:
        frozen = CampaignFolder(Path(order.folder)).frozen()
    except PanpanError as error:
        return f"it does not see the campaign's folder: {error}"
    if frozen.id != order.campaign_id:
        return f"{order.folder} holds another campaign there"
    if not Path(order.home).is_dir() or not os.access(order.home, os.W_OK):
        return f"it cannot write to the panpan home of the campaign: {order.home}"
    return ""


def run_on_worker(text: str, key: str, runner: str) -> str:
    """Run an attempt in this thread of a worker, until it ends or the scheduler wants it no more.

    Args:
        text: The `Job`.
        key: Name of the run at the scheduler.
        runner: Function that runs an attempt, as `module:name`.

    Returns:
        A `WorkerEnd`.
    """
    job = Job.model_validate_json(text)
    worker = get_worker()
    topic = seat_name(job.campaign_id)
    seat = worker.plugins.get(topic)
    if not isinstance(seat, Seat):
        unproved = Unfit(reason="the worker has not proved itself", is_of_machine=True)
        return WorkerEnd(end=unproved).model_dump_json()
    module, _, name = runner.partition(":")
    run_attempt: RunAttempt = getattr(import_module(module), name)
    worker.log_event(topic, {"key": key, "state": "began", "worker": worker.address})
    try:
        with seat.running():
            end = anyio.run(_run, job, key, seat, run_attempt)
    except (OutputError, LeaseLostError) as error:
        end = Stopped(reason=str(error))
    except PanpanError as error:
        end = Unfit(reason=str(error))
    finally:
        with suppress(Exception):  # the connection is gone, and with it whoever would listen
            worker.log_event(topic, {"key": key, "state": "ended", "worker": worker.address})
    has_left = isinstance(end, Stopped) and seat.is_leaving
    return WorkerEnd(worker=worker.address, end=end, has_left=has_left).model_dump_json()


async def _run(job: Job, key: str, seat: Seat, run_attempt: RunAttempt) -> AttemptEnd:
    end: AttemptEnd = Stopped(reason="the worker was told to stop it")
    failure: Exception | None = None
    gpus: Sequence[str] | None = None
    async with anyio.create_task_group() as group:

        async def watch() -> None:
            while seat.is_wanted(key):  # noqa: ASYNC110 -- Dask tells no thread
                await anyio.sleep(_POLL_S)
            group.cancel_scope.cancel()

        group.start_soon(watch)
        try:
            while (gpus := seat.take_gpus(job.gpus)) is None:  # noqa: ASYNC110 -- other threads give back
                await anyio.sleep(_POLL_S)
            end = await run_attempt(job, gpus)
        except Exception as error:  # raised below, since the group would wrap it
            failure = error
        finally:
            seat.give_gpus_back(gpus or ())
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return end
