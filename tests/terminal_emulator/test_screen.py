import pytest

from tests.terminal_emulator.screen import Screen


def showing(text: str, columns: int = 10, rows: int = 3) -> Screen:
    screen = Screen(columns, rows)
    screen.feed(text)
    return screen


def test_rows_that_leave_the_top_are_in_the_scrollback() -> None:
    screen = showing("one\r\ntwo\r\nthree\r\nfour\r\nfive")

    assert (screen.scrollback, screen.visible) == (["one", "two"], ["three", "four", "five"])


def test_scrollback_is_complete_after_moves_and_erasing() -> None:
    screen = showing("one\r\ntail 1\x1b[1A\r\x1b[J" + "one\r\ntwo\r\nthree\r\nfour")

    assert screen.text == "one\ntwo\nthree\nfour"


@pytest.mark.parametrize(
    ("text", "column"),
    [("abc", 3), ("日本", 4), ("e\u0301", 1), ("👍🏽", 4), ("👩\u200d🔬x", 5), ("❤\ufe0fx", 2), ("a\u200bb", 2)],
)
def test_cursor_is_behind_the_written_text(text: str, column: int) -> None:
    screen = showing(text)

    assert screen.visible[0] == text
    assert screen.cursor.x == column


def test_wide_character_does_not_fit_into_the_last_column() -> None:
    screen = showing("123456789日")

    assert screen.visible[:2] == ["123456789", "日"]


def test_questions_are_answered() -> None:
    answers: list[str] = []
    screen = Screen(10, 3, answer=answers.append, background="rgb:ffff/ffff/ffff")
    screen.feed("ab\r\nc\x1b[6n\x1b[c\x1b]11;?\x07")

    assert answers == ["\x1b[2;2R", "\x1b[?62;22c", "\x1b]11;rgb:ffff/ffff/ffff\x1b\\"]


def test_private_sequences_that_look_like_colours_change_nothing() -> None:
    screen = showing("\x1b[>4;2m\x1b[?4m\x1b[>1u\x1b[<ua")

    assert (screen.visible[0], screen.cursor.attrs.underscore) == ("a", False)


def test_effects_outside_of_the_screen_are_kept() -> None:
    screen = showing("\x1b]0;title\x07\x1b]52;c;eA==\x07\x1b]9;done\x07\x07")

    assert (screen.titles, screen.clipboard, screen.notices, screen.bells) == (["title"], ["c;eA=="], ["done"], 1)


def test_alternate_screen_comes_and_goes() -> None:
    screen = showing("kept\x1b[?1049h\x1b[Hother\r\n\n\n\n")
    during = (screen.is_alternate, screen.scrollback)
    screen.feed("\x1b[?1049l")

    assert during == (True, [])
    assert (screen.visible[0], screen.cursor.x) == ("kept", 4)


def test_smaller_window_keeps_the_row_of_the_cursor() -> None:
    screen = showing("one\r\ntwo\r\nthree")
    screen.resize(lines=2, columns=5)

    assert (screen.scrollback, screen.visible, screen.cursor.y) == (["one"], ["two", "three"], 1)
