"""The coordinator begins, counts and ends attempts, whatever happens to them."""

import errno
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import anyio
import pytest

from panpan.batch.coordination.coordinator import Coordinator, run_campaign
from panpan.batch.coordination.progress import Progress, Summary
from panpan.batch.coordination.schedule import ENOUGH
from panpan.batch.store.folder import CampaignFolder, read_record
from panpan.batch.store.lease import Lease, LeaseHeldError, LeaseLostError, this_process
from panpan.batch.store.records import (
    Answer,
    AttemptEnd,
    Finished,
    FrozenCampaign,
    HostState,
    Job,
    Needs,
    Result,
    Running,
    Spent,
    Stopped,
    Task,
    Unfit,
    Waiting,
)
from panpan.errors import ConfigError, OutputError, ToolError
from tests.batch.fake_place import FakePlace, passes, write_result
from tests.fakes.campaign import frozen_of, make_campaign, task_of
from tests.system.backends import on_both_backends, run_on, until

QUESTION = Needs(kind="question", text="Which table?\nThere are two.")


class Campaign:
    """A campaign of `count` tasks, and its runs with a clock that only pauses move."""

    def __init__(self, tmp_path: Path, count: int = 3, text: str = "", attempts: int = 1) -> None:
        head = f"attempts = {attempts}\n"
        one = '[[task]]\nid = "t"\nprompt = "p"\n[workspace]\nisolation = "copy"\nsource = "../project"\n'
        self.folder = make_campaign(tmp_path, head + one + text)
        self.tasks: Sequence[Task] = [task_of(f"t{number}") for number in range(count)]
        self.frozen: FrozenCampaign = frozen_of(self.folder, self.tasks)
        self.now = 0.0
        self.news: list[Progress] = []

    async def run(self, place: FakePlace, folder: CampaignFolder | None = None) -> Summary:
        async with Lease(self.folder.lease) as lease:
            coordinator = Coordinator(
                folder or self.folder,
                self.frozen,
                place,
                lease,
                notify=self.news.append,
                clock=lambda: self.now,
                sleep=self._sleep,
            )
            return await coordinator.run()
        raise AssertionError

    async def _sleep(self, seconds: float) -> None:
        await anyio.sleep(0.002)
        self.now += seconds

    def name(self, job: Job) -> str:
        return next(task.name for task in self.tasks if task.id == job.task_id)

    def index(self) -> Sequence[tuple[object, object]]:
        """Return the lines of the index; all must be whole."""
        lines = self.folder.results_file.read_text().splitlines()
        return [(one["task_id"], one["attempt"]) for one in map(json.loads, lines)]

    def record(self) -> Running:
        found = read_record(self.folder.running_file, Running)
        assert found is not None
        return found

    def keys(self, attempts: int = 1) -> Sequence[tuple[str, int]]:
        return [(task.id, number) for number in range(1, attempts + 1) for task in self.tasks]


@on_both_backends
def test_coordinator_runs_first_attempts_of_all_tasks_first(backend: str, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, attempts=3)
    place = FakePlace(passes, slots=1)

    async def main() -> None:
        summary = await campaign.run(place)
        assert summary.because == "done"
        assert summary.message == "9 attempts have a result"
        assert summary.running.counts == {"passed": 9}

    run_on(backend, main)
    assert place.begun == campaign.keys(3)
    assert campaign.index() == campaign.keys(3)
    assert {news.result.task_id for news in campaign.news if news.result} == {task.id for task in campaign.tasks}


@on_both_backends
def test_coordinator_keeps_to_the_slots_of_its_place(backend: str, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, count=12)

    async def act(job: Job) -> AttemptEnd:
        await anyio.sleep(0.003)
        if len(place.begun) == 6:
            assert place.most_at_once == 2
            place.set_slots(4)
        return await passes(job)

    place = FakePlace(act, slots=0)

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(campaign.run, place)
            while campaign.now < 5:  # noqa: ASYNC110 - the campaign moves its clock
                await anyio.sleep(0.001)
            assert campaign.record().note == "no machine is there yet"
            place.set_slots(2)

    run_on(backend, main)
    assert place.most_at_once == 4
    assert len(place.begun) == 12


