"""The search for a word, by Grep: what Grep may not show is not shown here either."""

from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

from panpan.capabilities.search.grep import NO_MATCHES, GrepInput, GrepTool
from panpan.core.tool import ToolContext
from panpan.editing.rename_plan import WordSearch
from panpan.types.display import SummaryDisplay
from panpan.types.tool import Output


class GrepWords(WordSearch):
    """Finds words with Grep.

    Args:
        withholds: As in `GrepTool`.
    """

    def __init__(self, withholds: Callable[[Path, Path], bool]) -> None:
        self._grep = GrepTool(withholds=withholds)

    async def lines_with(self, word: str, ctx: ToolContext, *, limit: int) -> str:
        look = GrepInput(pattern=rf"\b{word}\b", output_mode="content", head_limit=limit)
        async with aclosing(self._grep.run(look, ctx)) as outputs:
            async for found in outputs:
                if isinstance(found, Output) and found.display != SummaryDisplay(text=NO_MATCHES):
                    return found.text
        return ""
