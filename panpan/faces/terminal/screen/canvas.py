"""What those who show something need of the terminal, and the one way to say something in words of any origin."""

from typing import Protocol

from panpan.faces.terminal.rendering.text_rows import LEAST_WIDTH, plain_rows
from panpan.faces.terminal.screen.theme import Theme
from panpan.types.role import Role


class Scrollback(Protocol):
    """Takes finished lines."""

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


class Canvas(Scrollback, Protocol):
    """Takes finished lines, and draws what changes when it is told to."""

    def refresh(self) -> None:
        """Draw what is live again with the next frame."""

    async def caught_up(self) -> None:
        """Let keys be taken, and wait while more is shown than the terminal takes."""


def say(scrollback: Scrollback, text: str, role: Role | None = None) -> None:
    """Show text of any origin: harmless, wrapped, and in the colour of its role."""
    rows = plain_rows(text, max(scrollback.width, LEAST_WIDTH))
    scrollback.show(*(scrollback.theme.paint(role, row) for row in rows) if role else rows)
