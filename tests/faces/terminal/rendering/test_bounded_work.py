"""The work for a piece of a text is bounded, whatever the text, and does not grow with what came before it.

Work is counted in calls of functions: that is the same on every machine.
"""

import sys
from _lsprof import Profiler
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from panpan.faces.terminal.rendering.markdown import CleanStream, MarkdownStream
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.terminal.views.turn_view import PIECE_CHARS

PIECES = 12
CALLS_A_CHAR = 400
"""Cost for the dearest characters, which are spelled out: half of that."""
CALLS_A_CHAR_OF_CODE = 1_000
"""With each 16 lines, a lexer reads up to 3,000 characters again."""

BEGIN_AND_MORE = {
    "brackets": ("", "["),
    "pictures": ("", "!["),
    "links that do not end": ("", "[]("),
    "links": ("", "[a](b) "),
    "stars": ("", "**a*b_c "),
    "entities": ("", "&#x41;"),
    "tags": ("", "<a "),
    "wide characters": ("", "漢"),
    "from right to left": ("", "ש"),
    "joined emoji": ("", "👩\u200d"),
    "marks on a letter": ("e", "\u0301"),
    "bidi controls": ("", "\u202e"),
    "one word": ("", "a"),
    "blank lines": ("", "\n"),
    "quotations in quotations": ("", "> " * 20 + "a\n"),
    "lists in lists": ("", "- "),
    "a quotation that goes on without its mark": ("> a\n", "b\n"),
    "an HTML block": ("<div>\n", "a\n"),
    "a long table": ("|a|b|\n|-|-|\n", "|c|d|\n"),
    "a wide table": ("|a|b|\n|-|-|\n", "|c"),
    "headings": ("", "# a\n"),
    "lines below which is a rule": ("", "a\n="),
    "a fence": ("```\n", "a\n"),
    "a fence in a language": ("```js\n", "(/"),
    "a text in code": ('```py\n"""\n', "a b\n"),
    "sequences": ("", "\x1b["),
    "a sequence that does not end": ("\x1b[", "1"),
    "a title that does not end": ("\x1b]0;", "a"),
}


def work_of(run: Callable[[], object]) -> int:
    """Return how many functions are called, those of extensions included."""
    profiler = Profiler()  # which counts ten times as quickly as a function of Python's would
    profiler.enable(subcalls=False, builtins=True)
    try:
        run()
    finally:
        profiler.disable()
    return sum(entry.callcount for entry in profiler.getstats())


def pieces_of(begin: str, more: str) -> list[str]:
    size = PIECES * PIECE_CHARS
    text = (begin + more * (size // len(more)))[:size]
    return [text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS)]


@pytest.mark.parametrize(("begin", "more"), BEGIN_AND_MORE.values(), ids=BEGIN_AND_MORE)
def test_frame_costs_the_same_late_as_early(begin: str, more: str) -> None:
    pieces = pieces_of(begin, more)
    MarkdownStream(80, Theme("dark")).feed(pieces[0])  # imports what the text needs
    stream = MarkdownStream(80, Theme("dark"))

    work = [work_of(lambda piece=piece: (stream.feed(piece), stream.tail())) for piece in pieces]

    early, late = max(work[: PIECES // 2]), max(work[PIECES // 2 :])
    assert late <= 1.5 * early
    assert max(work) <= (CALLS_A_CHAR_OF_CODE if "```" in begin else CALLS_A_CHAR) * PIECE_CHARS


def test_tail_that_did_not_change_costs_nothing() -> None:
    stream = MarkdownStream(80, Theme("dark"))
    stream.feed("word " * 500)

    first, second = work_of(stream.tail), work_of(stream.tail)

    assert second < 10 < first


@pytest.mark.parametrize("begin", ["\x1b[1", "\x9b1", "\x1b]0;1", "\x1bP1", "\x1b#", "\x1b[1 "])
def test_endless_sequence_is_not_read_again_with_every_piece(begin: str) -> None:
    stream = CleanStream()
    more = " " if begin[-1] in "# " else "1"
    stream.feed(begin)
    searched = []

    def note(frame: FrameType, event: str, arg: Any) -> None:
        if event == "c_call" and arg.__name__ == "search":
            searched.append(arg)

    sys.setprofile(note)
    try:
        for _ in range(100):
            stream.feed(more)
    finally:
        sys.setprofile(None)

    assert searched == []
