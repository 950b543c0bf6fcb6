"""Calls that run in the foreground and that the user can move to the background."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import anyio


class Foreground:
    """Those that run now, by the id of their tool use."""

    def __init__(self) -> None:
        self._asked: dict[str, anyio.Event] = {}

    @contextmanager
    def entered(self, tool_use_id: str) -> Iterator[anyio.Event]:
        """Let a call be moved while the context lasts; the event is set when somebody wants that."""
        asked = self._asked[tool_use_id] = anyio.Event()
        try:
            yield asked
        finally:
            if self._asked.get(tool_use_id) is asked:
                del self._asked[tool_use_id]

    @property
    def movable(self) -> Sequence[str]:
        """The calls that can be moved and were not asked to, in the order in which they began."""
        return [tool_use_id for tool_use_id, asked in self._asked.items() if not asked.is_set()]

    def move(self, tool_use_id: str | None) -> Sequence[str]:
        """Ask a call, or all, to go on in the background; return those that were asked."""
        chosen = [one for one in self.movable if tool_use_id in (None, one)]
        for one in chosen:
            self._asked[one].set()
        return chosen
