"""Rows are never too wide, lose nothing, and neither sequences nor characters are cut."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.rendering.cells import break_line, cut, pad_to_width, printed_rows, wrap_text
from panpan.system.text.cell_width import cell_width
from tests.faces.terminal.rendering.looks import check, shown

LETTERS = [
    "a",
    "b ",
    "  ",
    "word",
    "é",
    "e\u0301",
    "日本",
    "한",
    "שלום",
    "👨\u200d👩\u200d👧",
    "❤\ufe0f",
    "🇩🇪",
    "👍🏽",
    "\u0301",
]
COLOURS = ["\x1b[31m", "\x1b[1;4m", "\x1b[0m", "\x1b[m"]
STYLED = st.lists(st.sampled_from(LETTERS + COLOURS), max_size=40).map("".join)


def settled_style(rows: list[str]) -> bool:
    """Return whether each row switches off what it switched on."""
    sequences = [re.findall(r"\x1b\[[0-9;]*m", row) for row in rows]
    return all(not found or found[-1] in ("\x1b[0m", "\x1b[m") for found in sequences)


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("abc", 3),
        ("日本", 4),
        ("e\u0301", 1),
        ("שלום", 4),
        ("\x1b[31mred\x1b[0m", 3),
        ("❤\ufe0f", 2),
        ("", 0),
    ],
)
def test_text_is_as_wide_as_its_cells(text: str, width: int) -> None:
    assert cell_width(text) == width


@given(st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=4), max_size=8))
def test_cells_of_a_text_are_those_of_its_parts(parts: list[str]) -> None:
    assert cell_width("".join(parts)) == sum(cell_width(char) for part in parts for char in part)


@given(STYLED, st.integers(2, 30))
def test_broken_rows_fit_and_lose_nothing(text: str, width: int) -> None:
    rows = break_line(text, width)

    check(rows, width)
    assert "".join(shown(rows)) == "".join(shown([text]))
    assert len(rows) == 1 or settled_style(rows[:-1])


@given(st.text(st.sampled_from("ab \u0301❤-"), max_size=60), st.integers(2, 30))
def test_broken_rows_break_no_word_that_has_room(text: str, width: int) -> None:
    rows = break_line(text, width)

    for row, following in pairwise(rows):
        assert row.endswith(" ") or following.startswith(" ") or cell_width(max(text.split(), key=cell_width)) > width


@given(STYLED, st.integers(2, 30))
def test_wrapped_rows_fit_and_lose_nothing_but_blanks(text: str, width: int) -> None:
    rows = wrap_text(text, width)

    check(rows, width)
    assert "".join("".join(shown(rows)).split()) == "".join("".join(shown([text])).split())
    assert all(not row.endswith(" ") for row in shown(rows))
    assert len(rows) == 1 or settled_style(rows[:-1])


@given(STYLED, st.integers(0, 30))
def test_cut_text_fits_and_keeps_its_beginning(text: str, width: int) -> None:
    (kept,) = shown([cut(text, width)])
    (whole,) = shown([text])

    check([kept], width)
    assert kept == whole or kept == "" or (kept.endswith("…") and whole.startswith(kept[:-1]))


@given(STYLED, st.integers(8, 30))
def test_rows_cut_no_character(text: str, width: int) -> None:
    rows = [*break_line(text, width), *wrap_text(text, width)]

    for row in shown(rows)[1:]:
        assert not row.startswith(("\u200d", "\ufe0f"))
        assert row.count("🇩") == row.count("🇪")
        assert row.count("👨") == row.count("👧")


def test_output_of_programs_is_broken_at_blanks_below_its_indent() -> None:
    said = "    the user wants what it printed so far\n\n/a/long/path/without/any/blank/in/it  name"

    assert printed_rows(said, 20) == [
        "    the user wants",
        "    what it printed",
        "    so far",
        "",
        "/a/long/path/without",
        "/any/blank/in/it",
        "name",
    ]


def test_words_go_to_the_next_row_as_a_whole() -> None:
    assert wrap_text("one \x1b[1mtwo\x1b[0mthree four", 9) == ["one", "\x1b[1mtwo\x1b[0mthree", "four"]


def test_style_goes_on_in_the_next_row() -> None:
    assert wrap_text("\x1b[1maa bb\x1b[0m", 3) == ["\x1b[1maa\x1b[0m", "\x1b[1mbb\x1b[0m"]
    assert break_line("\x1b[1maabb\x1b[0m", 2) == ["\x1b[1maa\x1b[0m", "\x1b[1mbb\x1b[0m"]


def test_wide_characters_break_without_blanks() -> None:
    assert wrap_text("日本語の文", 5) == ["日本", "語の", "文"]


def test_indent_of_a_line_stays_and_newlines_begin_rows() -> None:
    assert wrap_text("  a bb\n\n c", 4) == ["  a", "bb", "", " c"]


@given(STYLED)
def test_cell_width_is_enough_for_every_terminal(text: str) -> None:
    check([text], cell_width(text))


def test_padding_counts_cells() -> None:
    assert pad_to_width("日\x1b[1m本\x1b[0m", 6) == "日\x1b[1m本\x1b[0m  "
