from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from panpan.ui.repl.commands.layout import cut, wrapped

texts = st.text() | st.text(alphabet="ab  \n\té日本🙂\u0301", max_size=200)


@given(texts, st.integers(20, 200))
def test_no_row_is_wider_than_the_terminal_and_nothing_is_lost(text: str, width: int) -> None:
    rows = wrapped(text, width)

    assert all(get_cwidth(row) <= width for row in rows)
    assert not any("\x1b" in row or "\n" in row for row in rows)


@given(st.text(alphabet="ab 日🙂\n", max_size=300), st.integers(20, 100))
def test_wrapping_keeps_every_character_but_blanks(text: str, width: int) -> None:
    assert "".join(wrapped(text, width)).replace(" ", "") == text.replace(" ", "").replace("\n", "")


def test_words_stay_whole_where_they_fit() -> None:
    assert wrapped("the quick brown fox jumps over it", 20) == ["the quick brown fox", "jumps over it"]


def test_what_is_indented_stays_so_when_it_is_wrapped() -> None:
    assert wrapped("    the quick brown fox jumps", 20) == ["    the quick brown", "    fox jumps"]


def test_a_word_that_is_too_long_is_broken() -> None:
    assert wrapped("x" * 45, 20) == ["x" * 20, "x" * 20, "x" * 5]


@given(st.text(alphabet="ab日🙂 ", max_size=60), st.integers(1, 60))
def test_a_line_that_is_cut_fits_and_says_that_it_was(line: str, width: int) -> None:
    shown = cut(line, width)

    assert get_cwidth(shown) <= width
    assert shown == line or (shown.endswith("…") and line.startswith(shown[:-1]))
