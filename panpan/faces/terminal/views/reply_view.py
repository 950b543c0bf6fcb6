"""Shows an arriving reply: finished paragraphs go into the scrollback, the rest is live."""

from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from panpan.faces.terminal.rendering.cells import Canvas, cut, wrap_text
from panpan.faces.terminal.rendering.markdown import CleanStream
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.terminal.views.transcript import Transcript
from panpan.faces.turn_text import UnseenTextTracker
from panpan.system.text.cell_width import cell_width
from panpan.system.text.terminal_text import spoken_s
from panpan.types.events import BlockFinished, BlockStarted, Event, RetryScheduled, TextDelta, ThinkingDelta
from panpan.types.messages import AssistantMessage

if TYPE_CHECKING:
    from panpan.faces.terminal.rendering.markdown import MarkdownStream


MAX_LIVE_ROWS = 20
_LAST_CHARS = 4_000
"""Most characters of an arriving thought that are laid out."""
_LEAST_S = 0.1
"""Shortest duration that is shown; a thought that came whole took less."""
_INDENT = "  "
_TAB = 4


class Thinking:
    """An arriving block of thinking."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._began_s = clock()
        self._clean = CleanStream()
        self._parts: list[str] = []
        self._last = ""
        self.heading = "∴ thinking"
        """Heading of the block; at its end it includes the duration."""

    @property
    def text(self) -> str:
        return "".join(self._parts).strip()

    def feed(self, text: str) -> None:
        self._add(self._clean.feed(text))

    def live_lines(self, width: int, theme: Theme, *, is_expanded: bool) -> list[str]:
        """Return one row with the last words; expanded, the last rows of the text below it."""
        begin = self.heading
        if is_expanded:
            return [_row(begin, width, theme), *_text_rows(self._last, width, theme)[-MAX_LIVE_ROWS:]]
        words = _last_words(self._last, width - cell_width(begin) - 3)
        return [_row(f"{begin} … {words}" if words else begin, width, theme)]

    def final_lines(self, width: int, theme: Theme, *, is_expanded: bool) -> list[str]:
        """End the block and return a row with its duration; expanded, the whole text below it."""
        self._add(self._clean.finish())
        took_s = self._clock() - self._began_s
        self.heading = "∴ thought" if took_s < _LEAST_S else f"∴ thought for {spoken_s(took_s)}"
        row = _row(self.heading, width, theme)
        return [row, *(_text_rows(self.text, width, theme) if is_expanded else ())]

    def _add(self, text: str) -> None:
        self._parts.append(text)
        self._last = (self._last + text)[-_LAST_CHARS:]


def _row(text: str, width: int, theme: Theme) -> str:
    return theme.paint("dim", cut(text, width))


def _text_rows(text: str, width: int, theme: Theme) -> list[str]:
    if not text.strip():
        return []
    rows = wrap_text(text.strip().expandtabs(_TAB), width - len(_INDENT))
    return [theme.paint("dim", f"{_INDENT}{row}") if row else "" for row in rows]


def _last_words(text: str, width: int) -> str:
    said = ""
    for word in reversed(text.split()):
        longer = f"{word} {said}" if said else word
        if cell_width(longer) > width:
            break
        said = longer
    return said


class ReplyView:
    """Shows the replies of a turn, one after the other; the transcript keeps interrupted thoughts.

    `holds` takes the rows of a thought, and returns True if it shows them itself.
    """

    def __init__(
        self,
        canvas: Canvas,
        transcript: Transcript,
        holds: Callable[[Sequence[str]], bool] = lambda rows: False,
    ) -> None:
        self._canvas = canvas
        self._holds = holds
        self._transcript = transcript
        self._fresh = UnseenTextTracker()
        self._text: MarkdownStream | None = None
        self._thinking: Thinking | None = None
        self._is_expanded = False

    def expand(self, *, is_on: bool) -> None:
        """Show the whole thinking, or its last words."""
        self._is_expanded = is_on

    @property
    def is_thinking(self) -> bool:
        return self._thinking is not None

    def follow(self, event: Event) -> None:
        """Show an event of the reply."""
        match event:
            case TextDelta(text=text):
                self._add(text)
            case BlockStarted(kind="thinking"):
                self._thinking = Thinking()
            case ThinkingDelta(text=text) if self._thinking is not None:
                self._thinking.feed(text)
                self._canvas.refresh()
            case BlockFinished():
                self._end_thinking(is_cut_short=False)
                if not self._fresh.may_go_on:
                    self._end_text()
            case RetryScheduled():
                self._end_thinking(is_cut_short=True)
                self._fresh.failed()
            case AssistantMessage():
                self._fresh.is_whole()
                if not event.is_to_be_continued:
                    self._end_text()
            case _:
                pass

    def live_lines(self, width: int) -> Sequence[str]:
        if self._thinking is not None:
            return self._thinking.live_lines(width, self._canvas.theme, is_expanded=self._is_expanded)
        return () if self._text is None else self._text.tail()

    def end(self) -> None:
        """End the turn: the text so far becomes final."""
        self._fresh.is_whole()
        self._end_thinking(is_cut_short=True)
        self._end_text()

    def _add(self, text: str) -> None:
        fresh = self._fresh.add(text)
        if fresh.is_other:
            self._end_text()
        if not fresh.text:
            return
        if self._text is None:
            from panpan.faces.terminal.rendering.markdown import MarkdownStream  # the first screen does not need it

            self._text = MarkdownStream(self._canvas.width, self._canvas.theme, breaks_code=False)
            self._canvas.show("")
        self._text.resize(self._canvas.width)
        self._canvas.show(*self._text.feed(fresh.text))
        self._canvas.refresh()

    def _end_text(self) -> None:
        if self._text is not None:
            self._canvas.show(*self._text.finish())
            self._text = None

    def _end_thinking(self, *, is_cut_short: bool) -> None:
        if self._thinking is not None:
            theme, width = self._canvas.theme, self._canvas.width
            rows = self._thinking.final_lines(width, theme, is_expanded=self._is_expanded)
            if not self._holds(rows):
                self._canvas.show(*rows)
            if is_cut_short and (text := self._thinking.text):
                self._transcript.keep_cut_short(self._thinking.heading, text)
            self._thinking = None
