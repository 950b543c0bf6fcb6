"""The one-line editor does what keys do in every shell, and moves over characters as people see them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from panpan.faces.terminal.dialogs.dialog import LineEditor
from tests.faces.terminal.dialogs.drawn import assert_fit, keys, pastes


def editor_after(*pressed: str) -> LineEditor:
    editor = LineEditor()
    for key in pressed:
        editor.press(key)
    return editor


@pytest.mark.parametrize(
    ("pressed", "text"),
    [
        ([*"abc"], "abc"),
        ([*"abc", "backspace"], "ab"),
        ([*"abc", "left", "left", "delete"], "ac"),
        ([*"abc", "home", "x"], "xabc"),
        ([*"abc", "c-a", "right", "x"], "axbc"),
        ([*"abc", "c-a", "c-e", "x"], "abcx"),
        ([*"abc", "home", "end", "x"], "abcx"),
        ([*"abc", "left", "c-u"], "c"),
        ([*"one two", "c-w"], "one "),
        ([*"one two  ", "c-w"], "one "),
        ([*"one", "c-w", "c-w"], ""),
        (["backspace", "delete", "left", "right", "c-u", "c-w"], ""),
        ([*"e\u0301", "backspace"], ""),
        ([*"a\U0001f1e9\U0001f1ea", "left", "delete"], "a"),
        ([*"\U0001f468\u200d\U0001f469", "left", "x"], "x\U0001f468\u200d\U0001f469"),
    ],
)
def test_keys_edit(pressed: list[str], text: str) -> None:
    assert editor_after(*pressed).text == text


@pytest.mark.parametrize("key", ["up", "c-x", "f5", "enter", "escape", "tab", "s-tab", "c-@", "insert"])
def test_other_keys_are_left_to_the_dialog(key: str) -> None:
    editor = LineEditor()

    assert not editor.press(key)
    assert editor.text == ""


@pytest.mark.parametrize(
    ("pasted", "text"),
    [
        ("one\ntwo\r\n\r\nthree\tfour", "one two three four"),
        ("a\x1b[31mb\x07", "a[31mb"),
        ("enter", "enter"),
        ("lone \ud800 half", "lone \ufffd half"),
        ("אב \u200fגד", "אב \u200fגד"),
    ],
)
def test_paste_becomes_one_line_without_terminal_sequences(pasted: str, text: str) -> None:
    editor = LineEditor()

    editor.insert(pasted)

    assert editor.text == text


@given(st.lists(keys | pastes, max_size=30), st.integers(2, 40))
def test_editor_row_fits_and_holds_the_caret(pressed: list[str], width: int) -> None:
    row, caret = editor_after(*pressed).row(width)

    assert_fit([row], width)
    assert 0 <= caret < width


def test_row_follows_the_caret() -> None:
    editor = editor_after(*"0123456789")

    assert editor.row(20) == ("0123456789", 10)
    assert editor.row(6) == ("56789", 5)
    editor.press("home")
    assert editor.row(6) == ("012345", 0)


@given(st.text("ab世界é ", max_size=30), st.integers(0, 30))
def test_caret_stands_behind_what_is_before_it(text: str, steps: int) -> None:
    editor = editor_after(*text, *["left"] * steps)

    assert editor.row(100) == (text, get_cwidth(text[: max(len(text) - steps, 0)]))


@given(st.lists(keys | pastes, max_size=30))
def test_typed_line_can_be_sent(pressed: list[str]) -> None:
    text = editor_after(*pressed).text

    assert text.encode().decode() == text
    assert "\n" not in text


def test_large_paste_is_kept_whole() -> None:
    editor = LineEditor()
    editor.insert("x" * 100_000)

    assert len(editor.text) == 100_000
    assert editor.row(20) == ("x" * 19, 19)
