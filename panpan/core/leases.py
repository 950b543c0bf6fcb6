"""Leases: calls that touch the same files wait for each other, and others run side by side.

The rule: a lease waits only for conflicting leases that were asked for before it, so no two wait for each other. While
a call holds one, it waits for nothing that another call does.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import Self

from anyio import CapacityLimiter, Event, Lock

from panpan.types.dataclass import dataclass

MAX_WORKING = 10
"""Most calls that work at once. One that waits for a model, a question, a background task or a lease does not count."""


@dataclass(frozen=True, slots=True)
class FileUse:
    """Files and folders that a call touches, each with all that is below it.

    Paths are canonical and end with a slash; case is ignored, as on some file systems.
    """

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    starts_agents: bool = False
    """True if it touches files only through agents, whose calls take leases of their own."""

    @classmethod
    def of(cls, *, reads: Iterable[object] = (), writes: Iterable[object] = ()) -> "FileUse":
        """Return the use of canonical paths."""
        return cls(frozenset(map(_key, reads)), frozenset(map(_key, writes)))

    def conflicts_with(self, other: "FileUse") -> bool:
        """True if the two must not happen at the same time."""
        if self.starts_agents and other.starts_agents:
            return False
        if EVERYTHING in (self, other):
            return True
        return _overlap(self.writes, other.writes | other.reads) or _overlap(other.writes, self.reads)


EVERYTHING = FileUse(writes=frozenset({"/"}))
"""Use of a call that runs alone, such as a command, whatever the other one touches."""

READS = FileUse(reads=frozenset({"/"}))
"""Use of a call that only reads, and that changes must not overtake."""

AGENTS = FileUse(writes=frozenset({"/"}), starts_agents=True)
"""Use of a call that starts an agent: it runs beside others like it, and beside nothing else."""


class Leases:
    """Shared by calls that run side by side: the files, the slots to work in, and the user's attention.

    Files are granted, where uses conflict, in the order in which they were asked for.
    """

    def __init__(self) -> None:
        self.slots = CapacityLimiter(MAX_WORKING)
        """Slots of the calls that work."""
        self.asking = Lock()
        """Held while the user is asked about a call."""
        self._asked: list[Lease] = []

    def ask(self, use: FileUse, *, on_wait: Callable[[], Awaitable[None]] | None = None) -> "Lease":
        """Return a lease, which is held inside `async with`; from now on, conflicting ones wait until it is over.

        Args:
            use: The files.
            on_wait: Called first if it has to wait.
        """
        lease = Lease(use, self, [one.over for one in self._asked if one.use.conflicts_with(use)], on_wait)
        self._asked.append(lease)
        return lease

    def end(self, lease: "Lease") -> None:
        """Let those go on that wait for a lease; also for one that was never held. Ending it again does nothing."""
        if lease in self._asked:
            self._asked.remove(lease)
        lease.over.set()


class Lease:
    """A use of files that was asked for. Entering it waits for the conflicting ones before it; leaving it ends it."""

    def __init__(
        self, use: FileUse, leases: Leases, before: Sequence[Event], on_wait: Callable[[], Awaitable[None]] | None
    ) -> None:
        self.use = use
        self.over = Event()
        self._leases = leases
        self._before = before
        self._on_wait = on_wait

    @property
    def has_to_wait(self) -> bool:
        """True if another one is not over yet."""
        return any(not event.is_set() for event in self._before)

    async def __aenter__(self) -> Self:
        """Wait until it is granted."""
        try:
            if self._on_wait is not None and self.has_to_wait:
                await self._on_wait()
            for event in self._before:
                await event.wait()
        except BaseException:
            self._leases.end(self)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End it."""
        self._leases.end(self)


def _key(path: object) -> str:
    text = str(path).casefold()
    return text if text.endswith("/") else f"{text}/"


def _overlap(some: frozenset[str], others: frozenset[str]) -> bool:
    return any(one.startswith(other) or other.startswith(one) for one in some for other in others)
