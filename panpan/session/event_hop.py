"""The way of a turn's events from the task that runs it to the one that shows them.

A model's deltas come by the ten thousand. A memory stream passes the event loop twice more for each; here the sender
goes on as long as there is room, and the receiver takes all that waits in one step. The rule: one sender and one
receiver, and every event arrives, in order, unless the receiver has left.
"""

from typing import Generic, TypeVar

from anyio import BrokenResourceError, Event

T = TypeVar("T")


class EventHop(Generic[T]):
    """Carries events between two tasks.

    Args:
        room: How many events may wait for the receiver; at least 1.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._waiting: list[T] = []
        self._has_sender = True
        self._has_receiver = True
        self._change: Event | None = None  # set for the side that waits; both never do, one for room, one for events

    async def send(self, event: T) -> None:
        """Hand over an event; waits while there is no room.

        Raises:
            BrokenResourceError: The receiver has left.
        """
        while self._has_receiver and len(self._waiting) >= self._room:
            await self._wait()
        if not self._has_receiver:
            raise BrokenResourceError
        self._waiting.append(event)
        self._wake()

    async def take(self) -> list[T]:
        """Return all that has come since the last time, waiting for the first; nothing means that it is over."""
        while self._has_sender and not self._waiting:
            await self._wait()
        taken, self._waiting = self._waiting, []
        self._wake()
        return taken

    def close(self) -> None:
        """The sender is done; what waits can still be taken."""
        self._has_sender = False
        self._wake()

    def leave(self) -> None:
        """The receiver takes nothing more; what waits is dropped."""
        self._has_receiver = False
        self._waiting.clear()
        self._wake()

    async def _wait(self) -> None:
        self._change = Event()
        await self._change.wait()

    def _wake(self) -> None:
        if self._change is not None:
            self._change.set()
            self._change = None
