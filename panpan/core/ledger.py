"""The ledger of effects: what a call is about to do is on disk before it does it.

The rule: what cannot be noted is not done. So after a crash each call is known as not begun, done, or unknown, and
nothing is silently done twice.
"""

from collections.abc import Sequence
from typing import Protocol

from panpan.core.hooks import ToolCall
from panpan.types.tool import IntendedChange


class Ledger(Protocol):
    """Keeps what calls are about to do; each point returns when that is durable.

    Raises:
        PanpanError: It cannot be kept; the call must not go on.
    """

    async def call_starts(self, call: ToolCall) -> None:
        """Note that `call`, which may change something, begins."""
        ...

    async def files_change(self, tool_use_id: str, changes: Sequence[IntendedChange]) -> None:
        """Note what the call is going to make of files; it changes nothing else."""
        ...


class NoLedger:
    """Keeps nothing, for loops without a log."""

    async def call_starts(self, call: ToolCall) -> None:
        pass

    async def files_change(self, tool_use_id: str, changes: Sequence[IntendedChange]) -> None:
        pass
