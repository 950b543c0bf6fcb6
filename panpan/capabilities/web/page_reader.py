"""What WebFetch needs of a small model: an answer from a page."""

from typing import Protocol


class PageReader(Protocol):
    """Answers questions from the text of pages."""

    most_chars: int
    """Of a page that it is given at once."""

    async def answer(self, prompt: str, page_text: str) -> str:
        """Return what the page says to a question.

        Args:
            prompt: What is wanted.
            page_text: What the page says, marked as what it is.

        Raises:
            ToolError: Nobody could answer; half a sentence that says why.
        """
        ...
