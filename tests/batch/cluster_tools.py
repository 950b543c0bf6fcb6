"""Campaigns on clusters in tests: folders, places that are held open, and what attempts say."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from panpan.batch.cluster.cluster_place import ClusterPlace
from panpan.batch.definition.campaign import Campaign, Where
from panpan.batch.store.folder import CampaignFolder
from panpan.batch.store.records import FrozenCampaign, Job

ROOT = Path(__file__).parents[2]
CAMPAIGN = "11111111-1111-4111-8111-111111111111"
PATIENCE_S = 60.0
MAY_LEAVE_SOCKETS = pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning")
"""Dask leaves sockets of peers that were killed or refused to the garbage collector."""


class ClusterCampaign:
    """A begun campaign whose attempts are those of `cluster_attempts.py`."""

    def __init__(self, path: Path, **attempt: Any) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.home = path / "user" / ".panpan"  # which nobody has made yet
        self.folder = CampaignFolder(path)
        self.attempt = attempt
        self.freeze(CAMPAIGN)

    def freeze(self, campaign_id: str) -> None:
        campaign = Campaign.model_validate({"attempt": self.attempt})
        self.folder.write_frozen(
            FrozenCampaign(
                id=campaign_id, tasks=1, tasks_digest="", source=str(self.path), home=str(self.home), campaign=campaign
            )
        )

    def place(self, on: str, *, runs: str = "wait_for_go", poll_s: float = 0.2, **where: Any) -> ClusterPlace:
        given = Where.model_validate({"on": on, "listen": "127.0.0.1", **where})
        return ClusterPlace(
            given, self.folder, runner=f"tests.batch.cluster_attempts:{runs}", queue_poll_s=poll_s, connect_s=1.0
        )

    def job(self, task: str, gpus: int = 0) -> Job:
        return Job(folder=str(self.path), campaign_id=CAMPAIGN, task_id=task, attempt=1, gpus=gpus)

    def said(self, *words: str) -> list[list[str]]:
        """Return the lines of attempts that begin with these words: word, task, pid, GPUs."""
        try:
            lines = [line.split() for line in (self.path / "said").read_text().splitlines()]
        except FileNotFoundError:
            return []
        return [line for line in lines if line[: len(words)] == list(words)]

    async def until_said(self, *words: str, count: int = 1) -> int:
        """Wait for a line, and return the pid in the last of its kind."""
        await until(lambda: len(self.said(*words)) >= count)
        return int(self.said(*words)[-1][2])

    def go(self, *tasks: str) -> None:
        for task in tasks:
            (self.path / f"go-{task}").touch()


async def until(holds: Callable[[], object]) -> None:
    with anyio.fail_after(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 -- of other processes
            await anyio.sleep(0.02)


async def until_slots(place: ClusterPlace, slots: int) -> None:
    with anyio.fail_after(PATIENCE_S):
        while place.slots != slots:
            await place.changed()


@asynccontextmanager
async def held(place: ClusterPlace) -> AsyncIterator[ClusterPlace]:
    """Hold a place open in a task of its own, since a fixture begins and ends in two."""
    is_open, is_over = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with place:
            is_open.set()
            await is_over.wait()

    holding = asyncio.create_task(hold())
    opening = asyncio.create_task(is_open.wait())
    await asyncio.wait({holding, opening}, return_when=asyncio.FIRST_COMPLETED)
    try:
        if not holding.done():
            yield place
    finally:
        is_over.set()
        opening.cancel()
        await holding
        gc.collect()  # sockets that Dask leaves to the collector, in the tests that may warn of them
