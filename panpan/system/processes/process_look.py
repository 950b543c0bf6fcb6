"""One look at the running processes for all who want one at the same time.

A look reads some files of every process of the machine. When eight tools are ended at once, each of them wants to look
several times; one look after the other in turn serves them all.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

import anyio
from anyio import to_thread
from anyio.lowlevel import RunVar

from panpan.system.processes.process_table import RunningProcess, running_processes

_Seen = TypeVar("_Seen")


class Looks:
    """Looks one after the other; whoever comes while one is under way gets the next.

    Args:
        scan: Looks, in a thread.
    """

    def __init__(self, scan: Callable[[], Mapping[int, RunningProcess]] = running_processes) -> None:
        self._scan = scan
        self._one_at_a_time = anyio.Lock()
        self._limiter = anyio.CapacityLimiter(1)
        self._begun = 0
        self._done = 0
        """The number of the newest look that was finished."""
        self._seen: Mapping[int, RunningProcess] = {}

    async def next(self) -> Mapping[int, RunningProcess]:
        """Return what a look saw that began no earlier than now."""
        wanted = self._begun + 1
        async with self._one_at_a_time:
            if self._done < wanted:
                self._begun = number = self._begun + 1
                self._seen = await in_a_thread(self._scan, self._limiter)
                self._done = number
            return self._seen


_looks: RunVar[Looks] = RunVar("looks")
"""Those of the running event loop; what is kept in it ends with the loop."""


async def look() -> Mapping[int, RunningProcess]:
    """Return all processes by number, as they are now or a moment later; others get the same mapping."""
    try:
        looks = _looks.get()
    except LookupError:
        looks = Looks()
        _looks.set(looks)
    return await looks.next()


async def in_a_thread(scan: Callable[[], _Seen], limiter: anyio.CapacityLimiter) -> _Seen:
    """Return what `scan` sees; it looks on the spot where the machine has no thread left, as beside a fork bomb.

    Args:
        scan: Looks at processes, and may take some milliseconds.
        limiter: One that nothing else waits for: the common one may be full of threads that hang on a dead disk.
    """
    try:
        return await to_thread.run_sync(scan, limiter=limiter)
    except RuntimeError as exc:
        if "start new thread" not in str(exc):
            raise
        return scan()
