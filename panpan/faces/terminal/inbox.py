"""What the user sent, handled one after the other in the order in which he sent it."""

from collections import deque
from collections.abc import Awaitable, Callable

import anyio

from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Sent:
    """One thing that was typed and sent."""

    text: str
    is_for_later: bool = False
    """Whether it shall wait until the turn is over."""


class Inbox:
    """Hands on what is put in.

    Args:
        handle: Does what a text asks for; one at a time.
        has_to_wait: Whether something cannot be handled at the moment; what comes after it and can be is not held up.
        give_back: Gets the text of what was interrupted before it was done.
    """

    def __init__(
        self,
        handle: Callable[[Sent], Awaitable[None]],
        has_to_wait: Callable[[Sent], bool],
        give_back: Callable[[str], None],
    ) -> None:
        self._handle = handle
        self._has_to_wait = has_to_wait
        self._give_back = give_back
        self._is_closed = False
        self._waiting: deque[Sent] = deque()
        self._has_changed = anyio.Event()
        self._at_hand: Sent | None = None
        """What is being handled, and stays so where all is ended meanwhile."""
        self._scope: anyio.CancelScope | None = None

    @property
    def is_busy(self) -> bool:
        """Whether something is being handled."""
        return self._scope is not None

    @property
    def waiting(self) -> tuple[str, ...]:
        """What was not handled yet."""
        return tuple(sent.text for sent in self._waiting)

    @property
    def left_over(self) -> tuple[Sent, ...]:
        """What was not handled, or not to its end."""
        return (*([] if self._at_hand is None else [self._at_hand]), *self._waiting)

    @property
    def is_closed(self) -> bool:
        """Whether nothing more is handled."""
        return self._is_closed

    def close(self) -> None:
        """Handle nothing more; what waits stays."""
        self._is_closed = True

    def open(self) -> None:
        """Go on after `close`."""
        self._is_closed = False
        self.look_again()

    def put(self, sent: Sent) -> None:
        """Add one thing."""
        self._waiting.append(sent)
        self.look_again()

    def look_again(self) -> None:
        """Handle what had to wait and has not to any more."""
        self._has_changed.set()

    def take_back(self) -> str | None:
        """Return the text of what was put in last and is not handled yet, and handle it no more."""
        return self._waiting.pop().text if self._waiting else None

    def interrupt(self) -> bool:
        """End what is being handled, or is about to be.

        Returns:
            Whether there was something that had not been told to end before.
        """
        if self._scope is None:
            return self._give_back_next()
        if self._scope.cancel_called:
            return False
        self._scope.cancel("the user interrupted it")
        return True

    async def run(self) -> None:
        """Hand on until cancelled."""
        while True:
            await self._has_changed.wait()
            self._has_changed = anyio.Event()
            while (sent := self._next()) is not None:
                self._at_hand = sent
                with anyio.CancelScope() as scope:
                    self._scope = scope
                    await self._handle(sent)
                self._scope = self._at_hand = None
                if scope.cancelled_caught:
                    self._give_back(sent.text)

    def _give_back_next(self) -> bool:
        """Give back what would be handled now, and return whether there was anything."""
        given_back: list[str] = []
        while (sent := self._next()) is not None:
            given_back.append(sent.text)
        if given_back:
            self._give_back("\n".join(given_back))
        return bool(given_back)

    def _next(self) -> Sent | None:
        """Take out the first that can be handled now."""
        if self._is_closed:
            return None
        sent = next((sent for sent in self._waiting if not self._has_to_wait(sent)), None)
        if sent is not None:
            self._waiting.remove(sent)
        return sent
