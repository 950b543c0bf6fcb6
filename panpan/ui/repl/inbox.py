"""What the user sent, handled one after the other in the order in which he sent it."""

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio


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
        give_back: Gets the text of what was interrupted before it was done.
    """

    def __init__(self, handle: Callable[[Sent], Awaitable[None]], give_back: Callable[[str], None]) -> None:
        self._handle = handle
        self._give_back = give_back
        self._is_closed = False
        self._waiting: deque[Sent] = deque()
        self._has_some = anyio.Event()
        self._scope: anyio.CancelScope | None = None

    @property
    def is_busy(self) -> bool:
        """Whether something is being handled."""
        return self._scope is not None

    @property
    def waiting(self) -> tuple[str, ...]:
        """What was not handled yet."""
        return tuple(sent.text for sent in self._waiting)

    def close(self) -> None:
        """Handle nothing more; what waits stays."""
        self._is_closed = True

    def put(self, sent: Sent) -> None:
        """Add one thing."""
        self._waiting.append(sent)
        self._has_some.set()

    def interrupt(self) -> bool:
        """End what is being handled; return whether there was something."""
        if self._scope is None:
            return False
        self._scope.cancel("the user interrupted it")
        return True

    async def run(self) -> None:
        """Hand on until cancelled."""
        while True:
            await self._has_some.wait()
            self._has_some = anyio.Event()
            while self._waiting and not self._is_closed:
                sent = self._waiting.popleft()
                with anyio.CancelScope() as scope:
                    self._scope = scope
                    await self._handle(sent)
                self._scope = None
                if scope.cancelled_caught:
                    self._give_back(sent.text)
