"""Keeps `state/running.json`, from which `status` tells of a campaign that runs."""

from collections.abc import Awaitable, Callable

from anyio import to_thread

from panpan.batch.coordination.progress import Progress
from panpan.batch.store.folder import CampaignFolder, write_record
from panpan.batch.store.lease import holder_of
from panpan.batch.store.records import Key, Running
from panpan.errors import OutputError

LEAST_S = 1.0
"""Least seconds between two records."""
_MOST_S = 10.0
"""Seconds after which the record is written though nothing has changed."""
_HOST_S = 30.0
"""Seconds after which the host of a running attempt is looked for again."""


class Recorder:
    """Writes the record when something has changed, and tells the news.

    Args:
        folder: The campaign's folder.
        notify: Called with each record.
        on_full: Called if the record cannot be written.
        clock: Seconds that never go back.
        sleep: Pauses between records.
    """

    def __init__(
        self,
        folder: CampaignFolder,
        notify: Callable[[Progress], None],
        *,
        on_full: Callable[[], None],
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._folder = folder
        self._notify = notify
        self._on_full = on_full
        self._clock = clock
        self._sleep = sleep
        self._hosts: dict[Key, tuple[str, float]] = {}
        """Host of each running attempt, and the moment of the look for it."""

    async def record_often(self, running: Callable[[], Running]) -> None:
        """Record what runs until it is cancelled."""
        written, at = None, float("-inf")
        while True:
            await self._look_for_hosts(running())
            now = self.with_hosts(running())
            told = _without_times(now)
            if told != written or self._clock() - at >= _MOST_S:
                written, at = told, self._clock()
                try:
                    await to_thread.run_sync(write_record, self._folder.running_file, now)
                except OutputError:
                    self._on_full()
                self._notify(Progress(now))
            await self._sleep(LEAST_S)

    def with_hosts(self, running: Running) -> Running:
        """Return the record with the hosts that are known."""
        named = [one.model_copy(update={"host": self._hosts.get(one.key, ("", 0.0))[0]}) for one in running.running]
        return running.model_copy(update={"running": tuple(named)})

    async def _look_for_hosts(self, running: Running) -> None:
        """Look who holds the leases of the attempts, since an attempt may move to another machine."""
        before, self._hosts = self._hosts, {}
        for one in running.running:
            host, looked_at = before.get(one.key, ("", float("-inf")))
            if self._clock() - looked_at >= (_HOST_S if host else 0.0):
                holder = await holder_of(self._folder.attempt(*one.key).lease)
                host, looked_at = host if holder is None else holder.host, self._clock()
            self._hosts[one.key] = host, looked_at


def _without_times(running: Running) -> Running:
    attempts = tuple(one.model_copy(update={"seconds": 0.0}) for one in running.running)
    return running.model_copy(update={"seconds": 0.0, "rates": None, "seconds_left": None, "running": attempts})
