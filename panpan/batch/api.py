"""Campaigns from Python: run one, and read its results."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from panpan.batch.coordination.coordinator import run_campaign
from panpan.batch.coordination.local_place import local_place
from panpan.batch.coordination.place import Place
from panpan.batch.coordination.progress import Progress, Summary
from panpan.batch.coordination.reconciling import known_results
from panpan.batch.definition.loading import prepare
from panpan.batch.store.folder import CampaignFolder, read_record
from panpan.batch.store.records import FrozenCampaign, Result, Running
from panpan.config.file_trust import Ask
from panpan.receipts.receipt import Receipt


async def run(
    folder: str | Path,
    *,
    trust: bool = False,
    ask: Ask | None = None,
    on: str | None = None,
    at_once: int | None = None,
    model: str | None = None,
    retry_errors: bool = False,
    notify: Callable[[Progress], None] = lambda _: None,
    env: Mapping[str, str] = os.environ,
) -> Summary:
    """Begin the campaign in a folder, or go on with it, until all is done or it cannot go on.

    Cancelling the call stops the attempts within seconds, so that a later call goes on with them. So does a kill.

        summary = await panpan.batch.run("papers", trust=True)
        print(summary.message)
        for result in panpan.batch.results("papers"):
            print(result.task, result.attempt, result.status, result.spent.usd)

    Args:
        folder: The folder with campaign.toml.
        trust: True to trust the campaign's files, which name commands that run. Otherwise `ask` is asked, or the user
            has trusted them before.
        ask: Asks the user whether they trust the files.
        on: Machines, instead of `on` in the table `[where]`, such as `ssh:hosts.txt`.
        at_once: Attempts at once on one machine, instead of `at_once` in `[where]`.
        model: Model, instead of `model`; give the same one in each run, since it belongs to the tasks.
        retry_errors: True if attempts that ended with an error go on.
        notify: Called with news, in the event loop.
        env: Variables of the environment, for the panpan home.

    Raises:
        ConfigError: The campaign is wrong or not trusted, or differs from the one that began here.
        LeaseHeldError: Another process runs it.
        LeaseLostError: Another process took it over, since this one was suspended.
        OutputError: The folder cannot be written.
    """
    frozen = await prepare(Path(folder), env, on=on, at_once=at_once, model=model, trusts=trust, ask=ask)
    campaign = _campaign(folder)
    place = await place_of(campaign, frozen)
    return await run_campaign(campaign, frozen, place, notify=notify, retries_errors=retry_errors)


def run_sync(folder: str | Path, **options: Any) -> Summary:
    """Call `run` where there is no event loop."""
    return anyio.run(partial(run, folder, **options))


def results(folder: str | Path) -> Sequence[Result]:
    """Return the results of a campaign so far, also while it runs.

    Raises:
        ConfigError: A file is damaged.
    """
    return list(known_results(_campaign(folder)).values())


def receipts(folder: str | Path, result: Result) -> Sequence[Receipt]:
    """Return the receipts of the commands that the campaign ran for an attempt, in their order.

    Args:
        folder: The folder of the campaign.
        result: Result of the attempt.

    Raises:
        ConfigError: They cannot be read.
    """
    return _campaign(folder).attempt(*result.key).read_receipts()


def state_of(folder: str | Path) -> Running | None:
    """Return the record of a campaign's last run, at most some seconds old while it runs; None if it has not begun.

    After a kill, the record still says that it runs.

    Raises:
        ConfigError: The file is damaged.
    """
    return read_record(_campaign(folder).running_file, Running)


async def place_of(folder: CampaignFolder, frozen: FrozenCampaign) -> AbstractAsyncContextManager[Place]:
    """Return the place where a campaign's attempts run: a cluster, or slots in this process.

    Raises:
        ConfigError: The machines are named wrongly, or the extra `cluster` is not installed.
    """
    if frozen.campaign.where.on is not None:
        from panpan.batch.cluster.cluster_place import ClusterPlace

        return ClusterPlace(frozen.campaign.where, folder)
    from panpan.batch.attempts.attempt import run_attempt

    return await local_place(frozen, run_attempt)


def _campaign(folder: str | Path) -> CampaignFolder:
    return CampaignFolder(Path(folder).resolve())
