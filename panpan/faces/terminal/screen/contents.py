"""What one session shows around the input, and what keys do in it."""

from collections.abc import Callable, Sequence

from prompt_toolkit.key_binding import KeyBindings

from panpan.types.dataclass import dataclass


def _nothing(width: int) -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True)
class Contents:
    """What the screen shows below the scrollback beside the input, and what keys do; another for each session.

    The views are each given the width and return rows; they stand in this order, the input before the status.
    """

    keys: KeyBindings
    live: Callable[[int], Sequence[str]] = _nothing
    """What the turn is doing."""
    dialog: Callable[[int], Sequence[str]] = _nothing
    caret: Callable[[], tuple[int, int] | None] = lambda: None
    """Row and cell of the caret in the dialog; None where it is in the input."""
    queue: Callable[[int], Sequence[str]] = _nothing
    status: Callable[[int], Sequence[str]] = _nothing
    is_moving: Callable[[], bool] = lambda: False
    """Whether something changes by itself, as a spinner does."""
    was_drawn: Callable[[bool], None] = lambda is_whole: None
    """Called after each drawing, with whether the whole dialog is on the screen."""
    key_pressed: Callable[[], None] = lambda: None
    """Called before a key is handled."""
