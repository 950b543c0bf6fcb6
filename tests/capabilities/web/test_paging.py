from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.web.web_fetch import piece_at


@given(st.text(alphabet=st.sampled_from("ab \n\U0001f600"), max_size=300), st.integers(1, 60))
def test_pieces_join_to_the_text(text: str, most: int) -> None:
    pieces = [piece_at(text, 0, most)]
    while (offset := pieces[-1].next_offset) is not None:
        pieces.append(piece_at(text, offset, most))

    assert "".join(piece.text for piece in pieces) == text
    assert all(len(piece.text) <= most for piece in pieces)


def test_piece_ends_between_lines_if_one_is_near() -> None:
    text = "\n".join("x" * 9 for _ in range(30))

    piece = piece_at(text, 0, 105)

    assert (piece.end, piece.next_offset, piece.total) == (100, 100, 299)


def test_piece_behind_the_end_is_empty() -> None:
    assert piece_at("abc", 7).text == ""
    assert piece_at("abc", 7).next_offset is None
