"""Writing the text of replies as it arrives, each on lines of its own, and once even where a reply comes again.

A reply that failed half-way starts again from its beginning; what the new one has in common with what the reader knows
is not written twice. A reply that was cut at its end goes on in the next one, on the same line.
"""

from panpan.cli_kit.stdout import StdoutWriter
from panpan.system.text.terminal_text import clean_for_terminal, without_controls
from panpan.types.dataclass import dataclass
from panpan.types.events import BlockStarted, Event, ReplyStarted, RetryScheduled, TextDelta
from panpan.types.messages import AssistantMessage

# What of a reply's text the reader does not know yet.
#
# A reply that failed half-way starts again from its beginning, and mostly says the same. What the new one has in
# common with what was shown is not shown twice; where it says something else, it is shown from its beginning.


@dataclass(frozen=True, slots=True)
class Fresh:
    """What a delta adds."""

    text: str
    is_other: bool = False
    """Whether the text does not go on where the shown one stopped, and stands for itself."""


class FreshText:
    """Follows the text of one reply over all its tries."""

    def __init__(self) -> None:
        self._said: list[str] = []
        """What the try that is arriving has said."""
        self._known = ""
        """What a try that failed has said and the new one had not when it began."""
        self._reached = 0
        """How many characters of that the new one has said by now."""

    @property
    def may_go_on(self) -> bool:
        """Whether a try that failed was shown and the new one has not passed it."""
        return self._reached < len(self._known)

    def add(self, text: str) -> Fresh:
        """Return what of a delta is new."""
        self._said.append(text)
        if not self.may_go_on:
            return Fresh(text)
        known = self._known[self._reached : self._reached + len(text)]
        if text[: len(known)] != known:
            self._known, self._reached = "", 0
            return Fresh("".join(self._said), is_other=True)
        self._reached += len(known)
        return Fresh(text[len(known) :])

    def failed(self) -> None:
        """The try is void, and another one comes."""
        self._known, self._reached = "".join(self._said) + self._known[self._reached :], 0
        self._said.clear()

    def is_whole(self) -> None:
        """The reply has come, or comes no more."""
        self._said.clear()
        self._known, self._reached = "", 0


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


def note_on_end(reply: AssistantMessage) -> str | None:
    """Return what a user should know about the reply that ended a turn, as one line; None where there is nothing."""
    if reply.stop_reason == "max_tokens" and not reply.tool_uses:
        return "the answer is cut off: the model reached the limit on the length of its replies"
    return None