def test_coordinator_goes_on_with_begun_attempts_first(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, attempts=2)
    begun = campaign.folder.attempt(campaign.tasks[2].id, 2)
    begun.path.mkdir(parents=True)
    write_result(_job(campaign, 1))
    place = FakePlace(passes, slots=1)
    run_on("asyncio", partial(campaign.run, place))  # type: ignore[arg-type]
    assert place.begun[0] == (begun.task_id, 2)
    assert set(place.begun) == set(campaign.keys(2)) - {(campaign.tasks[1].id, 1)}
    assert sorted(map(str, campaign.index())) == sorted(map(str, campaign.keys(2)))


def _job(campaign: Campaign, task: int, number: int = 1) -> Job:
    return Job(folder=str(campaign.folder.path), campaign_id="c", task_id=campaign.tasks[task].id, attempt=number)


def _torn(lines: Sequence[bytes]) -> bytes:
    return lines[0] + lines[1][:40]


def _torn_inside(lines: Sequence[bytes]) -> bytes:
    return lines[0] + lines[1][:40] + b"\n" + lines[2]


def _lost(lines: Sequence[bytes]) -> bytes:
    return lines[2]


def _doubled(lines: Sequence[bytes]) -> bytes:
    return b"".join([*lines, lines[0]])


def _strange(lines: Sequence[bytes]) -> bytes:
    return b"".join([b'{"task_id": 5}\n', b"[]\n", *lines[1:]])


def _empty(_lines: Sequence[bytes]) -> bytes:
    return b""


@pytest.mark.parametrize("damage", [_torn, _torn_inside, _lost, _doubled, _strange, _empty])
def test_coordinator_repairs_the_index(damage: Callable[[Sequence[bytes]], bytes], tmp_path: Path) -> None:
    campaign = Campaign(tmp_path)
    run_on("asyncio", partial(campaign.run, FakePlace(passes)))  # type: ignore[arg-type]
    index = campaign.folder.results_file
    index.write_bytes(damage(index.read_bytes().splitlines(keepends=True)))
    again = FakePlace(passes)
    run_on("asyncio", partial(campaign.run, again))  # type: ignore[arg-type]
    assert again.begun == []
    assert sorted(map(str, campaign.index())) == sorted(map(str, campaign.keys()))


def test_coordinator_reads_no_result_that_is_in_the_index(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path)
    run_on("asyncio", partial(campaign.run, FakePlace(passes)))  # type: ignore[arg-type]
    for attempt in campaign.folder.attempts():
        (attempt.path / "result.json").write_text("never read again")
    run_on("asyncio", partial(campaign.run, FakePlace(passes)))  # type: ignore[arg-type]
    assert len(campaign.index()) == 3


@on_both_backends
def test_coordinator_gives_up_what_the_only_host_cannot_run(backend: str, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path)

    async def act(job: Job) -> AttemptEnd:
        return Unfit(reason="no sandbox works here") if campaign.name(job) != "t1" else await passes(job)

    async def main() -> None:
        summary = await campaign.run(FakePlace(act))
        assert summary.because == "unfit"
        assert summary.message == "2 attempts cannot run: no sandbox works here"
        assert summary.running.counts == {"passed": 1}

    run_on(backend, main)


@pytest.mark.parametrize(("first_passes", "begun"), [(False, ENOUGH), (True, 3 * ENOUGH)])
def test_coordinator_tries_no_more_once_all_say_the_same(first_passes: bool, begun: int, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, count=3 * ENOUGH)
    tried = list[str]()

    async def act(job: Job) -> AttemptEnd:
        tried.append(campaign.name(job))
        if first_passes and len(tried) == 1:
            return await passes(job)
        return Unfit(reason="no such option --yess")

    async def main() -> None:
        summary = await campaign.run(FakePlace(act))
        assert summary.because == "unfit"
        left = 3 * ENOUGH - first_passes
        assert summary.message == f"{left} attempts cannot run: no such option --yess"

    run_on("asyncio", main)
    assert len(tried) == begun


@on_both_backends
def test_coordinator_tries_another_host_after_a_pause(backend: str, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, count=1)
    times: list[float] = []

    async def act(job: Job) -> AttemptEnd:
        times.append(campaign.now)
        return Unfit(reason="does not see the folder") if len(times) < 3 else await passes(job)

    async def main() -> None:
        assert (await campaign.run(FakePlace(act, hosts=("one", "two")))).because == "done"

    run_on(backend, main)
    assert len(times) == 3
    assert times[1] - times[0] >= 2
    assert times[2] - times[1] >= 4
    assert "attempts pause: does not see the folder" in {news.running.note for news in campaign.news}


