"""A search for a word, which a tool that renames needs after its work."""

from abc import ABC, abstractmethod

from panpan.core.tool import ToolContext


class WordSearch(ABC):
    """Finds where a word stands in the working directory, as far as the model may see it."""

    @abstractmethod
    async def lines_with(self, word: str, ctx: ToolContext, *, limit: int) -> str:
        """Return lines with the word, each with its place; empty where there is none.

        Args:
            word: Letters, digits and underscores; found as a whole word.
            ctx: Of the call.
            limit: Most lines, at least 1.

        Raises:
            ToolError: The search failed.
        """
