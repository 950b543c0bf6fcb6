from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.system.processes.progress import MAX_HELD_BYTES, LineFolder


def folded(data: bytes, *cuts: int) -> bytes:
    folder = LineFolder()
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return b"".join(folder.feed(data[a:b]) for a, b in pairwise(places)) + folder.finish()


@pytest.mark.parametrize(
    ("printed", "kept"),
    [
        (b"plain\ntext", b"plain\ntext"),
        (b"10%\r50%\r100%\n", b"100%\n"),
        (b"10%\r100%\r\n", b"100%\r\n"),
        (b"one\r\ntwo\r\n", b"one\r\ntwo\r\n"),
        (b"\rstep 1\rstep 2", b"step 2"),
        (b"step 1\rstep 2\r", b"step 2\r"),
        (b"a\r\r\r\nb", b"a\r\nb"),
        (b"\r\n\r\n", b"\r\n\r\n"),
        (b"", b""),
    ],
)
def test_the_last_state_of_a_line_stays(printed: bytes, kept: bytes) -> None:
    assert folded(printed) == kept


@given(st.text(alphabet="ab\r\n", max_size=40), st.lists(st.integers(0, 40), max_size=5))
def test_it_does_not_matter_how_the_output_is_cut_into_pieces(text: str, cuts: list[int]) -> None:
    assert folded(text.encode(), *cuts) == folded(text.encode())


@given(st.binary(max_size=60).filter(lambda data: b"\r" not in data), st.lists(st.integers(0, 60), max_size=5))
def test_output_without_carriage_returns_stays_as_it_is(data: bytes, cuts: list[int]) -> None:
    assert folded(data, *cuts) == data


def test_a_line_without_end_is_not_held_back_for_ever() -> None:
    folder = LineFolder()
    data = b"x" * (MAX_HELD_BYTES + 1)

    assert folder.feed(data) == data
    assert folder.feed(b"y\n") == b"y\n"


def test_a_bar_that_runs_for_hours_stays_small() -> None:
    folder = LineFolder()

    for number in range(20_000):
        assert folder.feed(b"\rprogress %d" % number) == b""
    assert folder.finish() == b"progress 19999"
