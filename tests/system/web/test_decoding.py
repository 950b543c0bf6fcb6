import gzip
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.errors import ToolError
from panpan.system.web.exchange import PIECE_BYTES, Decoder

CODED = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "deflate": zlib.compress,
    "": lambda data: data,
}


def decoded(coding: str, pieces: list[bytes]) -> bytes:
    decoder = Decoder(coding, "example.org")
    found = [plain for piece in pieces for plain in decoder.decode(piece)]
    return b"".join([*found, *decoder.finish()])


def cut_at(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({min(place, len(data)) for place in places} | {len(data)})
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@given(st.sampled_from(sorted(CODED)), st.binary(max_size=2000), st.lists(st.integers(0, 2000), max_size=5))
def test_decoding_does_not_depend_on_chunks(coding: str, content: bytes, places: list[int]) -> None:
    assert decoded(coding, cut_at(CODED[coding](content), places)) == content


@given(st.sampled_from(["gzip", "deflate"]), st.binary(max_size=500), st.data())
def test_decoding_of_a_short_body_is_never_complete(coding: str, content: bytes, data: st.DataObject) -> None:
    whole = CODED[coding](content)
    length = data.draw(st.integers(1, len(whole) - 1))

    with pytest.raises(ToolError):
        decoded(coding, [whole[:length]])


@given(st.sampled_from(["gzip", "deflate"]), st.lists(st.binary(max_size=50), max_size=5))
def test_decoding_any_bytes_succeeds_or_is_refused(coding: str, pieces: list[bytes]) -> None:
    with suppress(ToolError):
        decoded(coding, pieces)


def test_decoded_pieces_are_small() -> None:
    decoder = Decoder("gzip", "example.org")

    pieces = list(decoder.decode(gzip.compress(bytes(3 * PIECE_BYTES + 1))))

    assert [len(piece) for piece in pieces] == [PIECE_BYTES] * 3 + [1]


def test_decoding_refuses_many_small_bombs() -> None:
    decoder = Decoder("gzip", "example.org")
    bomb = gzip.compress(bytes(1_000_000))

    with pytest.raises(ToolError, match="bomb"):
        for _ in range(30):
            for _ in decoder.decode(bomb):
                pass
