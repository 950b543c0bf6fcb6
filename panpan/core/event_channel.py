"""The channel through which the events of a task reach the one that shows them, or passes them on."""

from typing import Generic, TypeVar

import anyio
from anyio import BrokenResourceError
from anyio.lowlevel import checkpoint

T = TypeVar("T")


class EventChannel(Generic[T]):
    """Carries events to one task from others, in order; `room` of them may wait for the receiver.

    A model's deltas come by the ten thousand, and a memory stream passes the event loop twice more for each. Here the
    receiver takes all that waits in one step.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._waiting: list[T] = []
        self._has_sender = True
        self._has_receiver = True
        self._is_nudged = False
        self._change: anyio.Event | None = None  # wakes the side that waits: for room or for events, never both

    @property
    def is_over(self) -> bool:
        """True if nothing more comes."""
        return not self._has_sender and not self._waiting

    async def send(self, event: T) -> None:
        """Hand over an event; waits while there is no room. BrokenResourceError: the receiver has left."""
        while self._has_receiver and len(self._waiting) >= self._room:
            await self._wait()
        if not self._has_receiver:
            await checkpoint()  # if the receiver has cancelled this task, too, then that is how it ends
            raise BrokenResourceError
        self._waiting.append(event)
        self._wake()

    async def take(self) -> list[T]:
        """Return all that has come since the last time, waiting for the first; nothing if it is over, or nudged."""
        while self._has_sender and not self._waiting and not self._is_nudged:
            await self._wait()
        self._is_nudged = False
        taken, self._waiting = self._waiting, []
        self._wake()
        return taken

    def close(self) -> None:
        """The sender is done; what waits can still be taken."""
        self._has_sender = False
        self._wake()

    def nudge(self) -> None:
        """Let the receiver look up, though nothing may have come."""
        self._is_nudged = True
        self._wake()

    def leave(self) -> None:
        """The receiver takes nothing more; what waits is dropped."""
        self._has_receiver = False
        self._waiting.clear()
        self._wake()

    async def _wait(self) -> None:
        self._change = self._change or anyio.Event()
        await self._change.wait()

    def _wake(self) -> None:
        if self._change is not None:
            self._change.set()
            self._change = None
