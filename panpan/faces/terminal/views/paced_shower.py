"""Shows the events of a turn in steps that are short, whatever a model says at once, so that a key never waits long."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

from panpan.types.events import Event, SubagentEvent, TextDelta, ThinkingDelta, ToolInputDelta, ToolProgress

PIECE_CHARS = 1_000
"""Shown in one step."""
CHARS_AFTER_STOP = 4_000
"""Shown of what had come already when the turn was stopped; usually that is all."""


class Shower(Protocol):
    """Shows events."""

    def show(self, event: Event) -> None:
        """Show what `event` adds."""

    async def caught_up(self) -> None:
        """Let keys be taken, and wait while more is shown than the terminal takes."""


class PacedShower:
    """Shows the events of one turn, and waits in between.

    Args:
        view: Where they are shown.
        is_stopped: Whether the user has stopped the turn.
    """

    def __init__(self, view: Shower, is_stopped: Callable[[], bool]) -> None:
        self._view = view
        self._is_stopped = is_stopped
        self._since_pause = 0
        """Characters."""
        self._may_follow = CHARS_AFTER_STOP
        self.left_out = 0
        """Characters of the answer that came and were not shown, since the turn was stopped."""

    async def show(self, event: Event) -> None:
        """Show an event; a long text in pieces, and of that not all once the turn is stopped."""
        for piece in _pieces(event):
            size = _size(piece)
            if size and self._is_stopped():
                self._may_follow -= size
                if self._may_follow < 0:
                    self.left_out += size if isinstance(piece, TextDelta) else 0
                    continue
            self._view.show(piece)
            self._since_pause += size
            if not size or self._since_pause >= PIECE_CHARS:
                self._since_pause = 0
                await self._view.caught_up()


def _size(event: Event) -> int:
    """Return how many characters an event adds; 0 for what does not come by the ten thousand."""
    match event.innermost.event if isinstance(event, SubagentEvent) else event:
        case TextDelta(text=text) | ThinkingDelta(text=text) | ToolProgress(text=text):
            return len(text)
        case ToolInputDelta(json=text) if isinstance(event, SubagentEvent):
            return len(text)
        case _:
            return 0


def _pieces(event: Event) -> Iterator[Event]:
    if isinstance(event, TextDelta | ThinkingDelta) and len(event.text) > PIECE_CHARS:
        for at in range(0, len(event.text), PIECE_CHARS):
            yield replace(event, text=event.text[at : at + PIECE_CHARS])
    else:
        yield event