@on_both_backends
def test_coordinator_tries_a_host_that_comes_later(backend: str, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, count=2)
    refused = anyio.Event()

    async def act(job: Job) -> AttemptEnd:
        if campaign.name(job) == "t1":
            await refused.wait()
            await anyio.sleep(0.05)  # meanwhile the other is given up
            place.hosts.append(HostState(name="two", slots=1))
        elif not refused.is_set():
            refused.set()
            return Unfit(reason="does not see the folder")
        else:
            assert len(place.hosts) == 2
        return await passes(job)

    place = FakePlace(act)

    async def main() -> None:
        assert (await campaign.run(place)).because == "done"

    run_on(backend, main)


@on_both_backends
def test_coordinator_lists_what_waits_and_ends(backend: str, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path)

    async def act(job: Job) -> AttemptEnd:
        if campaign.name(job) != "t0":
            return await passes(job)
        _write_question(job)
        return Waiting(needs=QUESTION)

    async def main() -> None:
        for _ in range(2):  # the second run has it from the folder
            summary = await campaign.run(FakePlace(act))
            assert summary.because == "waiting"
            assert summary.message.startswith("1 attempt needs you; answer with panpan batch answer ")
            (waiting,) = campaign.record().waiting
            assert (waiting.task, waiting.attempt, waiting.text) == ("t0", 1, "Which table?")
            assert campaign.record().counts == {"passed": 2}

    run_on(backend, main)
    assert [news.waiting.task for news in campaign.news if news.waiting] == ["t0"]


def _write_question(job: Job) -> None:
    attempt = CampaignFolder(Path(job.folder)).attempt(job.task_id, job.attempt)
    attempt.path.mkdir(parents=True, exist_ok=True)
    attempt.write_needs(QUESTION)


@on_both_backends
@pytest.mark.parametrize("how", ["answer", "cancel"])
def test_coordinator_takes_up_an_answered_attempt_meanwhile(backend: str, how: str, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, count=2)
    asked, answered = anyio.Event(), anyio.Event()

    async def act(job: Job) -> AttemptEnd:
        attempt = campaign.folder.attempt(job.task_id, 1)
        if campaign.name(job) == "t0":
            if attempt.answer() or attempt.cancel.exists():
                answered.set()
                return await passes(job)
            _write_question(job)
            asked.set()
            return Waiting(needs=QUESTION)
        await asked.wait()
        first = campaign.folder.attempt(campaign.tasks[0].id, 1)
        if how == "answer":
            first.write_answer(Answer(text="the first"))
        else:
            first.cancel.touch()
        await answered.wait()
        return await passes(job)

    async def main() -> None:
        assert (await campaign.run(FakePlace(act, slots=2))).because == "done"

    run_on(backend, main)


@on_both_backends
def test_coordinator_stops_when_it_is_asked_to(backend: str, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, count=4)
    campaign.folder.stop.touch()  # of an earlier run: it must not count

    async def act(job: Job) -> AttemptEnd:
        campaign.folder.stop.touch()
        try:
            await anyio.sleep_forever()
        finally:
            if campaign.name(job) == "t0":  # it ended while it was stopped
                write_result(job)

    async def main() -> None:
        summary = await campaign.run(FakePlace(act))
        assert summary.because == "stopped"
        assert (
            summary.message
            == f"stopped, with 3 of 4 attempts to do; go on with panpan batch run {campaign.folder.path}"
        )

    run_on(backend, main)
    assert campaign.index() == [(campaign.tasks[0].id, 1)]
    assert campaign.record().ended == "stopped"
    assert campaign.record().running == ()


@on_both_backends
def test_coordinator_stops_by_cancellation(backend: str, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path)

    async def main() -> None:
        async def act(_job: Job) -> AttemptEnd:
            scope.cancel()
            await anyio.sleep_forever()
            raise AssertionError

        with anyio.CancelScope() as scope:
            await campaign.run(FakePlace(act))
        assert scope.cancelled_caught

    run_on(backend, main)
    assert campaign.record().ended == "stopped"


@on_both_backends
def test_coordinator_ends_when_its_time_is_over(backend: str, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, text="[budget]\nseconds = 30\n[attempt]\nmax_seconds = 10\n")

    async def act(job: Job) -> AttemptEnd:
        if campaign.name(job) == "t0":
            return await passes(job)
        await anyio.sleep_forever()
        raise AssertionError

    async def main() -> None:
        summary = await campaign.run(FakePlace(act))
        assert summary.because == "budget"
        assert summary.message.startswith("the budget's time is used up")
        assert 30 <= campaign.record().seconds < 40
        campaign.now = 0
        again = FakePlace(act)
        assert (await campaign.run(again)).because == "budget"
        assert again.begun == []  # the runs count together

    run_on(backend, main)


