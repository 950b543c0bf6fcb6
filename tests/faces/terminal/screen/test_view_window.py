"""Rows in a window: the last ones where there is no room for all, and the caret where it belongs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.layout import UIContent

from panpan.faces.terminal.screen.windows import Caret, ViewWindow


def drawn(rows: list[str], *, room: int = 10, caret: Caret | None = None) -> tuple[ViewWindow, UIContent | None]:
    """Draw rows as the screen does; no content where the window is not there at all."""
    view = ViewWindow(lambda width: rows, lambda: (40, room), lambda: caret)
    if not view.container.filter():
        return view, None
    return view, view.window.content.create_content(width=40, height=None)


def shown(content: UIContent | None) -> list[str]:
    if content is None:
        return []
    return ["".join(text for _, text, *_ in content.get_line(at)).rstrip() for at in range(content.line_count)]


@given(st.lists(st.sampled_from(["one", "two", "\x1b[31mred\x1b[0m", "日本"]), max_size=12), st.integers(1, 8))
def test_view_is_as_high_as_its_rows_and_shows_the_last(rows: list[str], room: int) -> None:
    view, content = drawn(rows, room=room)

    plain = [row.replace("\x1b[31m", "").replace("\x1b[0m", "") for row in rows]
    assert shown(content) == plain[-room:]
    assert view.is_whole is (len(rows) <= room)


@pytest.mark.parametrize(
    ("row", "cell", "character"),
    [
        ("abc", 0, 0),
        ("abc", 3, 3),
        ("日本x", 2, 1),
        ("日本x", 5, 3),
        ("\x1b[36m❯\x1b[0m 日x", 4, 3),
        ("e\u0301x", 2, 3),
    ],
)
def test_caret_is_counted_in_characters_from_cells(row: str, cell: int, character: int) -> None:
    _, content = drawn(["first", row], caret=(1, cell))

    assert content is not None
    assert content.cursor_position is not None
    assert (content.cursor_position.y, content.cursor_position.x) == (1, character)


@pytest.mark.parametrize("caret", [None, (0, 1), (7, 0)])
def test_caret_in_a_row_that_is_not_shown_is_none(caret: Caret | None) -> None:
    rows = ["one", "two", "three"]

    _, content = drawn(rows, room=2, caret=caret)
    _, with_caret = drawn(rows, room=2, caret=(1, 1))

    assert content is not None
    assert with_caret is not None
    assert content.cursor_position is None or (content.cursor_position.x, content.cursor_position.y) == (0, 0)
    assert with_caret.cursor_position is not None
    assert (with_caret.cursor_position.x, with_caret.cursor_position.y) == (1, 0)


def test_rows_are_asked_for_once_each_time_it_is_drawn() -> None:
    widths: list[int] = []

    def rows(width: int) -> list[str]:
        widths.append(width)
        return ["one"]

    view = ViewWindow(rows, lambda: (40, 5))
    for _ in range(2):
        view.container.filter()
        view.window.content.create_content(width=40, height=None)
        view.window.preferred_height(40, 5)

    assert widths == [40, 40]
