"""Thinking is one row, and whole for those who want it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.terminal.views.reply_view import Thinking
from tests.faces.terminal.rendering.looks import NASTY, check

PLAIN = Theme("plain", has_sequences=False)


class Clock:
    def __init__(self) -> None:
        self.now_s = 5.0

    def __call__(self) -> float:
        return self.now_s


def test_live_thinking_shows_its_last_words() -> None:
    thinking = Thinking(Clock())
    assert thinking.live_lines(40, PLAIN, is_expanded=False) == ["∴ thinking"]

    thinking.feed("first I look at the file, then at")
    thinking.feed(" the tests")

    assert thinking.live_lines(40, PLAIN, is_expanded=False) == ["∴ thinking … the file, then at the tests"]


def test_finished_thinking_says_how_long_it_took() -> None:
    clock = Clock()
    thinking = Thinking(clock)
    thinking.feed("a\n\nb")
    clock.now_s = 17.0

    assert thinking.final_lines(40, PLAIN, is_expanded=False) == ["∴ thought for 12 s"]
    assert thinking.final_lines(40, PLAIN, is_expanded=True) == ["∴ thought for 12 s", "  a", "", "  b"]


@pytest.mark.parametrize(("took_s", "said"), [(0.0, "∴ thought"), (0.09, "∴ thought"), (0.125, "∴ thought for 0.1 s")])
def test_thought_that_took_no_time_has_none(took_s: float, said: str) -> None:
    clock = Clock()
    thinking = Thinking(clock)
    thinking.feed("a")
    clock.now_s += took_s

    assert thinking.final_lines(40, PLAIN, is_expanded=False) == [said]
    assert thinking.final_lines(40, PLAIN, is_expanded=True) == [said, "  a"]


@given(st.lists(NASTY, max_size=5), st.integers(8, 80), st.booleans())
def test_rows_fit_and_drive_nothing(pieces: list[str], width: int, is_expanded: bool) -> None:
    thinking = Thinking()
    for piece in pieces:
        thinking.feed(piece)
        check(thinking.live_lines(width, Theme("dark"), is_expanded=is_expanded), width)
    check(thinking.final_lines(width, Theme("dark"), is_expanded=is_expanded), width)


def test_finished_thinking_keeps_its_whole_text() -> None:
    clock = Clock()
    thinking = Thinking(clock)
    thinking.feed("\nbe\x1b[2Jfore\n")
    thinking.feed("after")
    clock.now_s += 12
    thinking.final_lines(40, PLAIN, is_expanded=False)

    assert thinking.heading == "∴ thought for 12 s"
    assert thinking.text.startswith("be")
    assert thinking.text.endswith("fore\nafter")
    assert "\x1b" not in thinking.text