@on_both_backends
def test_coordinator_begins_nothing_beyond_its_budget(backend: str, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, count=10, text="[budget]\nusd = 3.0\n[attempt]\nmax_usd = 1.0\n")
    place = FakePlace(passes, slots=10)  # each costs 0.5

    async def main() -> None:
        summary = await campaign.run(place)
        assert summary.because == "budget"
        assert summary.message.startswith(
            "the budget's money is used up, or what is left is less than the limit of one"
        )
        assert "5 attempts have no result" in summary.message

    run_on(backend, main)
    assert place.most_at_once == 3
    assert campaign.record().spent == Spent(usd=2.5, tokens=50, seconds=5.0)


def test_coordinator_reserves_for_begun_attempts_first(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, text="[budget]\nusd = 1.4\n[attempt]\nmax_usd = 1.0\n")
    begun = campaign.folder.attempt(campaign.tasks[2].id, 1)
    begun.path.mkdir(parents=True)
    place = FakePlace(passes)
    run_on("asyncio", partial(campaign.run, place))  # type: ignore[arg-type]
    assert place.begun == [(begun.task_id, 1)]


def test_coordinator_refuses_limits_that_pass_the_budget(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, text="[budget]\nusd = 2.0\n[attempt]\nmax_usd = 1.5\n")
    for task in campaign.tasks[:2]:
        campaign.folder.attempt(task.id, 1).path.mkdir(parents=True)
    place = FakePlace(passes)
    with pytest.raises(ConfigError, match="2 attempts that have begun may take more money than"):
        run_on("asyncio", partial(campaign.run, place))  # type: ignore[arg-type]
    assert place.begun == []


@on_both_backends
def test_coordinator_waits_for_room_on_the_disk(backend: str, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path)
    failures: list[float] = []

    async def act(job: Job) -> AttemptEnd:
        if len(failures) < 2:
            failures.append(campaign.now)
            raise OutputError("result.json cannot be written: no space left on device")
        return await passes(job)

    async def main() -> None:
        assert (await campaign.run(FakePlace(act, slots=1))).because == "done"

    run_on(backend, main)
    assert failures[1] - failures[0] >= 5
    assert any("cannot be written" in news.running.note for news in campaign.news)


@on_both_backends
def test_coordinator_begins_nothing_without_room(backend: str, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path)

    class Nearly(CampaignFolder):
        def room_bytes(self) -> int:
            if 5 < campaign.now < 10:
                raise OSError(errno.ESTALE, "stale file handle")
            return 1_000 if campaign.now < 20 else 10**12

    begun: list[float] = []

    async def act(job: Job) -> AttemptEnd:
        begun.append(campaign.now)
        return await passes(job)

    async def main() -> None:
        await campaign.run(FakePlace(act, slots=1), Nearly(campaign.folder.path))

    run_on(backend, main)
    assert len(begun) == 3
    assert begun[0] >= 20


@on_both_backends
def test_coordinator_lists_results_once_there_is_room(backend: str, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path)

    class Full(CampaignFolder):
        def append_result(self, result: Result) -> None:
            if campaign.now < 20:
                raise OutputError("results.jsonl cannot be written: no space left on device")
            super().append_result(result)

    async def main() -> None:
        assert (await campaign.run(FakePlace(passes), Full(campaign.folder.path))).because == "done"

    run_on(backend, main)
    assert sorted(map(str, campaign.index())) == sorted(map(str, campaign.keys()))


@on_both_backends
def test_coordinator_runs_a_stopped_attempt_again(backend: str, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, count=2, text="[budget]\nusd = 1.0\n[attempt]\nmax_usd = 1.0\n")
    times: list[float] = []

    async def act(job: Job) -> AttemptEnd:
        times.append(campaign.now)
        return Stopped(reason="the job's time is over") if len(times) == 1 else await passes(job)

    async def main() -> None:
        # its limit stays reserved meanwhile, so the other cannot begin
        assert (await campaign.run(FakePlace(act))).because == "budget"

    run_on(backend, main)
    assert len(times) == 2
    assert times[1] - times[0] >= 2
    assert campaign.index() == [(campaign.tasks[0].id, 1)]


