"""The messages of a headless run that were read and that no turn has got yet.

The rule: reading goes on while a turn runs, and nothing that was read is lost: it is in the turn, or it waits here.
"""

from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import aclosing, contextmanager

import anyio

from panpan.errors import ConfigError
from panpan.faces.headless.prompts import Prompt
from panpan.session.steering import Steering
from panpan.types.messages import UserMessage

MOST_WAITING = 1_000
"""Messages that are read ahead; an input without an end is read no further then."""


class PromptQueue:
    """Reads prompts beside the turns.

    Args:
        prompts: What is read; closed at its end, or when `read` is cancelled.
        steering: Keeps what the running turn shall get at its next round.
        steer: Puts a message there; returns False for one that needs a turn of its own.
    """

    def __init__(
        self,
        prompts: AsyncGenerator[Prompt, None],
        steering: Steering,
        steer: Callable[[UserMessage], Awaitable[bool]],
    ) -> None:
        self._prompts = prompts
        self._steering = steering
        self._steer = steer
        self._steered: dict[str, UserMessage] = {}
        """Messages given to `steer` that may not have arrived, as they were read, by `uuid`."""
        self._waiting: deque[UserMessage] = deque()
        self._failure: ConfigError | None = None
        self._has_ended = False
        self._runs_turn = False
        self._has_changed = anyio.Event()

    async def read(self) -> None:
        """Read to the end, or to what cannot be read."""
        try:
            async with aclosing(self._prompts) as prompts:
                async for prompt in prompts:
                    while len(self.waiting) >= MOST_WAITING:
                        await self._has_changed.wait()
                    await self._take(prompt)
        except ConfigError as error:
            self._failure = error
        self._has_ended = True
        self._changed()

    async def next(self) -> UserMessage | None:
        """Return the next prompt, or None after the last.

        What an earlier turn was to get and did not get comes first.

        Raises:
            ConfigError: It cannot be read; all before it were returned.
        """
        while True:
            message = self._steering.take_first() or (self._waiting.popleft() if self._waiting else None)
            if message is not None:
                message = self._steered.pop(message.uuid, message)
                self._changed()
                return message
            if self._failure is not None:
                raise self._failure
            if self._has_ended:
                return None
            await self._has_changed.wait()

    @property
    def is_ready(self) -> bool:
        """Whether `next` would not wait."""
        return bool(self.waiting) or self._failure is not None or self._has_ended

    async def ready(self) -> None:
        """Return when `next` would not wait."""
        while not self.is_ready:
            await self._has_changed.wait()

    @contextmanager
    def turn(self) -> Generator[None, None, None]:
        """Let a turn run: until its end, it gets the messages that are for its next round."""
        self._runs_turn = True
        self._steered.clear()
        try:
            yield
        finally:
            self._runs_turn = False

    @property
    def waiting(self) -> tuple[UserMessage, ...]:
        """What was read and no turn has got, in the order in which turns would."""
        return (*self._steering.waiting, *self._waiting)

    async def _take(self, prompt: Prompt) -> None:
        message = prompt.message
        if prompt.is_for_next_round and self._runs_turn and await self._steer(message):
            self._steered[message.uuid] = message
        else:
            self._waiting.append(message)
        self._changed()

    def _changed(self) -> None:
        self._has_changed.set()
        self._has_changed = anyio.Event()
