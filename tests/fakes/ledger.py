"""A ledger in memory."""

from collections.abc import Callable, Sequence

from panpan.core.hooks import ToolCall
from panpan.types.events import IntendedChange


class FakeLedger:
    """Passes the id of each starting call to `note`, and keeps the intended_changes changes."""

    def __init__(self, note: Callable[[str], None] = lambda _: None) -> None:
        self.changes: dict[str, Sequence[IntendedChange]] = {}
        self._note = note

    async def call_starts(self, call: ToolCall) -> None:
        self._note(call.tool_use_id)

    async def files_change(self, tool_use_id: str, changes: Sequence[IntendedChange]) -> None:
        self.changes[tool_use_id] = changes
