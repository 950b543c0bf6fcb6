"""Splitting a text makes no difference to the parts removed from it."""

from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.terminal.rendering.markdown import CleanStream
from panpan.system.text.terminal_text import clean_for_terminal

PIECES = st.lists(st.text("a[]0;m\x1b\x07\r\n\x9b\x9c\x90\x9d\\P X(Bé\u202e\x00", max_size=30), max_size=6)


@given(PIECES)
def test_pieces_are_cleaned_like_the_whole(pieces: list[str]) -> None:
    stream = CleanStream()

    cleaned = [stream.feed(piece) for piece in pieces]

    assert "".join(cleaned) + stream.finish() == clean_for_terminal("".join(pieces))


def test_only_the_beginning_of_a_sequence_is_held_back() -> None:
    stream = CleanStream()

    assert stream.feed("text\x1b[3") == "text"
    assert stream.feed("1mred") == "red"
