"""Workers of a scheduler that somebody else has started, in this process."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from distributed import Scheduler, Worker

from panpan.batch.cluster.dask_library import QuietScheduler, QuietWorker
from panpan.batch.cluster.worker import Proof, ProofOrder, prove
from panpan.batch.store.records import Stopped, Unfit
from panpan.errors import ConfigError
from panpan.version import __version__
from tests.batch.cluster_tools import CAMPAIGN, MAY_LEAVE_SOCKETS, ClusterCampaign, until, until_slots

pytestmark = MAY_LEAVE_SOCKETS


@pytest_asyncio.fixture
async def scheduler() -> AsyncIterator[Scheduler]:
    async with QuietScheduler(host="127.0.0.1", port=0) as scheduler:
        yield scheduler


def worker_of(scheduler: Scheduler, name: str, **options: object) -> Worker:
    return QuietWorker(scheduler.address, name=name, host="127.0.0.1", memory_limit=0, nthreads=2, **options)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, ""),
        ({"version": "0.0.1"}, f"it has panpan {__version__}, and the campaign runs with 0.0.1"),
        ({"folder": "/nowhere"}, "it does not see the campaign's folder"),
        ({"campaign_id": "another"}, "holds another campaign there"),
        ({"home": "/nowhere"}, "cannot write to the panpan home"),
        ({"gpus_each": 3, "gpus": (0, 1)}, "it has 2 GPUs, and an attempt needs 3"),
    ],
)
async def test_worker_tells_why_it_is_unfit(
    scheduler: Scheduler, campaign: ClusterCampaign, fields: dict[str, object], problem: str
) -> None:
    given = {"folder": str(campaign.path), "campaign_id": CAMPAIGN, "home": str(campaign.path), **fields}
    order = ProofOrder.model_validate(given)
    async with worker_of(scheduler, "one") as worker:
        proof = Proof.model_validate_json(await prove(order.model_dump_json(), worker))

        assert worker.state.total_resources[f"panpan-{order.campaign_id}"] == (0 if problem else 2)

    assert (proof.problem == "") == (problem == "")
    assert problem in proof.problem


@pytest.fixture
def campaign(tmp_path_factory: pytest.TempPathFactory) -> ClusterCampaign:
    return ClusterCampaign(tmp_path_factory.mktemp("campaign"))


async def test_slots_of_a_worker_that_sees_another_campaign_are_out(
    scheduler: Scheduler, campaign: ClusterCampaign
) -> None:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(worker_of(scheduler, "fit"))
        place = await stack.enter_async_context(campaign.place(scheduler.address))
        await until_slots(place, 2)
        campaign.freeze("another")
        await stack.enter_async_context(worker_of(scheduler, "unfit"))
        await until(lambda: any("another campaign" in host.problem for host in place.hosts))

        assert place.slots == 2
        assert {host.name for host in place.hosts if not host.problem} == {"fit"}


async def test_worker_that_is_unfit_leaves_an_attempt_to_another(
    scheduler: Scheduler, campaign: ClusterCampaign
) -> None:
    async with worker_of(scheduler, "a"), worker_of(scheduler, "b"):
        async with campaign.place(scheduler.address, runs="unfit_once") as place:
            await until_slots(place, 4)
            end = await place.run(campaign.job("any"))

            assert end == Stopped(reason="fit")
            assert place.slots == 2
            assert [host.problem for host in place.hosts if host.problem] == ["no sandbox works here"]


async def test_attempt_that_no_worker_fits_is_unfit(scheduler: Scheduler, campaign: ClusterCampaign) -> None:
    async with worker_of(scheduler, "a"), campaign.place(scheduler.address, runs="unfit_once") as place:
        await until_slots(place, 2)

        assert await place.run(campaign.job("any")) == Unfit(reason="no sandbox works here", is_of_machine=True)
        assert place.slots == 0


async def test_refused_attempt_leaves_its_worker_its_slots(scheduler: Scheduler, campaign: ClusterCampaign) -> None:
    async with worker_of(scheduler, "a"), campaign.place(scheduler.address, runs="refuse") as place:
        await until_slots(place, 2)

        assert await place.run(campaign.job("any")) == Unfit(reason="no such option: --yess")
        assert place.slots == 2


async def test_attempt_that_raises_is_unfit_after_its_retries(scheduler: Scheduler, campaign: ClusterCampaign) -> None:
    async with worker_of(scheduler, "a"), campaign.place(scheduler.address, runs="fail") as place:
        await until_slots(place, 2)
        end = await place.run(campaign.job("broken"))

    assert end == Unfit(reason="it failed on the workers: ValueError: broken")
    assert len(campaign.said("began", "broken")) == 4


async def test_lost_scheduler_stops_attempts_and_is_connected_again(campaign: ClusterCampaign) -> None:
    async with AsyncExitStack() as stack:
        first = await QuietScheduler(host="127.0.0.1", port=0)
        stack.push_async_callback(first.close)
        stack.push_async_callback((await worker_of(first, "a")).close)
        place = await stack.enter_async_context(campaign.place(first.address, runs="unfit_once"))
        await until_slots(place, 2)
        await first.close()
        await until(lambda: [host.problem for host in place.hosts if "does not answer" in host.problem])
        assert place.slots == 0

        port = int(first.address.rpartition(":")[2])
        second = await stack.enter_async_context(QuietScheduler(host="127.0.0.1", port=port))
        await stack.enter_async_context(worker_of(second, "b"))
        await until_slots(place, 2)

        assert [host.name for host in place.hosts] == ["b"]


async def test_scheduler_that_does_not_answer_is_an_error(campaign: ClusterCampaign) -> None:
    async with QuietScheduler(host="127.0.0.1", port=0) as gone:
        address = gone.address

    with pytest.raises(ConfigError, match="no Dask scheduler answers at tcp://127"):
        async with campaign.place(address):
            pass
