"""What those who show something need of the terminal."""

from typing import Protocol

from panpan.ui.repl.theme import Theme


class Canvas(Protocol):
    """Takes finished lines, and draws what changes when it is told to."""

    @property
    def theme(self) -> Theme:
        """How things look at the moment."""
        ...

    @property
    def width(self) -> int:
        """Cells of a row at the moment."""
        ...

    def show(self, *lines: str) -> None:
        """Put whole lines into the scrollback."""

    def refresh(self) -> None:
        """Draw what is live again with the next frame."""
