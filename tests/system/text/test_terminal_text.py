import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcwidth

from panpan.system.text.terminal_text import clean_for_terminal, escape_invisible, printable

ANYTHING = st.text(
    alphabet=st.one_of(
        st.sampled_from("\x1b[]()?;0123mHJKP_^X\\\x07\x9b\x9c\x9d\x90\r\n\t\b\x7f\x85ab\u202e\u200f\u2028"),
        st.characters(),
        st.characters(categories=["Cs", "Cc", "Cf"]),
    )
)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("plain text", "plain text"),
        ("tab\tand\nnewline", "tab\tand\nnewline"),
        ("日本語 é 🐼 👩‍🔬", "日本語 é 🐼 👩‍🔬"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[1;1Hcleared", "cleared"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;https://example.com\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;ZXZpbA==\x07", ""),
        ("\x1bP+q544e\x1b\\x", "x"),
        ("\x1b(0qqq\x1b(B", "qqq"),
        ("\x1bcreset", "reset"),
        ("unfinished \x1b[", "unfinished ["),
        ("unfinished \x1b]0;title\nnext", "unfinished 0;title\nnext"),
        ("over\rwritten", "over\nwritten"),
        ("dos\r\nlines", "dos\nlines"),
        ("10%\r\x1b[K20%\r\n", "10%\n20%\n"),
        ("back\b\b\bspace", "backspace"),
        ("nul\0bell\x07del\x7fc1\x85", "nulbelldelc1"),
        ("\u202egnp.exe", "<U+202E>gnp.exe"),
        ("a\u2066b\u2069\u200f", "a<U+2066>b<U+2069><U+200F>"),
        ("hidden\U000e0041", "hidden<U+E0041>"),
        ("a\U000e0141b\u180bc\u200bd\u3164", "a<U+E0141>b<U+180B>c<U+200B>d<U+3164>"),
        ("\ufeffmark ❤\ufe0f", "<U+FEFF>mark ❤\ufe0f"),
        ("lone \ud83d surrogate", "lone \ufffd surrogate"),
    ],
)
def test_terminal_sequences_are_removed(text: str, cleaned: str) -> None:
    assert clean_for_terminal(text) == cleaned


@given(text=ANYTHING)
def test_control_characters_never_survive(text: str) -> None:
    cleaned = clean_for_terminal(text)

    assert not [char for char in cleaned if unicodedata.category(char) in ("Cc", "Cs") and char not in "\n\t"]
    assert not set(cleaned) & set(
        "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029"
    )
    cleaned.encode()


@given(text=ANYTHING)
def test_cleaning_is_idempotent(text: str) -> None:
    cleaned = clean_for_terminal(text)

    assert clean_for_terminal(cleaned) == cleaned


@given(
    text=st.text(
        alphabet=st.characters(
            categories=["L", "N", "P", "S"], include_characters=" \n\t", exclude_characters="\u115f\u1160\u3164\uffa0"
        )
    )
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert clean_for_terminal(text) == text


def test_long_hostile_text_is_cleaned_in_linear_time() -> None:
    for piece in ("\x1b]", "\x1b[", "\x1b[0;", "\x9d", "\r", "\x1b"):
        assert len(clean_for_terminal(piece * 50_000)) <= 200_000


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("rm -rf x", "rm -rf x"),
        ("two\nlines\t", "two\nlines\t"),
        ("a\x1b[31mb", "a<U+001B>[31mb"),
        ("a\rb", "a<U+000D>b"),
        ("zero\u200bwidth", "zero<U+200B>width"),
        ("no\u00a0break", "no<U+00A0>break"),
        ("\u202eevil", "<U+202E>evil"),
        ("filler\u3164x", "filler<U+3164>x"),
        ("selector\ufe0f", "selector<U+FE0F>"),
        ("日本é", "日本é"),
        ("a\U000e0101b\u180f\u180bc", "a<U+E0101>b<U+180F><U+180B>c"),
        ("e\u0301 \u0301/\u0338-", "e\u0301 <U+0301>/<U+0338>-"),
        ("z" + "\u0300" * 6, "z" + "\u0300" * 4 + "<U+0300>" * 2),
        ("\u0301", "<U+0301>"),
        ("x\u1039\u17d2", "x<U+1039><U+17D2>"),
        ("한국어 עִבְרִית हिन्दी ภาษาไทย العَرَبِيَّة", "한국어 עִבְרִית हिन्दी ภาษาไทย العَرَبِيَّة"),
        ("1\ufe0f\u20e3", "1<U+FE0F><U+20E3>"),
    ],
)
def test_hidden_characters_are_spelled_out(text: str, shown: str) -> None:
    assert escape_invisible(text) == shown


def test_zero_width_characters_are_spelled_out_anywhere() -> None:
    others = [chr(n) for n in range(sys.maxunicode + 1) if chr(n) not in "\n\t"]
    of_no_width = [char for char in others if wcwidth(char) <= 0]
    marks = {char for char in of_no_width if unicodedata.category(char)[0] == "M"}

    assert len(of_no_width) > 2_000
    assert [hex(ord(char)) for char in of_no_width if char in escape_invisible(f" {char}")] == []
    assert [hex(ord(char)) for char in of_no_width if char not in marks and char in escape_invisible(f"a{char}b")] == []


@pytest.mark.parametrize(
    "text", ["한국어", "tiếng Việt", "क्षत्रिय", "ქართული", "བོད་སྐད", "മലയാളം", "ខ្មែរ", "မြန်မာ", "ไทย", "日本語がぎ"]
)
def test_living_scripts_are_unchanged(text: str) -> None:
    for form in ("NFC", "NFD"):
        assert escape_invisible(unicodedata.normalize(form, text)) == unicodedata.normalize(form, text)


@given(text=ANYTHING)
def test_spelled_out_text_is_clean_and_complete(text: str) -> None:
    shown = escape_invisible(text)

    assert clean_for_terminal(shown) == shown
    assert all(char in shown for char in text if char.isalnum() and char.isascii())


def test_shown_name_is_one_line_with_hidden_characters_visible() -> None:
    assert printable("a\nb\x1b[0m\u202e\udcff é") == "a\\nb\\x1b[0m\\u202e\\udcff é"


@given(ANYTHING)
def test_printable_keeps_exactly_printable_text(text: str) -> None:
    assert printable(text).isprintable()
    assert printable(printable(text)) == printable(text)
