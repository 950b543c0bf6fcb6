from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from panpan.errors import StreamError
from panpan.models.transport import SseParser


def parse(*chunks: bytes) -> list[tuple[bytes, bytes]]:
    parser = SseParser()
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return [tuple(event) for event in events + parser.finish()]


def reference(stream: bytes) -> list[tuple[bytes, bytes]]:
    """The standard's algorithm, line by line and without speed; the last event needs no blank line."""
    text = stream.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    events, name, data = [], b"", []
    for line in [*text.split(b"\n"), b""]:
        if not line:
            if data:
                events.append((name, b"\n".join(data)))
            name, data = b"", []
            continue
        field, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if field == b"event":
            name = value
        elif field == b"data":
            data.append(value)
    return events


@pytest.mark.parametrize("line_end", [b"\n", b"\r", b"\r\n"])
def test_parser_reads_every_line_end_of_the_standard(line_end: bytes) -> None:
    stream = line_end.join([b"event: add", b"data: 1", b"data: 2", b"", b"data: 3", b"", b""])

    assert parse(stream) == [(b"add", b"1\n2"), (b"", b"3")]


def test_parser_yields_an_event_at_its_blank_line() -> None:
    parser = SseParser()

    assert parser.feed(b"data: a\r\r") == [(b"", b"a")]
    assert parser.feed(b"\ndata: b\n") == []
    assert parser.feed(b"\n") == [(b"", b"b")]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"\xef\xbb\xbfdata: after a byte order mark\n\n", [(b"", b"after a byte order mark")]),
        (b": a comment\n\n:\n\ndata: x\n: another\n\n", [(b"", b"x")]),
        (b"data:no blank\n\ndata:  two blanks\n\n", [(b"", b"no blank"), (b"", b" two blanks")]),
        (b"data\ndata\n\n", [(b"", b"\n")]),
        (b"data\n\ndata:\n\ndata: \n\n", [(b"", b""), (b"", b""), (b"", b"")]),
        (b"event: only a name\n\n", []),
        (b"id: 7\nretry: 10\nunknown: y\ndata: x\n\n", [(b"", b"x")]),
        (b"event: one\nevent: two\ndata: x\n\n", [(b"two", b"x")]),
        (b"data: x\nevent: behind\n\n", [(b"behind", b"x")]),
        (b"event: a\n\ndata: without the name before\n\n", [(b"", b"without the name before")]),
        (b" data: not a field\n\n", []),
        (b"data: a:b: c\n\n", [(b"", b"a:b: c")]),
        (b"\n\n\n\ndata: x\n\n\n\n\n", [(b"", b"x")]),
        (b"data: [DONE]", [(b"", b"[DONE]")]),
        ("data: grüße 🎈\u2028\n\n".encode(), [(b"", "grüße 🎈\u2028".encode())]),
    ],
)
def test_parser_reads_fields_as_the_standard_says(stream: bytes, events: list[tuple[bytes, bytes]]) -> None:
    assert parse(stream) == events
    assert parse(*(stream[i : i + 1] for i in range(len(stream)))) == events


PIECES = st.sampled_from(
    [b"event: x", b"data: 1", b"data:", b"data", b"\n", b"\r", b"\r\n", b"\n\n", b"\r\r", b":", b" ", b"\xef\xbb\xbf",
     b"event:", b": c", "ä€🎈".encode(), b"id: 3", b"x"]
)  # fmt: skip


@given(st.lists(PIECES).map(b"".join), st.lists(st.integers(0, 60)))
@example(b"\xef\xbb\xbfdata: x\r\n\r\n", [1, 2, 11, 12])
@example(b"data: 1\r\n\r\r\n\ndata: 2\n\n", [8, 9, 10])
def test_parser_events_do_not_depend_on_the_chunks(stream: bytes, cuts: list[int]) -> None:
    borders = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[start:end] for start, end in pairwise(borders)]

    assert parse(*chunks) == reference(stream)
    assert parse(stream) == reference(stream)


@given(st.lists(st.binary(max_size=40)), st.integers(1, 30))
def test_parser_raises_only_stream_errors(chunks: list[bytes], limit: int) -> None:
    parser = SseParser(max_event_bytes=limit)
    try:
        for chunk in chunks:
            for event in parser.feed(chunk):
                assert len(event.data) <= limit
        parser.finish()
    except StreamError:
        pass


@pytest.mark.parametrize("chunk_bytes", [1, 7, 1000])
def test_parser_refuses_an_event_past_the_limit(chunk_bytes: int) -> None:
    for stream in (b"data: " + b"x" * 200, b"data: " + b"x" * 200 + b"\n\n", b"data: x\n" * 50 + b"\n"):
        parser = SseParser(max_event_bytes=100)

        with pytest.raises(StreamError, match="more than 100 bytes"):
            for i in range(0, len(stream), chunk_bytes):
                parser.feed(stream[i : i + chunk_bytes])


def test_parser_does_not_take_many_events_for_a_long_one() -> None:
    parser = SseParser(max_event_bytes=20)

    assert len(parser.feed(b"data: 12345\n\n" * 100)) == 100
