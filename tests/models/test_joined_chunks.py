"""Joined chunks: the same answer and the same faults as without, in as many pieces as there were reads."""

from collections.abc import Sequence
from typing import Any

import h11
import httpcore2
import httpx2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from panpan.models.joined_chunks import ChunkJoiner, join_chunks

HEADS = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-type: a\r\ntransfer-encoding:chunked \r\nb: c\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    ]
)
PIECES = st.one_of(
    st.binary(min_size=1, max_size=30).map(lambda data: b"%x\r\n%b\r\n" % (len(data), data)),
    st.sampled_from(
        [
            b"5;a=b\r\nhello\r\n",
            b"0\r\n\r\n",
            b"0\r\na: b\r\n\r\n",
            b"005\r\nhello\r\n",
            b"+5\r\n",
            b"5\r\nhelloXX",
            b"\r\n",
        ]
    ),
    st.binary(max_size=12),
    st.just(b"%x\r\n%b\r\n" % (70_000, b"x" * 70_000)),
)


def parsed(reads: Sequence[bytes]) -> tuple[list[object], bytes, str]:
    """Return what h11 makes of an answer: its events without their data, all data, and the error."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
    connection.send(h11.EndOfMessage())
    events: list[object] = []
    data = b""
    try:
        for read in (*reads, b""):
            connection.receive_data(read)
            while (event := connection.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
                if isinstance(event, h11.Data):
                    data += bytes(event.data)
                else:
                    events.append(event)
                if isinstance(event, h11.ConnectionClosed | h11.EndOfMessage):
                    return events, data, ""
    except h11.RemoteProtocolError as error:
        return events, data, str(error)
    return events, data, "the answer is not over"


def cut(data: bytes, lengths: Sequence[int]) -> list[bytes]:
    reads, start = [], 0
    for length in lengths:
        reads.append(data[start : start + length])
        start += length
    return [read for read in (*reads, data[start:]) if read]


@given(HEADS, st.lists(PIECES, max_size=8), st.lists(st.integers(1, 60), max_size=40))
@example(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", [b"5\r\nhello\r\n"] * 3 + [b"0\r\n\r\n"], [])
def test_joiner_changes_neither_the_answer_nor_its_fault(head: bytes, pieces: list[bytes], lengths: list[int]) -> None:
    joiner = ChunkJoiner()
    joiner.begin()
    reads = cut(head + b"".join(pieces), lengths)

    joined = [joiner.feed(read) for read in (*reads, b"")]

    assert parsed([read for read in joined if read]) == parsed(reads)


def test_joiner_gives_one_chunk_for_each_read() -> None:
    joiner = ChunkJoiner()
    joiner.begin()

    head = joiner.feed(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    first = joiner.feed(b"3\r\none\r\n3\r\ntwo\r\n5\r\nth")
    second = joiner.feed(b"ree\r\n")
    last = joiner.feed(b"4\r\nfour\r\n0\r\n\r\n")

    assert head.endswith(b"\r\n\r\n")
    assert (first, second, last) == (b"6\r\nonetwo\r\n", b"5\r\nthree\r\n", b"4\r\nfour\r\n0\r\n\r\n")


def test_joiner_reads_the_next_answer_of_a_connection() -> None:
    joiner = ChunkJoiner()
    answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n"

    joined = []
    for _ in range(2):
        joiner.begin()
        joined.append(joiner.feed(answer))

    assert joined == [answer.replace(b"1\r\na\r\n1\r\nb\r\n", b"2\r\nab\r\n")] * 2


def test_joiner_holds_back_nothing_that_is_not_an_answer() -> None:
    for data in (b"\x05\x00", b"HTTP/1.1 200 OK\ncontent-length: 2\n\nhi", b"x"):
        joiner = ChunkJoiner()
        joiner.begin()
        assert joiner.feed(data) == data


def test_joiner_reads_thousands_of_early_hints() -> None:
    joiner = ChunkJoiner()
    joiner.begin()
    hints = b"HTTP/1.1 100 Continue\r\n\r\n" * 5_000

    assert joiner.feed(hints) == hints


def test_joiner_leaves_another_protocol_alone() -> None:
    joiner = ChunkJoiner()
    joiner.begin()
    joiner.feed(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: a\r\n\r\n")
    joiner.begin()

    assert joiner.feed(b"no head at all") == b"no head at all"


class Recorded(httpcore2.AsyncMockStream):
    """A connection that notes what is written to it, write by write."""

    def __init__(self) -> None:
        super().__init__([b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"])
        self.writes: list[bytes] = []

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if buffer:
            self.writes.append(buffer)


class RecordedBackend(httpcore2.AsyncMockBackend):
    """Opens one such connection."""

    def __init__(self) -> None:
        super().__init__([])
        self.stream = Recorded()

    async def connect_tcp(self, *args: Any, **kwargs: Any) -> httpcore2.AsyncNetworkStream:
        return self.stream


@pytest.mark.parametrize(("method", "body"), [("POST", b'{"a": 1}'), ("POST", b""), ("GET", b"")])
async def test_request_goes_out_in_one_write(method: str, body: bytes) -> None:
    backend = RecordedBackend()
    async with httpx2.AsyncClient(trust_env=False) as client:
        client._transport._pool._network_backend = backend  # type: ignore[attr-defined]
        join_chunks(client)

        response = await client.request(method, "http://a/b", content=body)

    assert response.content == b"ok"
    (written,) = backend.stream.writes
    assert written.startswith(f"{method} /b HTTP/1.1\r\n".encode())
    assert written.endswith(b"\r\n\r\n" + body)
