"""Prompts on their way into a hub: prepared in the order of each client, and dropped when their client interrupts."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from anyio import CancelScope

from panpan.hub.operations.table import BusyError

MAX_AT_ONCE = 100
"""Most prompts of a client that may be on their way; further ones are refused."""


class _Way:
    def __init__(self) -> None:
        self.lock = anyio.Lock()
        self.scopes: list[CancelScope] = []


class PreparingPrompts:
    """The prompts that are being prepared, which may take long, as a mentioned folder or a hook does."""

    def __init__(self) -> None:
        self._ways: dict[str, _Way] = {}
        self._ids: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._ids)

    def __contains__(self, message_id: object) -> bool:
        return message_id in self._ids

    @asynccontextmanager
    async def turn_of(self, client: str, message_id: str) -> AsyncGenerator[None, None]:
        """Begin the block once the earlier prompts of a client are prepared.

        Raises:
            BusyError: Too many are on their way, or the client interrupted it.
        """
        way = self._ways.setdefault(client, _Way())
        if len(way.scopes) >= MAX_AT_ONCE:
            raise BusyError(f"{MAX_AT_ONCE} prompts are being sent already; wait for their responses")
        scope = CancelScope()
        way.scopes.append(scope)
        self._ids.append(message_id)
        try:
            with scope:
                async with way.lock:
                    yield
        finally:
            way.scopes.remove(scope)
            self._ids.remove(message_id)
            if not way.scopes:
                del self._ways[client]
        if scope.cancelled_caught:
            raise BusyError("the prompt was interrupted before it was sent")

    def cancel(self, client: str) -> bool:
        """Drop the prompts of a client that are on their way; return True if there were any."""
        way = self._ways.get(client)
        for scope in () if way is None else tuple(way.scopes):
            scope.cancel("the client interrupted it")
        return way is not None
