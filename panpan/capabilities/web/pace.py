"""A pause between two requests to the same host, so that no site suffers from a model in a hurry.

The rule: whoever asks first goes first; all others of the session wait behind, subagents too. Who leaves while he waits
keeps nobody waiting. A pause is never shorter than it is set, and up to a second longer, so that several panpans that
began together do not ask together.
"""

import random
from collections.abc import Awaitable, Callable
from dataclasses import field

import anyio

from panpan.types.dataclass import dataclass

_MANY_HOSTS = 1_000
"""After which those are forgotten that nobody would wait for."""


@dataclass(slots=True)
class _Host:
    free_at: float = float("-inf")
    waiting: int = 0
    turn: anyio.Lock = field(default_factory=anyio.Lock)


class Pace:
    """Lets requests to one host follow each other slowly.

    Args:
        pause_s: Seconds between two of them; with 0 nothing waits.
        clock: Returns the time, in seconds.
        sleep: Waits so many seconds.
        jitter: Returns a random number of at least 0 and less than 1: the seconds that a pause is longer.
    """

    def __init__(
        self,
        pause_s: float,
        *,
        clock: Callable[[], float] = anyio.current_time,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._pause_s = pause_s
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter
        self._hosts: dict[str, _Host] = {}

    async def turn(self, host: str, *, at_least_s: float = 0.0) -> None:
        """Wait until the host may be asked again.

        Args:
            host: Which one.
            at_least_s: Seconds that the host itself wants between two requests.
        """
        place = self._place(host)
        place.waiting += 1
        try:
            async with place.turn:
                now = self._clock()
                at = max(now, place.free_at)
                if at > now:
                    await self._sleep(at - now)
                pause_s = max(self._pause_s, at_least_s)
                place.free_at = at + (pause_s + self._jitter() if pause_s else 0.0)
        finally:
            place.waiting -= 1

    def _place(self, host: str) -> _Host:
        if len(self._hosts) > _MANY_HOSTS:
            now = self._clock()
            self._hosts = {name: one for name, one in self._hosts.items() if one.waiting or one.free_at > now}
        return self._hosts.setdefault(host, _Host())
