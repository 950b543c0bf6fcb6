"""The checklist above the input: the row that matters is in it, however long the list, and the rest is counted."""

from hypothesis import example, given
from hypothesis import strategies as st

from panpan.faces.terminal.rendering.displays import short_checklist_lines
from panpan.faces.terminal.screen.theme import Theme
from panpan.system.text.cell_width import cell_width
from panpan.types.content import ChecklistItem

PLAIN = Theme("plain", has_sequences=False)


def todos(done: int, doing: bool, left: int) -> list[ChecklistItem]:
    begun = [ChecklistItem(content="now", active_form="doing", status="in_progress")] if doing else []
    return [
        *(ChecklistItem(content=f"did {number}", active_form="", status="completed") for number in range(done)),
        *begun,
        *(ChecklistItem(content=f"do {number}", active_form="") for number in range(left)),
    ]


def test_short_list_is_shown_whole() -> None:
    assert short_checklist_lines(todos(1, True, 1), 8, 40, PLAIN) == ["☑ did 0", "◐ doing", "☐ do 0"]


def test_long_checklist_shows_the_current_item_in_context() -> None:
    assert short_checklist_lines(todos(10, True, 10), 5, 40, PLAIN) == [
        "☑ did 9",
        "◐ doing",
        "☐ do 0",
        "☐ do 1",
        "… and 9 done, 8 to do",
    ]


@given(st.integers(0, 30), st.booleans(), st.integers(0, 30), st.integers(1, 10), st.integers(4, 80))
@example(1, True, 1, 2, 80)
def test_checklist_keeps_to_its_rows_and_shows_the_current_item(
    done: int, doing: bool, left: int, most: int, width: int
) -> None:
    rows = short_checklist_lines(todos(done, doing, left), most, width, PLAIN)

    assert len(rows) <= most
    assert all(cell_width(row) <= width for row in rows)
    assert not doing or most == 1 or any(row.startswith("◐") for row in rows)


@given(st.integers(0, 30), st.booleans(), st.integers(0, 30), st.integers(2, 10))
def test_hidden_items_are_counted(done: int, doing: bool, left: int, most: int) -> None:
    rows = short_checklist_lines(todos(done, doing, left), most, 80, PLAIN)
    counted = [int(word) for row in rows if row.startswith("…") for word in row.split() if word.isdigit()]

    assert len([row for row in rows if not row.startswith("…")]) + sum(counted) == done + doing + left
