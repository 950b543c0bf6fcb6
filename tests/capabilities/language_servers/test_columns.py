"""Columns as servers count them, in all three units."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.language_servers.wire import Encoding, characters, line_starts, lines_of, units

ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")
WORDS = st.text(st.sampled_from("ab \t_é漢字🎉👩\u200d🚀e\u0301\u2028\f\ufffd\ufeff") | st.characters(), max_size=30)
LINES = WORDS.map(lambda text: text.replace("\r", "").replace("\n", ""))


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(line=LINES, at=st.integers(0, 30))
def test_column_and_its_units_mean_the_same_character(encoding: Encoding, line: str, at: int) -> None:
    at = min(at, len(line))

    column = units(line[:at], encoding)

    assert characters(line, column, encoding) == at


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(line=LINES)
def test_units_equal_the_length_in_the_encoding(encoding: Encoding, line: str) -> None:
    sizes = {"utf-8": 1, "utf-16": 2, "utf-32": 4}
    codec = encoding if encoding == "utf-8" else f"{encoding}-le"

    assert units(line, encoding) == len(line.encode(codec, "surrogatepass")) // sizes[encoding]


@pytest.mark.parametrize(("encoding", "inside"), [("utf-8", (1, 2, 3)), ("utf-16", (1,))])
def test_column_inside_of_a_character_means_its_beginning(encoding: Encoding, inside: tuple[int, ...]) -> None:
    found = {characters("🎉x", column, encoding) for column in inside}

    assert found == {0}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_column_behind_the_line_means_its_end(encoding: Encoding) -> None:
    assert characters("é漢", 1_000, encoding) == 2


@given(
    st.lists(LINES, min_size=1, max_size=6), st.lists(st.sampled_from(["\n", "\r\n"]), min_size=6) | st.just(["\r"] * 6)
)
def test_lines_end_as_in_the_protocol(lines: list[str], breaks: list[str]) -> None:
    text = "".join(line + end for line, end in zip(lines[:-1], breaks, strict=False)) + lines[-1]

    found = lines_of(text)

    assert found == lines
    assert [text[start:][: len(line)] for start, line in zip(line_starts(text), found, strict=True)] == lines
