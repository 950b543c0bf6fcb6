"""Writing the text of replies as it arrives, each on lines of its own, and once even where a reply comes again.

A reply that failed half-way starts again from its beginning; what the new one has in common with what the reader knows
is not written twice. A reply that was cut at its end goes on in the next one, on the same line.
"""

from panpan.cli_kit.stdout import StdoutWriter
from panpan.faces.fresh_text import FreshText
from panpan.system.text.terminal_text import clean_for_terminal, without_controls
from panpan.types.events import BlockStarted, Event, ReplyStarted, RetryScheduled, TextDelta
from panpan.types.messages import AssistantMessage


class AnswerText:
    """Writes replies to standard output, without what could drive a terminal.

    Args:
        out: Standard output.
    """

    def __init__(self, out: StdoutWriter) -> None:
        self._out = out
        self._fresh = FreshText()
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
                self._fresh.failed()
            case AssistantMessage():
                self._fresh.is_whole()
                self._is_cut = event.is_to_be_continued
            case _:
                pass

    async def add_whole(self, text: str) -> None:
        """Write a text that comes at once, on lines of its own."""
        await self.break_line()
        await self._out.write(f"{self._cleaned(text)}\n")

    async def end(self) -> None:
        """The turn is over: no reply is continued, and what comes next stands on a line of its own."""
        self._fresh.is_whole()
        self._is_cut = False
        await self.break_line()

    async def end_line(self) -> None:
        """Put what comes next on a line of its own; not while a reply that failed or was cut may go on."""
        if not self._fresh.may_go_on and not self._is_cut:
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
        fresh = self._fresh.add(text)
        if fresh.is_other:
            await self.end_line()
        if fresh.text:
            self._is_cut = False
            self._ends_line = fresh.text.endswith("\n")
            await self._out.write(self._cleaned(fresh.text))

    def _cleaned(self, text: str) -> str:
        """Return the text without escape sequences: a pipe may lead to a terminal, and a file be shown on one."""
        return clean_for_terminal(text) if self._out.is_terminal else without_controls(text)