@on_both_backends
def test_coordinator_survives_an_attempt_that_fails_to_run(backend: str, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path)

    async def act(job: Job) -> AttemptEnd:
        if campaign.name(job) == "t0":
            raise ToolError("git is not installed")
        return await passes(job)

    async def main() -> None:
        summary = await campaign.run(FakePlace(act))
        assert summary.message == "1 attempt cannot run: git is not installed"
        assert summary.running.counts == {"passed": 2}

    run_on(backend, main)


@on_both_backends
def test_coordinator_ends_when_its_lease_is_lost(backend: str, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path)
    stopped: list[str] = []

    async def act(job: Job) -> AttemptEnd:
        other = this_process().model_copy(update={"machine": "another"})
        (campaign.folder.lease / "2").write_text(other.model_dump_json())
        campaign.folder.running_file.write_text("theirs")
        try:
            await anyio.sleep_forever()
        finally:
            stopped.append(job.task_id)

    async def main() -> None:
        with pytest.raises(LeaseLostError):
            await campaign.run(FakePlace(act, slots=1))

    run_on(backend, main)
    assert len(stopped) == 1
    assert not campaign.folder.results_file.exists()


@on_both_backends
def test_run_writes_its_campaign_once_it_has_the_lease(backend: str, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path)
    changed = campaign.frozen.model_copy(
        update={"campaign": campaign.frozen.campaign.model_copy(update={"attempts": 2})}
    )

    async def main() -> None:
        async with Lease(campaign.folder.lease):
            with pytest.raises(LeaseHeldError):
                await run_campaign(campaign.folder, changed, FakePlace(passes))
        assert campaign.folder.frozen() == campaign.frozen
        await run_campaign(campaign.folder, changed, FakePlace(passes))

    run_on(backend, main)
    assert campaign.folder.frozen() == changed
    assert len(campaign.index()) == 2 * len(campaign.tasks)


@on_both_backends
def test_campaign_is_run_by_one_process_alone(backend: str, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path)
    second = FakePlace(passes)

    async def act(job: Job) -> AttemptEnd:
        if campaign.name(job) == "t0":
            with pytest.raises(LeaseHeldError, match=f"{campaign.folder.path} is in use by process"):
                await run_campaign(campaign.folder, campaign.frozen, second)
        return await passes(job)

    async def main() -> None:
        assert (await run_campaign(campaign.folder, campaign.frozen, FakePlace(act))).because == "done"

    run_on(backend, main)
    assert not second.was_entered


def test_coordinator_records_rates_and_the_time_left(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, count=6)

    async def act(job: Job) -> AttemptEnd:
        campaign.now += 100.0
        return Finished(result=write_result(job, spent=Spent(usd=2.0, tokens=1_000, seconds=100.0)))

    run_on("asyncio", partial(campaign.run, FakePlace(act, slots=1)))  # type: ignore[arg-type]
    lefts = [news.running.seconds_left for news in campaign.news if news.result]
    assert lefts[0] is None
    assert lefts[1] == pytest.approx(400, rel=0.1)
    assert lefts[-1] == 0
    rates = campaign.record().rates
    assert rates.usd == pytest.approx(72, rel=0.1)
    assert rates.tokens == pytest.approx(36_000, rel=0.1)
    assert rates.attempts == pytest.approx(36, rel=0.1)


def test_coordinator_names_the_host_of_what_runs(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, count=1)

    async def act(job: Job) -> AttemptEnd:
        async with Lease(campaign.folder.attempt(job.task_id, 1).lease):
            await until(
                lambda: this_process().host in {one.host for news in campaign.news for one in news.running.running}
            )
        return await passes(job)

    run_on("asyncio", partial(campaign.run, FakePlace(act)))  # type: ignore[arg-type]
    assert campaign.record().counts == {"passed": 1}


def test_coordinator_shares_rates_between_those_that_run(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, count=3, text="[rate.anthropic]\nrequests_per_minute = 60\n")
    intervals: list[float] = []
    all_run = anyio.Event()

    async def act(job: Job) -> AttemptEnd:
        intervals.append(json.loads((campaign.folder.pace / "anthropic.rate.json").read_text())["interval_s"])
        if len(intervals) == 2:
            all_run.set()
        await all_run.wait()
        return await passes(job)

    run_on("asyncio", partial(campaign.run, FakePlace(act, slots=2)))  # type: ignore[arg-type]
    assert max(intervals) == 2.0
    assert len(intervals) == 3
