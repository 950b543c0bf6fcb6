"""Rows added when a terminal becomes narrower."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.screen.terminal_app import DrawnFrame, reflows


@pytest.mark.parametrize(
    ("columns", "more"),
    [(100, 0), (120, 0), (60, 1 + 0 + 0 + 0), (50, 1 + 1 + 0 + 0), (10, 9 + 5 + 0 + 1)],
)
def test_rows_that_are_too_long_are_broken(columns, more):
    assert DrawnFrame(100, [100, 60, 0], 12).rows_more(columns) == more


@given(st.lists(st.integers(0, 300)), st.integers(0, 300), st.integers(1, 300))
def test_rows_more_equal_real_wrapping(row_cells, caret, columns):
    wrapped = sum(max(-(-cells // columns), 1) for cells in row_cells) - len(row_cells)
    assert DrawnFrame(301, row_cells, caret).rows_more(columns) == wrapped + caret // columns


@pytest.mark.parametrize("env", [{"TMUX": "/tmp/x,1,0"}, {"TERM_PROGRAM": "iTerm.app"}, {"VTE_VERSION": "7000"}])
def test_known_terminals_reflow(env):
    assert reflows(env)


@pytest.mark.parametrize("env", [{}, {"TERM": "xterm"}, {"TERM_PROGRAM": "something"}, {"TMUX": ""}])
def test_unknown_terminals_do_not_reflow(env):
    assert not reflows(env)
