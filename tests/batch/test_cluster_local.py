"""Two workers on this machine, shared by all tests here."""

import os
import signal
import ssl
import stat
from collections.abc import AsyncIterator, Iterator

import anyio
import psutil
import pytest
import pytest_asyncio
from distributed import Client

from panpan.batch.cluster.cluster_place import ClusterPlace
from panpan.batch.store.records import AttemptEnd, Finished
from tests.batch.cluster_tools import MAY_LEAVE_SOCKETS, ROOT, ClusterCampaign, held, until, until_slots

pytestmark = [pytest.mark.asyncio(loop_scope="module"), MAY_LEAVE_SOCKETS]


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> ClusterCampaign:
    return ClusterCampaign(tmp_path_factory.mktemp("cluster"), gpu=1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(campaign: ClusterCampaign) -> AsyncIterator[ClusterPlace]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        async with held(campaign.place("local:2", at_once=4, gpus=[4, 5, 6, 7])) as place:
            yield place


@pytest_asyncio.fixture(loop_scope="module")
async def place(shared: ClusterPlace) -> ClusterPlace:
    """Return the place once both workers are there."""
    await until_slots(shared, 4)
    return shared


class Ends:
    """Attempts that run in the background, and their ends."""

    def __init__(self, group: anyio.abc.TaskGroup, place: ClusterPlace, campaign: ClusterCampaign) -> None:
        self.of: dict[str, list[AttemptEnd]] = {}
        self._group, self._place, self._campaign = group, place, campaign

    def start(self, *tasks: str) -> None:
        for task in tasks:
            self._group.start_soon(self._run, task)

    async def _run(self, task: str) -> None:
        end = await self._place.run(self._campaign.job(task, gpus=1))
        self.of.setdefault(task, []).append(end)


def worker_pids() -> Iterator[int]:
    for child in psutil.Process().children(recursive=True):
        if "panpan.batch.cluster.worker_process" in child.cmdline():
            yield child.pid


async def test_attempts_run_on_all_workers_with_gpus_of_their_own(
    place: ClusterPlace, campaign: ClusterCampaign
) -> None:
    tasks = ("a", "b", "c", "d")
    async with anyio.create_task_group() as group:
        ends = Ends(group, place, campaign)
        ends.start(*tasks)
        await until(lambda: len([line for task in tasks for line in campaign.said("began", task)]) == 4)
        campaign.go(*tasks)
    began = [line for task in tasks for line in campaign.said("began", task)]

    assert {int(line[2]) for line in began} == set(worker_pids())
    assert sorted(line[3] for line in began) == ["4", "5", "6", "7"]
    assert all(isinstance(end, Finished) and end.result.task_id == task for task in tasks for end in ends.of[task])
    assert {(host.name, host.slots, host.problem) for host in place.hosts} == {("local-1", 2, ""), ("local-2", 2, "")}


async def test_attempt_of_a_killed_worker_runs_again_on_the_other(
    place: ClusterPlace, campaign: ClusterCampaign
) -> None:
    async with anyio.create_task_group() as group:
        ends = Ends(group, place, campaign)
        ends.start("killed")
        first = await campaign.until_said("began", "killed")
        os.kill(first, signal.SIGKILL)
        second = await campaign.until_said("began", "killed", count=2)
        campaign.go("killed")

    assert second != first
    assert len(ends.of["killed"]) == len(campaign.said("ended", "killed")) == 1


async def test_sigterm_stops_attempts_which_go_on_elsewhere(place: ClusterPlace, campaign: ClusterCampaign) -> None:
    async with anyio.create_task_group() as group:
        ends = Ends(group, place, campaign)
        ends.start("moved")
        first = await campaign.until_said("began", "moved")
        os.kill(first, signal.SIGTERM)
        assert await campaign.until_said("stopped", "moved") == first
        second = await campaign.until_said("began", "moved", count=2)
        campaign.go("moved")

    assert second != first
    assert len(ends.of["moved"]) == 1


async def test_attempt_goes_on_after_the_death_of_all_workers(place: ClusterPlace, campaign: ClusterCampaign) -> None:
    async with anyio.create_task_group() as group:
        ends = Ends(group, place, campaign)
        ends.start("orphan")
        await campaign.until_said("began", "orphan")
        for pid in list(worker_pids()):
            os.kill(pid, signal.SIGKILL)
        await campaign.until_said("began", "orphan", count=2)
        campaign.go("orphan")

    assert len(ends.of["orphan"]) == len(campaign.said("ended", "orphan")) == 1


async def test_cancelled_run_has_stopped_on_its_worker(place: ClusterPlace, campaign: ClusterCampaign) -> None:
    async with anyio.create_task_group() as group:
        Ends(group, place, campaign).start("cancelled")
        await campaign.until_said("began", "cancelled")
        group.cancel_scope.cancel()

    assert len(campaign.said("stopped", "cancelled")) == 1
    assert not campaign.said("ended", "cancelled")


async def test_all_ports_refuse_clients_without_the_certificate(place: ClusterPlace) -> None:
    own = psutil.Process()
    open_ports = [
        connection.laddr
        for process in [own, *(psutil.Process(pid) for pid in worker_pids())]
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    ]
    stranger = ssl.create_default_context()
    stranger.check_hostname, stranger.verify_mode = False, ssl.CERT_NONE

    assert {address.ip for address in open_ports} == {"127.0.0.1"}
    assert len(open_ports) == 3  # of the scheduler and of two workers
    for address in open_ports:
        with pytest.raises((anyio.BrokenResourceError, anyio.EndOfStream, ssl.SSLError)):
            stream = await anyio.connect_tcp(address.ip, address.port, ssl_context=stranger)
            await stream.receive()
    scheduler = next(a for a in open_ports if a.port in {c.laddr.port for c in own.net_connections("tcp")})
    with pytest.raises(OSError, match=r"timed out|closed|failed"):
        await Client(f"tcp://127.0.0.1:{scheduler.port}", asynchronous=True, set_as_default=False, timeout=1)


async def test_certificate_is_the_users_alone_and_in_the_home(place: ClusterPlace, campaign: ClusterCampaign) -> None:
    [own] = (campaign.home / "clusters").iterdir()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [own, *own.iterdir()]}

    assert modes == {own.name: 0o700, "key.pem": 0o600, "certificate.pem": 0o600}
    assert not [path for path in campaign.folder.state.rglob("*") if path.suffix == ".pem"]
