"""What is typed is taken whole, with the pastes that are folded in it."""

import pytest
from prompt_toolkit.filters import Never

from panpan.ui.repl.draft import Draft
from panpan.ui.repl.input.paste import Pastes
from panpan.ui.repl.input_box import InputBox

LONG = "\n".join(f"line {number}" for number in range(100))


@pytest.fixture
def box():
    box = InputBox(lambda: "> ")
    box.buffer.complete_while_typing = Never()  # it would need an application
    return box


def test_it_is_taken_with_its_pastes_and_kept_in_the_history(box):
    draft = Draft(box, Pastes())
    draft.put("look: ")
    draft.paste(LONG)
    assert "line 50" not in draft.text
    assert draft.unfolded == f"look: {LONG}"

    assert draft.take() == f"look: {LONG}"
    assert draft.text == ""
    assert box.buffer.history.get_strings() == [f"look: {LONG}"]


def test_where_only_blanks_are_typed_nothing_is_taken_and_they_stay(box):
    draft = Draft(box, Pastes())
    draft.put("  ")
    assert draft.take() == ""
    assert draft.text == "  "


def test_a_paste_is_deleted_as_one(box):
    draft = Draft(box, Pastes())
    draft.put("a")
    draft.paste(LONG)
    draft.backspace()
    assert draft.text == "a"
    draft.backspace()
    assert draft.text == ""


def test_a_backslash_before_the_caret_becomes_a_line_break(box):
    draft = Draft(box, Pastes())
    draft.put("one\\")
    assert draft.break_line()
    assert draft.text == "one\n"
    assert not draft.break_line()
