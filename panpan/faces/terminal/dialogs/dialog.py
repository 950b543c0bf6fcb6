"""What a dialog is: it shows lines below the conversation and takes every key until it is answered.

A dialog is a state machine without a terminal: keys go in, lines come out. So that it can be tested without one, and so
that the one place that reads keys stays the one that decides who gets them.
"""

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from panpan.faces.terminal.screen.theme import Theme

NARROWEST = 16
"""Cells; in a narrower row no dialog is shown."""

Answer_co = TypeVar("Answer_co", covariant=True)


class Dialog(Protocol, Generic[Answer_co]):
    """Asks one thing."""

    @property
    def answer(self) -> Answer_co | None:
        """What the user said; None until he has."""
        ...

    @property
    def cursor(self) -> tuple[int, int] | None:
        """Row and cell of the caret in what was drawn last; None where nothing is typed."""
        ...

    def lines(self, width: int, theme: Theme) -> Sequence[str]:
        """Return what is shown, one string with SGR sequences for each row, none wider than `width` cells.

        Args:
            width: `NARROWEST` or more.
            theme: How it looks.
        """
        ...

    def was_drawn(self) -> None:
        """What `lines` returned last is on the screen, all of it."""

    def takes(self, key: str) -> bool:
        """Return whether a key means something here, so that it is not the beginning of a text for the input."""
        ...

    def press(self, key: str) -> None:
        """Take one key: a character as itself, or a name as prompt_toolkit has it.

        Names in use: `enter`, `escape`, `up`, `down`, `left`, `right`, `tab`, `s-tab`, `backspace`, `delete`, `home`,
        `end`, `c-a`, `c-e`, `c-u`, `c-w`, `c-c`, `c-o`, `pageup`, `pagedown`.
        """
        ...

    def paste(self, text: str) -> bool:
        """Take pasted text where something is typed, and return whether that is so; it never answers."""
        ...
