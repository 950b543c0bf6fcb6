"""Two columns fit the terminal, beside each other where there is room."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.rendering.cells import LEAST_WIDTH
from panpan.faces.terminal.rendering.displays import display_rows
from panpan.faces.terminal.screen.theme import Theme
from panpan.types.content import table
from tests.faces.terminal.rendering.looks import NASTY, check, shown


def columns(pairs: list[tuple[str, str]], width: int) -> list[str]:
    return display_rows(table(pairs), max(width, LEAST_WIDTH), Theme("dark"))


@given(st.lists(st.tuples(NASTY, NASTY), max_size=4), st.integers(1, 120))
def test_rows_fit_and_drive_nothing(pairs: list[tuple[str, str]], width: int) -> None:
    check(columns(pairs, width), max(width, LEAST_WIDTH))


def test_second_column_begins_at_one_cell_for_any_names() -> None:
    rows = columns([("a", "one"), ("日本", "two"), ("❤\ufe0f", "")], 60)

    assert shown(rows) == ["  a     one", "  日本  two", "  ❤\ufe0f"]


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (36, ["  name    the quick brown fox jumps", "          over it"]),
        (20, ["  name", "    the quick brown", "    fox jumps over", "    it"]),
    ],
)
def test_second_column_stands_below_the_first_without_room(width: int, expected: list[str]) -> None:
    rows = columns([("name", "the quick brown fox jumps over it"), ("a name", "")], width)

    assert shown(rows)[: len(expected)] == expected
