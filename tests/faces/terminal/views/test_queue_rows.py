"""Waiting prompts have a row each, fit, and cannot drive the terminal."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from panpan.faces.terminal.prompt_queue import Waiting
from panpan.faces.terminal.screen.footer import queue_rows
from panpan.faces.terminal.screen.theme import Theme

BARE = Theme("plain", has_sequences=False)


def test_empty_queue_has_no_row():
    assert queue_rows([], 80, BARE) == ()


def test_queue_row_says_when_its_prompt_runs():
    rows = queue_rows([Waiting("next round", "do it\nwell"), Waiting("after the command", "!make")], 80, BARE)
    assert rows == ["  ↳ next round: do it", "  ↳ after the command: !make", "  alt+up takes the last one back"]


def test_queue_rows_count_prompts_beyond_the_limit():
    rows = queue_rows([Waiting("next round", str(number)) for number in range(8)], 80, BARE)
    assert len(rows) == 7
    assert rows[-2].strip() == "… and 3 more"


@given(text=st.text(), width=st.integers(10, 100))
def test_queue_row_fits_and_has_no_control_characters(text, width):
    for row in queue_rows([Waiting("after the turn", text)], width, BARE):
        assert get_cwidth(row) <= width
        assert not any(unicodedata.category(char) == "Cc" for char in row)
