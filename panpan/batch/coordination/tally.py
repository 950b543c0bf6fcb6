"""Counts of a campaign's run, its rates, and an estimate of the time that is left."""

import os
import socket
from collections import Counter
from collections.abc import Callable

from panpan.batch.store.records import Rates, Result, Running, Spent
from panpan.receipts.receipt import utc_now

_LEAST_RESULTS = 2
_HOUR_S = 3_600.0


class Tally:
    """Counts results.

    Args:
        attempts: All attempts of the campaign.
        earlier_s: Seconds that earlier runs of the campaign took.
        clock: Seconds that never go back.
    """

    def __init__(self, attempts: int, earlier_s: float, clock: Callable[[], float]) -> None:
        self._attempts = attempts
        self._earlier_s = earlier_s
        self._clock = clock
        self._began = clock()
        self._begun_at = utc_now()
        self._counts: Counter[str] = Counter()
        self._durations_s = 0.0
        self._timed = 0
        self._spent_now = Spent()
        self._ended_now = 0

    def add_earlier(self, result: Result) -> None:
        """Count a result of an earlier run."""
        self._count(result, result.spent.seconds)

    def add(self, result: Result, seconds: float) -> None:
        """Count a result of this run, whose attempt took so many seconds."""
        self._count(result, max(seconds, result.spent.seconds))
        self._spent_now = self._spent_now + result.spent
        self._ended_now += 1

    def _count(self, result: Result, seconds: float) -> None:
        self._counts[result.status] += 1
        if result.status != "cancelled":
            self._durations_s += seconds
            self._timed += 1

    @property
    def ended(self) -> int:
        """Number of attempts with a result."""
        return self._counts.total()

    def seconds(self) -> float:
        """Return the seconds in which the campaign has run, all its runs together."""
        return self._earlier_s + self._clock() - self._began

    def running(self, slots: int) -> Running:
        """Return the record of this moment, with all that this knows.

        Args:
            slots: Attempts at once.
        """
        return Running(
            begun_at=self._begun_at,
            host=socket.gethostname(),
            pid=os.getpid(),
            seconds=self.seconds(),
            attempts=self._attempts,
            counts=dict(self._counts),
            slots=slots,
            rates=self._rates(),
            seconds_left=self._seconds_left(slots),
        )

    def _rates(self) -> Rates:
        hours = max(self._clock() - self._began, 1.0) / _HOUR_S
        usd = self._spent_now.usd
        return Rates(
            usd=None if usd is None else usd / hours,
            tokens=self._spent_now.tokens / hours,
            attempts=self._ended_now / hours,
        )

    def _seconds_left(self, slots: int) -> float | None:
        if self._timed < _LEAST_RESULTS or not slots:
            return None
        return self._durations_s / self._timed * (self._attempts - self.ended) / slots
