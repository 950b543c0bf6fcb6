"""Tests of the output of a running command, as the screen shows it."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.system.processes.process import (
    BURST,
    FLOOD_BYTES,
    MAX_HELD_BYTES,
    MAX_SHOWN_CHARS,
    LineFolder,
    ProgressPacer,
)


def taken(*pieces: bytes) -> list[str]:
    pacer = ProgressPacer()
    texts = []
    for second, piece in enumerate(pieces):
        pacer.add(piece)
        texts.append(pacer.take(float(second)))
    return texts


def test_rare_output_is_shown_at_once() -> None:
    pacer = ProgressPacer()

    for second in range(30):
        pacer.add(b"x")
        assert pacer.pause_s(float(second)) == 0
        assert pacer.take(float(second)) == "x"


def test_frequent_output_is_joined() -> None:
    pacer = ProgressPacer()
    shown = []
    for step in range(1000):  # one second, in milliseconds
        pacer.add(b"x")
        if text := pacer.take(step / 1000):
            shown.append(text)
    shown.append(pacer.take_rest())

    assert len(shown) <= BURST + 11
    assert "".join(shown) == "x" * 1000


def test_pause_is_short_and_never_taken_in_a_flood() -> None:
    pacer = ProgressPacer()
    for _ in range(BURST):
        pacer.add(b"x")
        assert pacer.take(0.0)

    pacer.add(b"x")
    assert pacer.take(0.0) == ""
    assert 0 < pacer.pause_s(0.0) <= 0.1
    assert pacer.take(0.1) == "x"
    pacer.add(b"x" * FLOOD_BYTES)
    assert pacer.pause_s(0.1) == 0


def test_flood_shows_only_its_end() -> None:
    pacer = ProgressPacer()
    for number in range(1000):
        pacer.add(b"%03d " % number * 100)

    text = pacer.take_rest()
    assert text.startswith("…")
    assert text.endswith("999 ")
    assert len(text) <= MAX_SHOWN_CHARS + 1


def test_progress_bar_states_come_on_lines_of_their_own() -> None:
    assert taken(b"\r10%", b"\r20%\r30%", b"\rdone\n") == ["\n10%", "\n30%", "\ndone\n"]
    assert taken(b"10%\r", b"20%\r", b"\nend") == ["10%", "\n20%", "\nend"]
    assert taken(b"a\r\nb", b"c") == ["a\nb", "c"]


def test_split_character_waits_for_its_other_half() -> None:
    assert taken("é".encode()[:1], "é".encode()[1:]) == ["", "é"]


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
def test_last_state_of_a_line_stays(printed: bytes, kept: bytes) -> None:
    assert folded(printed) == kept


@given(st.text(alphabet="ab\r\n", max_size=40), st.lists(st.integers(0, 40), max_size=5))
def test_folding_does_not_depend_on_chunks(text: str, cuts: list[int]) -> None:
    assert folded(text.encode(), *cuts) == folded(text.encode())


@given(st.binary(max_size=60).filter(lambda data: b"\r" not in data), st.lists(st.integers(0, 60), max_size=5))
def test_output_without_carriage_returns_is_unchanged(data: bytes, cuts: list[int]) -> None:
    assert folded(data, *cuts) == data


def test_endless_line_is_not_held_back_for_ever() -> None:
    folder = LineFolder()
    data = b"x" * (MAX_HELD_BYTES + 1)

    assert folder.feed(data) == data
    assert folder.feed(b"y\n") == b"y\n"


def test_progress_bar_of_hours_stays_small() -> None:
    folder = LineFolder()

    for number in range(20_000):
        assert folder.feed(b"\rprogress %d" % number) == b""
    assert folder.finish() == b"progress 19999"
