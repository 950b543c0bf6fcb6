"""The coordinator of a campaign: begins attempts while there are slots and budget, and keeps the index of results.

The rule: all that it must not forget is in the campaign's folder, so it may be killed at any moment. Attempts write
their results themselves. What it holds in memory is made from the folder when the next run begins.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress

import anyio
from anyio import CancelScope, to_thread
from anyio.abc import TaskGroup

from panpan.batch.coordination.ledger import Ledger
from panpan.batch.coordination.place import Place
from panpan.batch.coordination.progress import Progress, Summary, running_record, sentence, waiting_record
from panpan.batch.coordination.reconciling import Standing, reopen_errors, standing_of
from panpan.batch.coordination.recorder import Recorder
from panpan.batch.coordination.schedule import Attempt, Refusals, Schedule
from panpan.batch.coordination.tally import Tally
from panpan.batch.store.folder import CampaignFolder, read_record, write_record
from panpan.batch.store.lease import Lease, LeaseLostError
from panpan.batch.store.records import (
    AttemptEnd,
    EndedBecause,
    Finished,
    FrozenCampaign,
    Job,
    Key,
    Limits,
    Needs,
    Result,
    Running,
    Stopped,
    Unfit,
    Waiting,
)
from panpan.errors import ConfigError, OutputError, PanpanError, unwrap_single_exception
from panpan.models.pace import share_rate

TICK_S = 1.0
"""Seconds between looks for answers, a stop and room on the disk."""
ROOM_BYTES = 64_000_000
"""Free space below which no attempt begins."""
_FULL_PAUSE_S = 5.0


async def run_campaign(
    folder: CampaignFolder,
    frozen: FrozenCampaign,
    place: AbstractAsyncContextManager[Place],
    *,
    notify: Callable[[Progress], None] = lambda _: None,
    retries_errors: bool = False,
) -> Summary:
    """Run a campaign until all is done or it cannot go on. Cancelling the call stops the attempts, to go on later.

    Args:
        folder: The campaign's folder.
        frozen: The campaign as the user trusted it.
        place: Where attempts run. It is entered when no other process runs the campaign.
        notify: Called with news; it may not block.
        retries_errors: True if attempts that ended with an error go on.

    Raises:
        LeaseHeldError: Another process runs the campaign.
        LeaseLostError: Another process took it over, since this one was suspended.
        ConfigError: The folder is damaged.
        OutputError: The folder cannot be written.
    """
    async with Lease(folder.lease, guards=folder.path) as lease:
        if await to_thread.run_sync(folder.frozen_or_none) != frozen:  # changed since an earlier run
            await to_thread.run_sync(folder.write_frozen, frozen)
        if retries_errors:
            await to_thread.run_sync(reopen_errors, folder)
        async with place as entered:
            return await Coordinator(folder, frozen, entered, lease, notify=notify).run()
    raise AssertionError("a lease swallows no exception")


class Coordinator:
    """Runs the attempts of one campaign.

    Args:
        folder: The campaign's folder.
        frozen: The campaign as the user trusted it.
        place: Where attempts run, entered.
        lease: The campaign's lease, held.
        notify: Called with news; it may not block.
        clock: Seconds that never go back.
        sleep: Pauses between looks.
    """

    def __init__(
        self,
        folder: CampaignFolder,
        frozen: FrozenCampaign,
        place: Place,
        lease: Lease,
        *,
        notify: Callable[[Progress], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._folder = folder
        self._frozen = frozen
        self._place = place
        self._lease = lease
        self._notify = notify
        self._clock = clock
        self._sleep = sleep
        self._runs: dict[Key, tuple[Attempt, float]] = {}
        """Attempts that run, and the time on the clock when they began."""
        self._waiting: dict[Key, tuple[Attempt, Needs]] = {}
        self._refusals = Refusals()
        self._unlisted: list[Result] = []
        self._full_until = float("-inf")
        self._recorder = Recorder(folder, notify, on_full=self._hold, clock=clock, sleep=sleep)
        self._note = self._pause_reason = ""
        self._stops = False
        self._wake = anyio.Event()
        self._listing = anyio.Lock()
        self._pacing = anyio.Lock()
        self._cut_off: list[Attempt] = []
        self._counted: set[Key] = set()

    async def run(self) -> Summary:
        """Run attempts until all is done or the campaign cannot go on."""
        await to_thread.run_sync(self._begin)
        because: EndedBecause = "stopped"
        try:
            because = await self._work()
        finally:
            if not self._lease.is_lost:
                with CancelScope(shield=True), suppress(OutputError), anyio.move_on_after(5):
                    await to_thread.run_sync(self._end, because)
        return self._summary(because, self._running(because))

    def _begin(self) -> None:
        folder, campaign = self._folder, self._frozen.campaign
        folder.stop.unlink(missing_ok=True)
        before = None
        with suppress(ConfigError):  # a damaged record costs the time that it tells, and nothing else
            before = read_record(folder.running_file, Running)
        standing = standing_of(folder, campaign.attempts)
        everything = len(standing.results) + len(standing.begun) + len(standing.fresh)
        self._tally = Tally(everything, before.seconds if before else 0.0, self._clock)
        self._ledger = Ledger(campaign.budget, self._tally.seconds)
        if folder.room_bytes() < ROOM_BYTES:
            self._hold()
        self._take_over(standing)

    def _take_over(self, standing: Standing) -> None:
        for key, result in standing.results.items():
            self._tally.add_earlier(result)
            self._ledger.settle(self._job(key), result.spent)
        for one in standing.begun:
            self._ledger.keep(self._job(one.key))
        if overdrawn := self._ledger.overdrawn:
            raise ConfigError(
                f"the {len(standing.begun):,} attempts that have begun may take more {overdrawn} than [budget] has "
                "left, since a limit was changed; raise [budget], lower the limit in [attempt], or cancel some"
            )
        self._waiting = {one.key: (one, needs) for one in standing.begun if (needs := standing.waiting.get(one.key))}
        ready = [one for one in standing.begun if one.key not in self._waiting]
        self._schedule = Schedule([*ready, *standing.fresh])

    def _job(self, key: Key) -> Job:
        settings = self._frozen.campaign.attempt
        return Job(
            folder=str(self._folder.path),
            campaign_id=self._frozen.id,
            task_id=key[0],
            attempt=key[1],
            limits=Limits(usd=settings.max_usd, tokens=settings.max_tokens, seconds=settings.max_seconds),
            gpus=settings.gpu,
        )

    # the loop

    async def _work(self) -> EndedBecause:
        with unwrap_single_exception():
            async with anyio.create_task_group() as helpers:
                helpers.start_soon(self._look_often)
                helpers.start_soon(self._watch_place)
                helpers.start_soon(self._recorder.record_often, self._running)
                async with anyio.create_task_group() as attempts:
                    because = await self._begin_and_wait(attempts)
                    attempts.cancel_scope.cancel()  # a stop: those that run go on in a later run
                helpers.cancel_scope.cancel()
        return because

    async def _begin_and_wait(self, attempts: TaskGroup) -> EndedBecause:
        while True:
            for one in self._refusals.take_back(self._place.hosts):
                self._schedule.add_later(one, self._clock())
            if because := self._ended():
                return because
            self._wake = anyio.Event()
            self._start_what_fits(attempts)
            await self._wake.wait()

    def _ended(self) -> EndedBecause | None:
        """Return why nothing more is to be done in this run; None while something runs or may begin."""
        if self._stops:
            return "stopped"
        if self._ledger.is_time_over:
            return "budget"
        if self._runs or self._unlisted:
            return None
        if self._refusals.are_enough:
            return "unfit"
        if self._schedule.pauses:
            return None
        if self._schedule:
            first = self._schedule.first(self._clock())
            return "budget" if first is not None and self._ledger.lacking(self._job(first.key)) else None
        return "unfit" if self._refusals.reasons else "waiting" if self._waiting else "done"

    def _start_what_fits(self, attempts: TaskGroup) -> None:
        self._note = self._hindrance()
        if self._refusals.are_enough:
            return
        while not self._note and len(self._runs) < self._place.slots:
            one = self._schedule.first(self._clock())
            if one is None:
                self._note = f"attempts pause: {self._pause_reason}" if self._schedule.pauses else ""
                return
            job = self._job(one.key)
            if not self._ledger.reserve(job):
                self._note = f"the budget's {self._ledger.lacking(job)} is reserved by attempts that run"
                return
            self._schedule.take()
            self._runs[one.key] = one, self._clock()
            attempts.start_soon(self._attempt, one, job)

    def _hindrance(self) -> str:
        if self._clock() < self._full_until:
            return (
                f"{self._folder.path} cannot be written, as when the disk is full; make room, and it goes on by itself"
            )
        if not self._place.slots:
            problems = sorted({host.problem for host in self._place.hosts if host.problem})
            return "; ".join(["no machine is there yet", *problems])
        return ""

    async def _attempt(self, one: Attempt, job: Job) -> None:
        try:
            await self._share_rates()
            await self._lease.confirm()
            try:
                end: AttemptEnd = await self._place.run(job)
            except OutputError as error:
                self._hold()
                end = Stopped(reason=str(error))
            except LeaseLostError as error:
                end = Stopped(reason=str(error))
            except PanpanError as error:
                end = Unfit(reason=str(error))
            await self._take_end(one, end)
        except BaseException:
            self._cut_off.append(one)
            raise
        finally:
            del self._runs[one.key]
            self._wake.set()
        await self._share_rates()

    async def _take_end(self, one: Attempt, end: AttemptEnd) -> None:
        if isinstance(end, Finished | Waiting):
            self._refusals.note_ran()
        match end:
            case Finished(result=result):
                self._count(one, result, self._clock() - self._runs[one.key][1])
                self._notify(Progress(self._recorder.with_hosts(self._running()), result=result))
                await self._list_results()
            case Waiting(needs=needs):
                self._waiting[one.key] = one, needs
                self._notify(Progress(self._recorder.with_hosts(self._running()), waiting=waiting_record(one, needs)))
            case Stopped(reason=reason):
                self._pause_reason = reason
                self._schedule.add_later(one, self._clock())
            case Unfit(reason=reason):
                self._pause_reason = reason
                if self._refusals.add(one, reason, self._place.hosts):
                    self._schedule.add_later(one, self._clock())

    def _count(self, one: Attempt, result: Result, seconds: float) -> None:
        if one.key not in self._counted:
            self._counted.add(one.key)
            self._ledger.settle(self._job(one.key), result.spent)
            self._tally.add(result, seconds)
            self._unlisted.append(result)

    async def _list_results(self) -> None:
        """Add results to the index. They are safe in their own files, so a full disk delays this."""
        async with self._listing:
            while self._unlisted:
                await self._lease.confirm()
                try:
                    await to_thread.run_sync(self._folder.append_result, self._unlisted[0])
                except OutputError:
                    self._hold()
                    return
                self._unlisted.pop(0)

    def _hold(self) -> None:
        """Begin no attempt for a moment, since the disk is full."""
        self._full_until = self._clock() + _FULL_PAUSE_S

    async def _share_rates(self) -> None:
        """Tell the attempts how many they are, before one begins and after one ends."""
        if rates := self._frozen.campaign.rate:
            async with self._pacing:
                await to_thread.run_sync(share_rate, self._folder.pace, rates, len(self._runs))

    # helpers that run beside the loop

    async def _watch_place(self) -> None:
        while True:
            await self._place.changed()
            self._wake.set()

    async def _look_often(self) -> None:
        while True:
            try:
                stops, answered, room = await to_thread.run_sync(self._look, list(self._waiting))
            except OSError:  # a shared disk that is away for a moment
                stops, answered, room = False, [], 0
            self._stops = self._stops or stops
            for key in answered:
                self._schedule.add_first(self._waiting.pop(key)[0])
            if room < ROOM_BYTES:
                self._hold()
            await self._list_results()
            self._wake.set()  # also for the time that the campaign may take, and pauses that are over
            await self._sleep(TICK_S)

    def _look(self, waiting: Sequence[Key]) -> tuple[bool, Sequence[Key], int]:
        """Return if there is a stop, the attempts that need nobody any more, and the free bytes."""
        answered = [key for key in waiting if not self._folder.attempt(*key).is_waiting]
        return self._folder.stop.exists(), answered, self._folder.room_bytes()

    # what is told

    def _running(self, ended: EndedBecause | None = None) -> Running:
        now = self._clock()
        return self._tally.running(self._place.slots).model_copy(
            update={
                "running": tuple(running_record(one, now - since) for one, since in self._runs.values()),
                "waiting": tuple(waiting_record(one, needs) for one, needs in self._waiting.values()),
                "hosts": tuple(self._place.hosts),
                "spent": self._ledger.spent,
                "reserved": self._ledger.reserved,
                "note": self._note,
                "ended": ended,
            }
        )

    def _end(self, because: EndedBecause) -> Running:
        """Add results that attempts wrote while they were stopped, and write the last record."""
        for one in self._cut_off:
            if (result := self._folder.attempt(*one.key).result()) is not None:
                self._count(one, result, 0.0)
        with suppress(OutputError):  # the next run adds them
            for result in self._unlisted:
                self._folder.append_result(result)
        last = self._running(because)
        write_record(self._folder.running_file, last)
        return last

    def _summary(self, because: EndedBecause, last: Running) -> Summary:
        lacking = ""
        if because == "budget":
            first = self._schedule.first(self._clock())
            lacking = "time" if first is None else self._ledger.lacking(self._job(first.key)) or "time"
        return Summary(because, sentence(because, last, self._folder.path, lacking, self._refusals.reasons), last)
