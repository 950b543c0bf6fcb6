"""A pause between two requests to the same host, so that no site suffers from a model in a hurry.

The rule: whoever asks first goes first; all others of the session wait behind, subagents too.
"""

from collections.abc import Awaitable, Callable

import anyio

_MANY_HOSTS = 1_000
"""After which those are forgotten that nobody would wait for."""


class Pace:
    """Lets requests to one host follow each other slowly.

    Args:
        pause_s: Seconds between two of them.
        clock: Returns the time, in seconds.
        sleep: Waits so many seconds.
    """

    def __init__(
        self,
        pause_s: float,
        *,
        clock: Callable[[], float] = anyio.current_time,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._pause_s = pause_s
        self._clock = clock
        self._sleep = sleep
        self._free_at: dict[str, float] = {}

    async def turn(self, host: str) -> None:
        """Wait until the host may be asked again."""
        now = self._clock()
        at = max(now, self._free_at.get(host, now))
        self._free_at[host] = at + self._pause_s
        if len(self._free_at) > _MANY_HOSTS:
            self._free_at = {name: free for name, free in self._free_at.items() if free > now}
        if at > now:
            await self._sleep(at - now)
