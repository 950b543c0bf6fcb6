"""The workers of a Dask scheduler, as the coordinator sees them: those that are fit, and reasons why others are not.

The rule: a worker's slots count once it has proved that it sees the campaign's folder with the same panpan.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import anyio
from anyio.abc import TaskGroup
from distributed import Client
from distributed.security import Security

from panpan.batch.cluster.machines import machine_of
from panpan.batch.cluster.worker import Proof, ProofOrder, prove, seat_name, withdraw
from panpan.batch.coordination.pauses import GrowingPause
from panpan.batch.store.records import HostState
from panpan.batch.store.wording import STARTS, shortened
from panpan.errors import ConfigError

ANSWER_S = 30.0
_POLL_S = 1.0
_FIRST_PAUSE_S = 2.0
_LONGEST_PAUSE_S = 300.0


class ListedWorker:
    """A worker as the scheduler lists it."""

    def __init__(self) -> None:
        self.name = ""
        self.slots = 0
        self.problem = STARTS
        self.is_asked = False
        self.ask_at = 0.0
        self._pause = GrowingPause(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)

    @property
    def is_fit(self) -> bool:
        return not self.problem

    def keep_out(self, problem: str, now: float) -> None:
        """Count its slots no more, and ask it again after a pause that grows."""
        self.problem = shortened(problem) or "it is unfit"
        self.ask_at = now + self._pause.take()


class Roster:
    """The connection to a scheduler, and its workers.

    Args:
        address: The scheduler's.
        security: Certificates; None: those of the user's settings of Dask.
        order: Facts of the campaign that workers are held against.
        take_event: Called with each event that a worker of the campaign logs.
        changed: Called when slots or hosts have changed.
        polled: Called each time that the workers have been listed.
        connect_s: Seconds to wait for the scheduler.
    """

    def __init__(
        self,
        address: str,
        security: Security | None,
        order: ProofOrder,
        *,
        take_event: Callable[[tuple[float, Any]], None],
        changed: Callable[[], None],
        polled: Callable[[], Awaitable[None]],
        connect_s: float,
    ) -> None:
        self._address = address
        self._security = security
        self._order = order
        self._take_event = take_event
        self._changed = changed
        self._polled = polled
        self._connect_s = connect_s
        self._workers: dict[str, ListedWorker] = {}
        self._scheduler_problem = ""

    @property
    def slots(self) -> int:
        return sum(worker.slots for worker in self._workers.values() if worker.is_fit)

    @property
    def hosts(self) -> Sequence[HostState]:
        """The workers, or the scheduler alone while it does not answer."""
        if self._scheduler_problem:
            return [HostState(name=self._address, slots=0, problem=self._scheduler_problem)]
        return [
            HostState(name=machine_of(one.name) or address, slots=one.slots, problem=one.problem)
            for address, one in self._workers.items()
        ]

    def lists(self, address: str) -> bool:
        """True if a worker is there."""
        return address in self._workers

    @property
    def client(self) -> Client:
        """The connection of now; another one after the scheduler was lost."""
        return self._client

    async def connect(self) -> None:
        """Connect to the scheduler.

        Raises:
            ConfigError: It does not answer.
        """
        try:
            client: Client = await Client(
                self._address, security=self._security, asynchronous=True, set_as_default=False, timeout=self._connect_s
            )
        except (OSError, TimeoutError, TypeError, ValueError) as error:
            # TypeError: tls:// without certificates in the settings
            raise ConfigError(
                f"no Dask scheduler answers at {self._address}: {told(error)}; start one with dask scheduler, and "
                "name its certificates in Dask's settings if it has any"
            ) from error
        client.subscribe_topic(seat_name(self._order.campaign_id), self._take_event)
        self._client = client

    async def watch(self, group: TaskGroup) -> None:
        """Follow the scheduler's workers, and connect again when it is lost, until cancelled."""
        pause = GrowingPause(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        while True:
            try:
                with anyio.fail_after(ANSWER_S):
                    if self._client.status == "closed":
                        await self.connect()
                    found = await self.remote().ncores_running()
            except Exception as error:  # the scheduler of the user may be anything, and gone
                self._scheduler_problem = f"the scheduler does not answer: {told(error)}"
                self._workers.clear()
                self._changed()
                await anyio.sleep(pause.take())
                continue
            pause.reset()
            self._update(found, group)
            await self._polled()
            await anyio.sleep(_POLL_S)

    def remote(self) -> Any:
        """Return the scheduler's own functions.

        Raises:
            OSError: The connection is closed.
        """
        if self._client.scheduler is None:
            raise OSError("the connection is closed")
        return self._client.scheduler

    async def withdraw(self, address: str, reason: str) -> None:
        """Keep the slots of a worker out, since it could not run an attempt."""
        if (worker := self._workers.get(address)) is not None:
            worker.keep_out(reason, anyio.current_time())
            self._changed()
            with suppress(Exception):  # it is gone
                await self._ask(withdraw, self._order.campaign_id, address)

    def _update(self, found: Mapping[str, int], group: TaskGroup) -> None:
        now = anyio.current_time()
        gone = [address for address in self._workers if address not in found]
        for address in gone:
            del self._workers[address]
        if gone or self._scheduler_problem:
            self._scheduler_problem = ""
            self._changed()
        for address in found:
            worker = self._workers.setdefault(address, ListedWorker())
            if not (worker.is_fit or worker.is_asked) and now >= worker.ask_at:
                worker.is_asked = True
                group.start_soon(self._prove, address, worker)

    async def _prove(self, address: str, worker: ListedWorker) -> None:
        """Ask a worker to prove itself."""
        try:
            proof = Proof.model_validate_json(await self._ask(prove, self._order.model_dump_json(), address))
        except Exception as error:  # such as a panpan that is not there, whose errors may be any
            worker.keep_out(f"it has no panpan that fits: {told(error)}", anyio.current_time())
        else:
            worker.name, worker.slots = proof.host, proof.slots
            if proof.problem:
                worker.keep_out(proof.problem, anyio.current_time())
            else:
                worker.problem = ""
        finally:
            worker.is_asked = False
            self._changed()

    async def _ask(self, function: Callable[..., Awaitable[Any]], argument: str, address: str) -> Any:
        """Have one worker call a function, and return its result.

        Raises:
            Exception: It failed, or the worker is gone or does not answer.
        """
        with anyio.fail_after(ANSWER_S):
            answers = await self._client.run(function, argument, workers=[address], on_error="return")
        answer = answers[address]
        if isinstance(answer, BaseException):
            raise answer
        return answer


def told(error: BaseException) -> str:
    """Return an error in one line."""
    return shortened(f"{type(error).__name__}: {error}")
