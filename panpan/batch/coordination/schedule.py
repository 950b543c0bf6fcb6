"""The order in which the attempts of a campaign run, and those that pause. It does nothing by itself."""

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import count

from panpan.batch.coordination.pauses import GrowingPause
from panpan.batch.store.records import HostState, Key, Task
from panpan.types.dataclass import dataclass


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
        self._pauses: dict[Key, GrowingPause] = {}
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
        pause = self._pauses.setdefault(attempt.key, GrowingPause(FIRST_PAUSE_S, LONGEST_PAUSE_S))
        heapq.heappush(self._later, (now + pause.take(), next(self._order), attempt))


ENOUGH = 8
"""Attempts given up for one reason, with none that could run, after which the others are not tried."""


class Refusals:
    """Attempts that hosts could not run, until each host has had its chance."""

    def __init__(self) -> None:
        self._any_ran = False
        self._times: dict[Key, int] = {}
        self._given_up: dict[Key, tuple[Attempt, str]] = {}
        self._seen: set[str] = set()

    def note_ran(self) -> None:
        """Note that an attempt could run, so that others may."""
        self._any_ran = True

    def add(self, attempt: Attempt, reason: str, hosts: Sequence[HostState]) -> bool:
        """Note that a host could not run an attempt; True if another one may try.

        The place chooses the host, so an attempt is tried twice as often as there are hosts.
        """
        times = self._times[attempt.key] = self._times.get(attempt.key, 0) + 1
        if times < (2 * len(hosts) if len(hosts) > 1 else 1):
            return True
        self._given_up[attempt.key] = attempt, reason
        return False

    def take_back(self, hosts: Sequence[HostState]) -> Sequence[Attempt]:
        """Return the attempts that were given up, if hosts have come since; they are not given up any more."""
        names = {host.name for host in hosts}
        if names <= self._seen:
            return ()
        self._seen |= names
        again = [attempt for attempt, _ in self._given_up.values()]
        self._given_up.clear()
        return again

    @property
    def are_enough(self) -> bool:
        """True if no attempt could run, and those given up say the same: so would the others."""
        return not self._any_ran and len(self._given_up) >= ENOUGH and len(self.reasons) == 1

    @property
    def reasons(self) -> Sequence[str]:
        """Reasons of those that were given up, each once; empty if there are none."""
        return list(dict.fromkeys(reason for _, reason in self._given_up.values()))
