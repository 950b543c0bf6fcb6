"""Foreign texts bring nothing to the terminal but readable characters, and the colours of a preview."""

from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.dialogs.dialog import coloured_lines, prose
from panpan.faces.terminal.dialogs.permission import exact_line
from panpan.faces.terminal.rendering.cells import break_line
from panpan.system.text.cell_width import cell_width
from panpan.system.text.terminal_text import clean_line
from tests.faces.terminal.dialogs.drawn import assert_fit, plain, texts

coloured = st.lists(texts | st.sampled_from(["\x1b[32m", "\x1b[1;31m", "\x1b[0m"])).map("".join)


@given(coloured, st.integers(2, 60))
def test_coloured_line_passes_only_colours_to_the_terminal(line: str, width: int) -> None:
    assert_fit([row for part in coloured_lines(line) for row in break_line(part, width)], width)


def test_line_keeps_its_colours_and_ends_them() -> None:
    assert coloured_lines("\x1b[32m+ a\x1b[0m b") == ["\x1b[32m+ a\x1b[0m b\x1b[0m"]
    assert coloured_lines("\x1b[31mopen\nnext") == ["\x1b[31mopen\x1b[0m", "next\x1b[0m"]
    assert coloured_lines("a\x1b[2Jb\tc") == ["ab    c"]


@given(texts)
def test_exact_line_contains_no_other_line(text: str) -> None:
    line = clean_line(text)

    assert_fit([line], cell_width(line))


@given(texts)
def test_prose_has_breaks_and_no_other_controls(text: str) -> None:
    assert_fit(prose(text).split("\n"), 10_000)


@given(texts, st.integers(2, 60))
def test_exact_line_breaks_into_rows_with_every_character(text: str, width: int) -> None:
    line = exact_line(text)

    rows = break_line(line, width)

    assert_fit(rows, width)
    assert "".join(map(plain, rows)) == line
