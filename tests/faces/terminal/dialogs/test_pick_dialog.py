"""Picking from a list: it scrolls, narrows while one types, and is left without a choice."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.dialogs.pick import MOST_ROWS, NothingPicked, PickDialog
from panpan.faces.terminal.screen.theme import Theme
from panpan.session.command import Option, number_options
from tests.faces.terminal.dialogs.drawn import (
    keys,
    pastes,
    press_all,
    rows_of,
    texts,
    themes,
    typed,
    unchanged_by,
    widths,
)

FRUIT = [Option("apple", "red"), Option("Pear", "green", is_current=True), Option("plum", "blue"), Option("grape")]
MANY = [Option(f"item {n}") for n in range(50)]


def after(options: Sequence[Option], *pressed: str) -> PickDialog:
    dialog = PickDialog("Which?", options)
    press_all(dialog, *pressed)
    return dialog


@pytest.mark.parametrize(
    ("pressed", "index"),
    [
        (["enter"], 1),
        (["down", "enter"], 2),
        (["up", "enter"], 0),
        (["up", "up", "enter"], 3),
        (["down", "down", "down", "enter"], 0),
        (["pageup", "enter"], 0),
        (["pagedown", "enter"], 3),
        ([*"PL", "enter"], 0),
        ([*"PL", "down", "enter"], 2),
        ([*"blue", "enter"], 2),
        ([*"p gr", "enter"], 1),
        ([*"pe", "backspace", "c-u", "down", "enter"], 1),
    ],
)
def test_enter_picks_what_is_selected(pressed: list[str], index: int) -> None:
    dialog = after(FRUIT, *pressed[:-1])
    assert dialog.answer is None

    press_all(dialog, pressed[-1])

    assert dialog.answer == index


@pytest.mark.parametrize(("pressed", "answer"), [("2", 1), ("3", 2), ("4", None), ("b2", None)])
def test_number_of_a_few_answers_as_long_as_nothing_is_typed(pressed: str, answer: int | None) -> None:
    few = number_options([Option("Stop"), Option("Keep"), Option("Stay")])

    assert "    2. Keep" in rows_of(after(few))
    assert "a number or enter picks" in rows_of(after(few))[-1]
    assert after(few, *pressed).answer == answer


def test_pasted_number_answers_nothing() -> None:
    dialog = after(number_options([Option("Stop"), Option("Keep")]))
    dialog.paste("2")

    assert dialog.answer is None


@pytest.mark.parametrize("key", ["escape", "c-c"])
def test_pick_may_be_nothing(key: str) -> None:
    assert after(FRUIT, "p", key).answer == NothingPicked()


@pytest.mark.parametrize("options", [[], FRUIT])
def test_pick_without_matches_is_nothing(options: list[Option]) -> None:
    dialog = after(options, *"zzz", "down", "pagedown", "up", "enter")

    assert dialog.answer is None
    assert "  nothing fits" in rows_of(dialog)


def test_first_pick_stays() -> None:
    assert after(FRUIT, "enter", "down", "enter", "escape").answer == 1


def test_selected_row_and_the_current_option_are_marked() -> None:
    rows = rows_of(after(FRUIT, "down"))

    assert [row for row in rows if row.startswith("❯")] == ["❯   plum   blue"]
    assert [row for row in rows if "✓" in row] == ["  ✓ Pear   green"]


def test_long_list_scrolls_with_the_selection() -> None:
    dialog = after(MANY)
    seen = set()
    for _ in MANY:
        rows = rows_of(dialog)
        shown = [row for row in rows if "item" in row]
        assert len(shown) == MOST_ROWS
        seen.update(row for row in shown if row.startswith("❯"))
        press_all(dialog, "down")

    assert len(seen) == len(MANY)
    assert "1-12 of 50" in rows_of(dialog)[-1]


def test_typing_shows_only_what_fits() -> None:
    dialog = after(MANY, "pagedown")
    typed(dialog, "4 item")

    rows = rows_of(dialog)

    assert rows[1] == "/ 4 item"
    assert dialog.cursor == (1, 8)
    fitting = [f"item {n}" for n in range(50) if "4" in str(n)]
    assert [row.strip("❯ ") for row in rows[2:-1]] == fitting[:MOST_ROWS]


def test_paste_narrows_and_picks_nothing() -> None:
    dialog = after(FRUIT)

    dialog.paste("plum\n")
    assert dialog.answer is None
    press_all(dialog, "enter")

    assert dialog.answer == 2


options = st.lists(st.builds(Option, label=texts, detail=texts, is_current=st.booleans()), max_size=20)


@given(texts, options, widths, themes, st.lists(keys | pastes, max_size=12))
def test_pick_rows_fit_every_terminal(
    title: str, offered: list[Option], width: int, theme: Theme, pressed: list[str]
) -> None:
    dialog = PickDialog(title, offered)

    for key in pressed:
        assert len(rows_of(dialog, width, theme)) <= MOST_ROWS + 5  # the title, the filter, two of details, the hint
        dialog.press(key)

    rows_of(dialog, width, theme)
    if isinstance(dialog.answer, int):
        assert 0 <= dialog.answer < len(offered)


@given(st.lists(keys, max_size=20), st.lists(pastes, min_size=1, max_size=3))
def test_paste_answers_nothing_whatever_was_pressed_before(pressed: list[str], pasted: list[str]) -> None:
    dialog = after(FRUIT, *pressed)

    for text in pasted:
        assert unchanged_by(dialog, lambda text=text: dialog.paste(text))
        assert unchanged_by(dialog, lambda text=text: dialog.press(text))


def test_result_for_other_words_is_not_offered() -> None:
    looked_up: list[str] = []
    dialog = PickDialog("Which?", FRUIT, look_up=looked_up.append)
    typed(dialog, "zz")

    dialog.take_found("z", {4: Option("quince")})
    assert "  nothing fits; looking further …" in rows_of(dialog)
    dialog.take_found("zz", {})
    assert "  nothing fits" in rows_of(dialog)
    typed(dialog, "z")
    dialog.take_found("zzz", {1: FRUIT[1], 4: Option("quince", "found")})
    press_all(dialog, "down", "enter")

    assert dialog.answer == 4
    assert looked_up == ["z", "zz", "zzz"]


def test_search_results_vanish_when_the_typed_text_changes() -> None:
    dialog = PickDialog("Which?", FRUIT, look_up=lambda text: None)
    typed(dialog, "zz")
    dialog.take_found("zz", {4: Option("quince")})

    press_all(dialog, "backspace", "enter")

    assert dialog.answer is None
    assert not any("quince" in row for row in rows_of(dialog))
