"""Writing the text of replies as it arrives, each on lines of its own, and once even where a reply comes again.

A reply that failed half-way starts again from its beginning; what the new one has in common with what the reader knows
is not written twice. A reply that was cut at its end goes on in the next one, on the same line.
"""

from panpan.system.terminal_text import clean_for_terminal
from panpan.types.events import BlockStarted, Event, ReplyStarted, RetryScheduled, TextDelta
from panpan.types.messages import AssistantMessage
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
        self._is_cut = False
        """Whether the next text goes on where the last one stopped."""
        self._ends_line = True

    async def follow(self, event: Event) -> None:
        """Write what `event` adds to the answer; most events add nothing."""
        match event:
            case ReplyStarted() | BlockStarted(kind="text"):
                await self.end_line()
            case TextDelta(text=text):
                await self._add(text)
            case RetryScheduled():
                self._known, self._said = self._said + self._known, ""
            case AssistantMessage():
                self._said = self._known = ""
                self._is_cut = event.is_to_be_continued
            case _:
                pass

    async def end(self) -> None:
        """The turn is over: no reply is continued, and what comes next stands on a line of its own."""
        self._said = self._known = ""
        self._is_cut = False
        await self.break_line()

    async def end_line(self) -> None:
        """Put what comes next on a line of its own; not while a reply that failed or was cut may go on."""
        if not self._known and not self._is_cut:
            await self.break_line()

    async def break_line(self) -> None:
        """Put what comes next on a line of its own, whatever it is."""
        if not self._ends_line:
            self._ends_line = True
            await self._out.write("\n")

    async def make_room(self) -> None:
        """Let a note stand on a line of its own; where no person reads along, an answer that goes on stays whole."""
        await (self.break_line() if self._out.is_terminal else self.end_line())

    async def _add(self, text: str) -> None:
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
            self._is_cut = False
            self._ends_line = text.endswith("\n")
            await self._out.write(clean_for_terminal(text) if self._out.is_terminal else text)


def _common_length(one: str, other: str) -> int:
    for index, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return index
    return min(len(one), len(other))
