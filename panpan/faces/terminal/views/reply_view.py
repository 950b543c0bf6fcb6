"""Shows a reply while it arrives: finished paragraphs go into the scrollback, the rest is live."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from panpan.faces.fresh_text import FreshText
from panpan.faces.terminal.rendering.thinking import Thinking
from panpan.faces.terminal.screen.canvas import Canvas
from panpan.faces.terminal.views.transcript import Transcript
from panpan.types.events import BlockFinished, BlockStarted, Event, RetryScheduled, TextDelta, ThinkingDelta
from panpan.types.messages import AssistantMessage

if TYPE_CHECKING:
    from panpan.faces.terminal.rendering.markdown_stream import MarkdownStream


class ReplyView:
    """Follows the replies of a turn, one after the other.

    Args:
        canvas: Where they are shown.
        transcript: Keeps a thought that was cut short.
    """

    def __init__(self, canvas: Canvas, transcript: Transcript) -> None:
        self._canvas = canvas
        self._transcript = transcript
        self._fresh = FreshText()
        self._text: MarkdownStream | None = None
        self._thinking: Thinking | None = None
        self.is_expanded = False
        """Whether thinking is shown whole."""

    @property
    def is_thinking(self) -> bool:
        """Whether the model thinks at the moment."""
        return self._thinking is not None

    def follow(self, event: Event) -> None:
        """Show what `event` adds."""
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
        """Return the rows that may still change."""
        if self._thinking is not None:
            return self._thinking.live_lines(width, self._canvas.theme, is_expanded=self.is_expanded)
        return () if self._text is None else self._text.tail()

    def end(self) -> None:
        """The turn is over, in whatever way: what there is becomes final."""
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
            from panpan.faces.terminal.rendering.markdown_stream import (
                MarkdownStream,  # not needed to take the first key
            )

            self._text = MarkdownStream(self._canvas.width, self._canvas.theme)
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
            self._canvas.show(*self._thinking.final_lines(width, theme, is_expanded=self.is_expanded))
            if is_cut_short and (text := self._thinking.text):
                self._transcript.keep_cut_short(self._thinking.heading, text)
            self._thinking = None
