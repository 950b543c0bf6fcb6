"""What is shown only in part, whole for the pager: what tools printed, and what the model thought."""

from collections.abc import Sequence
from dataclasses import dataclass

from panpan.ui.repl.theme import Theme

MAX_PAGES = 50
"""Older ones are in the log."""


@dataclass(frozen=True, slots=True)
class _Page:
    heading: str
    text: str
    is_thought: bool


class Pages:
    """The newest pages of a session."""

    def __init__(self) -> None:
        self._pages: list[_Page] = []

    def add(self, heading: str, text: str, *, is_thought: bool = False) -> None:
        """Add a page behind the others.

        Args:
            heading: One line that cannot drive the terminal, as the text cannot.
            text: The whole of it.
            is_thought: Whether the model thought it, and no tool printed it.
        """
        self._pages = [*self._pages[1 - MAX_PAGES :], _Page(heading, text, is_thought)]

    def rows(self, theme: Theme) -> Sequence[str]:
        """Return all of it, the newest last; nothing where there is none."""
        rows: list[str] = []
        for page in self._pages:
            rows += (theme.paint("strong", page.heading), *page.text.split("\n"), "")
        if rows and all(page.is_thought for page in self._pages):
            rows.append(theme.paint("dim", "(this is what the model thought; no tool has printed anything)"))
        return rows
