"""Text of any origin fits its rows, drives nothing, and loses nothing but blanks."""

from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.rendering.cells import plain_rows
from tests.faces.terminal.rendering.looks import NASTY, check

texts = st.text() | NASTY | st.text(alphabet="ab  \n\té日本🙂\u0301❤\ufe0f", max_size=200)


@given(texts, st.integers(4, 200))
def test_plain_rows_fit_and_drive_nothing(text: str, width: int) -> None:
    check(plain_rows(text, width), width)


@given(st.text(alphabet="ab 日🙂\n", max_size=300), st.integers(20, 100))
def test_wrapping_keeps_every_character_but_blanks(text: str, width: int) -> None:
    assert "".join(plain_rows(text, width)).replace(" ", "") == text.replace(" ", "").replace("\n", "")


def test_words_stay_whole_where_they_fit() -> None:
    assert plain_rows("the quick brown fox jumps over it", 20) == ["the quick brown fox", "jumps over it"]


def test_wrapped_text_keeps_its_indent() -> None:
    assert plain_rows("    the quick brown fox jumps\nover it", 20) == [
        "    the quick brown",
        "    fox jumps",
        "over it",
    ]
    assert plain_rows("\tthe quick brown fox jumps", 20) == ["    the quick brown", "    fox jumps"]


def test_indent_leaves_half_of_the_row_to_the_words() -> None:
    assert plain_rows(" " * 30 + "the quick brown", 20) == [" " * 10 + "the quick", " " * 10 + "brown"]


def test_word_that_is_too_long_is_broken() -> None:
    assert plain_rows("x" * 45, 20) == ["x" * 20, "x" * 20, "x" * 5]


def test_empty_lines_stay() -> None:
    assert plain_rows("\na\n   \nb\n", 20) == ["", "a", "", "b", ""]
