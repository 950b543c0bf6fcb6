"""The draft is taken whole, with the pastes that are folded in it."""

import pytest
from prompt_toolkit.filters import Never

from panpan.faces.terminal.input.draft import Draft, Pastes
from panpan.faces.terminal.input.input_box import InputBox

LONG = "\n".join(f"line {number}" for number in range(100))


@pytest.fixture
def box():
    box = InputBox(lambda: "> ")
    box.buffer.complete_while_typing = Never()  # it would need an application
    return box


def test_draft_is_taken_with_its_pastes_and_kept_in_history(box):
    draft = Draft(box, Pastes())
    draft.put("look: ")
    draft.paste(LONG)
    assert "line 50" not in draft.text
    assert draft.unfolded == f"look: {LONG}"

    assert draft.take() == f"look: {LONG}"
    assert draft.text == ""
    assert box.buffer.history.get_strings() == [f"look: {LONG}"]


def test_draft_of_blanks_is_not_taken_and_stays(box):
    draft = Draft(box, Pastes())
    draft.put("  ")
    assert draft.take() == ""
    assert draft.text == "  "


def test_paste_is_deleted_as_one(box):
    draft = Draft(box, Pastes())
    draft.put("a")
    draft.paste(LONG)
    draft.backspace()
    assert draft.text == "a"
    draft.backspace()
    assert draft.text == ""


def test_backslash_before_the_caret_becomes_a_line_break(box):
    draft = Draft(box, Pastes())
    draft.put("one\\")
    assert draft.break_line()
    assert draft.text == "one\n"
    assert not draft.break_line()


def test_cleared_drafts_come_back_newest_first(box):
    draft = Draft(box, Pastes())
    for text in ("first", "second\nline"):
        draft.put(text)
        assert draft.clear()
        assert draft.text == ""

    assert draft.bring_back()
    assert draft.text == "second\nline"
    draft.replace("")
    assert draft.bring_back()
    assert draft.text == "first"
    assert not draft.bring_back()
    assert draft.text == "first"


def test_restored_draft_has_its_pastes_whole(box):
    draft = Draft(box, Pastes())
    draft.paste(LONG)
    draft.clear()
    draft.bring_back()

    assert draft.take() == LONG


def test_blanks_are_not_worth_keeping(box):
    draft = Draft(box, Pastes())
    draft.put("  ")

    assert not draft.clear()
    assert draft.text == ""
    assert not draft.bring_back()


def test_returned_text_does_not_run_together_with_typed_text(box):
    draft = Draft(box, Pastes())
    draft.return_prompt("sent before")
    draft.insert("and this")
    assert draft.text == "sent before\nand this"

    draft.return_prompt("sent first")
    draft.insert(" too")
    assert draft.take() == "sent first\nsent before\nand this too"


def test_returned_text_is_sent_again_unchanged(box):
    draft = Draft(box, Pastes())
    draft.return_prompt("/help")

    assert draft.unfolded == "/help"
    assert draft.take() == "/help"
