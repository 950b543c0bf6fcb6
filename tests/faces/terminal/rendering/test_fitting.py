"""Parts of a row stand there whole, the most important first."""

from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.rendering.cells import fit_parts
from panpan.system.text.cell_width import cell_width

KEYS = (("space chooses", 1), ("enter goes on", 2), ("esc declines", 0))


def test_parts_are_all_shown_if_they_fit() -> None:
    assert fit_parts(KEYS, 80, ", ") == "space chooses, enter goes on, esc declines"


def test_least_important_part_is_left_out_whole_in_order() -> None:
    assert fit_parts(KEYS, 38, ", ") == "space chooses, esc declines"
    assert fit_parts(KEYS, 20, ", ") == "esc declines"
    assert fit_parts(KEYS, 5, ", ") == ""


@given(st.lists(st.tuples(st.text("ab é日👍", min_size=1), st.integers(0, 9))), st.integers(0, 60))
def test_fitted_row_shows_the_most_important_if_possible(parts: list[tuple[str, int]], width: int) -> None:
    row = fit_parts(parts, width, " · ")

    assert cell_width(row) <= width
    if parts:
        first = min(parts, key=lambda part: part[1])
        assert first[0] in row or cell_width(first[0]) > width
