"""A disk in memory for leases, whose every step is a point at which another process may go first."""

from collections.abc import Coroutine, Generator, Sequence
from itertools import count

from panpan.batch.store.lease import Claim, Holder, LeaseDisk, Watch


class _Turn:
    """Gives the word to whoever drives the processes."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class DiskModel(LeaseDisk):
    """The content of a lease's folder. The steps are atomic, and others may come between them."""

    def __init__(self) -> None:
        self.files: dict[int, bytes] = {}

    async def numbers(self) -> Sequence[int]:
        await _Turn()
        return list(self.files)

    async def read(self, number: int) -> bytes | None:
        await _Turn()
        return self.files.get(number)

    async def create(self, number: int, data: bytes) -> bool:
        await _Turn()
        return self.files.setdefault(number, data) is data

    async def write(self, number: int, data: bytes) -> None:
        await _Turn()
        self.files[number] = data

    async def remove_below(self, number: int) -> None:
        await _Turn()
        for one in sorted(self.files):
            if one < number:
                await self.remove(one)

    async def remove(self, number: int) -> None:
        await _Turn()
        self.files.pop(number, None)


class Contender:
    """A process that takes the lease, beats and lets it go, and may be killed between any two steps.

    Args:
        name: Stands for its process number.
        disk: The lease's folder.
        is_gone: True if a holder's process has ended.
        beats: Times that it beats before it lets go.
        rounds: Times that it takes the lease.
        clock: Its own clock.
    """

    def __init__(self, name: int, disk: DiskModel, is_gone, beats: int = 1, rounds: int = 1, clock=lambda: 0.0) -> None:
        self.name = name
        self.holds = False
        """True from the end of taking it until it begins to let go, or was told that it is another's."""
        self.was_told = False
        self._beats = beats
        self._rounds = rounds
        self.claim = Claim(disk, holder(name), Watch(clock, is_gone))
        self._steps: Generator[None, None, None] | None = None
        self.is_over = False

    def step(self) -> None:
        """Do one step on the disk, if there is one left."""
        if self.is_over:
            return
        try:
            self._steps = self._steps or self._live().__await__()
            next(self._steps)
        except StopIteration:
            self.is_over = True

    def kill(self) -> None:
        if self._steps is not None:
            self._steps.close()
        self.is_over, self.holds = True, False

    async def _live(self) -> None:
        for _ in range(self._rounds):
            while not await self.claim.try_to_take():
                await _Turn()
            self.holds = True
            for _ in range(self._beats):
                if not await self.claim.beat():
                    self.holds, self.was_told = False, True
                    return
            self.holds = False
            await self.claim.release()


_tokens = count()


def holder(pid: int) -> Holder:
    return Holder(token=str(next(_tokens)), host="here", machine="m", pid=pid, started="1")


def run_to_its_end(steps: Coroutine[None, None, bool]) -> bool:
    """Run a coroutine of the model while nobody else does anything."""
    return finish(steps.__await__())


def finish(steps: Generator[None, None, bool]) -> bool:
    """Go on with a coroutine that has begun, and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return bool(end.value)
