"""Messages survive every cut of the stream, and what is none is noticed at once."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.language_servers.connection import FrameReader, FramingError, frame_message, parse_body

MESSAGES = st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=20) | st.integers(), max_size=3), max_size=4)


@given(MESSAGES, st.lists(st.integers(0, 400), max_size=8))
def test_frames_round_trip_in_any_chunks(messages: list[dict[str, str | int]], cuts: list[int]) -> None:
    stream = b"".join(frame_message({"params": message}) for message in messages)
    places = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    reader = FrameReader()

    bodies = [body for start, end in pairwise(places) for body in reader.feed(stream[start:end])]

    assert [parse_body(body)["params"] for body in bodies] == messages


@pytest.mark.parametrize(
    "stream",
    [
        b"Content-Length: x\r\n\r\n",
        b"Content-Length: -5\r\n\r\n",
        b"Content-Length: 99999999999\r\n\r\n",
        b"Content-Type: text\r\n\r\n{}",
        b"hello\r\n\r\n",
        b"x" * 5_000,
    ],
)
def test_stream_without_a_message_is_an_error(stream: bytes) -> None:
    with pytest.raises(FramingError):
        list(FrameReader().feed(stream))


@pytest.mark.parametrize("body", [b"", b"[1]", b"{", b'"x"', b"\xff", b"[" * 100_000])
def test_body_that_is_no_object_is_an_error(body: bytes) -> None:
    with pytest.raises(FramingError):
        parse_body(body)


def test_half_surrogate_does_not_break_a_message() -> None:
    message = frame_message({"text": "a\ud83d"})

    body = next(FrameReader().feed(message))

    assert json.loads(body)["text"] == "a?"
