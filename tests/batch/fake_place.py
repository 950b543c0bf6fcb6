"""A place for attempts in memory, whose attempts do what a test says."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Self

import anyio
import anyio.lowlevel

from panpan.batch.store.folder import CampaignFolder
from panpan.batch.store.records import AttemptEnd, Finished, HostState, Job, Result, Spent

Act = Callable[[Job], Awaitable[AttemptEnd]]


class FakePlace:
    """Runs `act` for each job, and remembers what ran.

    Args:
        act: Does the work of an attempt.
        slots: Attempts at once.
        hosts: Names of its hosts.
    """

    def __init__(self, act: Act, slots: int = 2, hosts: Sequence[str] = ("one",)) -> None:
        self._act = act
        self.slots = slots
        self.hosts = [HostState(name=name, slots=slots) for name in hosts]
        self.begun: list[tuple[str, int]] = []
        self.at_once = self.most_at_once = 0
        self.was_entered = False
        self._changed = anyio.Event()

    async def __aenter__(self) -> Self:
        self.was_entered = True
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self.at_once == 0, "attempts outlive the place"

    async def changed(self) -> None:
        await self._changed.wait()
        self._changed = anyio.Event()

    def set_slots(self, slots: int) -> None:
        self.slots = slots
        self._changed.set()

    async def run(self, job: Job) -> AttemptEnd:
        self.begun.append((job.task_id, job.attempt))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await self._act(job)
        finally:
            self.at_once -= 1


def write_result(job: Job, **fields: object) -> Result:
    """Write the result of an attempt, as `run_attempt` does before it returns."""
    folder = CampaignFolder(Path(job.folder))
    usual = {"task_id": job.task_id, "task": "t", "attempt": job.attempt, "status": "passed", "ended_by": "answer"}
    result = Result.model_validate({**usual, "spent": Spent(usd=0.5, tokens=10, seconds=1.0), **fields})
    attempt = folder.attempt(job.task_id, job.attempt)
    attempt.path.mkdir(parents=True, exist_ok=True)
    attempt.write_result(result)
    return result


async def passes(job: Job) -> AttemptEnd:
    """Pass at once."""
    await anyio.lowlevel.checkpoint()
    return Finished(result=write_result(job))
