"""The order in which the attempts of a campaign run, and those that pause. It does nothing by itself."""

import heapq
from collections import deque
from collections.abc import Iterable
from itertools import count

from panpan.batch.records import Task
from panpan.types.dataclass import dataclass

Key = tuple[str, int]
"""Task id and number of an attempt."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at one task."""

    task: Task
    number: int

    @property
    def key(self) -> Key:
        return self.task.id, self.number


FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 60.0


class Schedule:
    """Attempts that are to run, in their order.

    Args:
        attempts: Those that have begun come first.
    """

    def __init__(self, attempts: Iterable[Attempt]) -> None:
        self._ready = deque(attempts)
        self._later: list[tuple[float, int, Attempt]] = []
        self._pauses: dict[Key, int] = {}
        self._order = count()

    def __len__(self) -> int:
        return len(self._ready) + len(self._later)

    @property
    def pauses(self) -> bool:
        """True if an attempt will be ready after a pause."""
        return bool(self._later)

    def first(self, now: float) -> Attempt | None:
        """Return the attempt that is next; None if there is none, or all pause."""
        while self._later and self._later[0][0] <= now:
            self._ready.appendleft(heapq.heappop(self._later)[2])
        return self._ready[0] if self._ready else None

    def take(self) -> Attempt:
        """Remove and return what `first` returned."""
        return self._ready.popleft()

    def add_first(self, attempt: Attempt) -> None:
        """Add an attempt that goes before all others, as one that a person has answered."""
        self._ready.appendleft(attempt)

    def add_later(self, attempt: Attempt, now: float) -> None:
        """Add an attempt that goes before others after a pause, which doubles each time."""
        times = self._pauses[attempt.key] = self._pauses.get(attempt.key, 0) + 1
        pause_s = min(FIRST_PAUSE_S * 2 ** min(times - 1, 10), LONGEST_PAUSE_S)
        heapq.heappush(self._later, (now + pause_s, next(self._order), attempt))
