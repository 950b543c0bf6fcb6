"""Writing the text of replies as it arrives, each on lines of its own, and once even where a reply comes again.

A reply that failed half-way starts again from its beginning; what the new one has in common with what the reader knows
is not written twice.
"""

from panpan.system.terminal_text import clean_for_terminal
from panpan.ui.stdout import StdoutWriter


class AnswerText:
    """Writes replies to standard output; on a terminal without what could drive it.

    Args:
        out: Standard output.
    """

    def __init__(self, out: StdoutWriter) -> None:
        self._out = out
        self._said = ""
        """What the reply that is arriving has said so far."""
        self._known = ""
        """What a try that failed has said and the new one has not reached yet."""
        self._ends_line = True

    async def add(self, text: str) -> None:
        """Write what of a delta the reader does not know."""
        self._said += text
        if self._known:
            same = _common_length(self._known, text)
            if same < min(len(text), len(self._known)):  # the new try says something else
                self._known = ""
                await self.end_line()
                text = self._said
            else:
                self._known, text = self._known[same:], text[same:]
        if text:
            self._ends_line = text.endswith("\n")
            await self._out.write(clean_for_terminal(text) if self._out.is_terminal else text)

    def retry(self) -> None:
        """The reply failed and comes again."""
        self._known, self._said = self._said + self._known, ""

    def end(self) -> None:
        """The reply is whole, or will not come again."""
        self._said = self._known = ""

    async def end_line(self) -> None:
        """Put what comes next on a line of its own; not while a reply that failed may still be continued."""
        if not self._ends_line and not self._known:
            self._ends_line = True
            await self._out.write("\n")


def _common_length(one: str, other: str) -> int:
    for index, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return index
    return min(len(one), len(other))
