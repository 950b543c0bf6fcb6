"""A list to choose from can be read in a narrow terminal, too."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import strip_sequences

from panpan.faces.terminal.rendering.cells import ListRow, ListRows
from panpan.faces.terminal.screen.theme import Theme
from panpan.system.text.cell_width import cell_width

MODELS = [
    ListRow("anthropic/claude-sonnet-5-5", "sonnet; 1,000,000 tokens; $2 in, $10 out"),
    ListRow("openai/gpt-6", "400,000 tokens; $1 in, $8 out"),
]


def rows_at(width: int, listed: list[ListRow], selected: int = 0) -> list[str]:
    drawing = ListRows(listed, width, Theme("dark"))
    rows = [drawing.row(row, is_selected=at == selected) for at, row in enumerate(listed)]
    return [*rows, *drawing.detail_rows(listed[selected])]


@pytest.mark.parametrize("width", [80, 200])
def test_list_columns_stand_side_by_side_if_there_is_room(width: int) -> None:
    rows = [strip_sequences(row) for row in rows_at(width, MODELS)]

    assert len(rows) == 2
    assert rows[0].startswith("❯ anthropic/claude-sonnet-5-5  sonnet; 1,000,000 tokens; $2 in, $10 out")
    assert rows[1].startswith("  openai/gpt-6                 400,000 tokens")


def test_narrow_list_keeps_names_whole_and_details_below() -> None:
    rows = [strip_sequences(row) for row in rows_at(40, MODELS, selected=1)]

    assert rows[:2] == ["  anthropic/claude-sonnet-5-5", "❯ openai/gpt-6"]
    assert " ".join(" ".join(rows[2:]).split()) == "400,000 tokens; $1 in, $8 out"


@given(
    st.lists(
        st.builds(ListRow, st.text("ab界 é", max_size=60), st.text("ab界 é", max_size=200)), min_size=1, max_size=9
    ),
    st.integers(16, 200),
)
def test_list_rows_fit_the_terminal(listed: list[ListRow], width: int) -> None:
    assert all(cell_width(row) <= width for row in rows_at(width, listed))
