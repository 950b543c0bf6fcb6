"""What a server works at by itself, such as reading the project, as it tells with `$/progress`."""

from collections.abc import Mapping
from typing import Any

import anyio

_MOST = 100
"""Works at the same time; of more nothing is noted."""


class Progress:
    """Which works have begun and not ended."""

    def __init__(self) -> None:
        self._open: set[str] = set()
        self._ended = anyio.Event()

    def take(self, params: Any) -> None:
        """Take what the server tells."""
        value = params.get("value") if isinstance(params, Mapping) else None
        kind = value.get("kind") if isinstance(value, Mapping) else None
        if kind not in ("begin", "end"):
            return
        token = str(params.get("token"))[:100]
        if kind == "begin" and len(self._open) < _MOST:
            self._open.add(token)
        elif kind == "end":
            self._open.discard(token)
            self._ended.set()
            self._ended = anyio.Event()

    async def has_ended(self, *, within_s: float) -> bool:
        """Wait until it works at nothing; return whether that is so, which it may not be in time."""
        with anyio.move_on_after(within_s):
            while self._open:
                await self._ended.wait()
        return not self._open
