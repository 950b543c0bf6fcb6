"""Unfinished lines of clients take a bounded memory, and none of a client that left."""

from contextlib import ExitStack

import pytest

from panpan.hub.client_lines import MAX_LARGE_LINES, SMALL_LINE_BYTES, ClientLines, LineMemory
from panpan.hub.wire import WireError

LARGE = b"x" * (SMALL_LINE_BYTES + 1)
SMALL = b"x" * SMALL_LINE_BYTES


def feed(lines: ClientLines, piece: bytes) -> list[bytes]:
    return list(lines.feed(piece))


def test_large_lines_beyond_the_most_are_refused() -> None:
    memory = LineMemory()
    with ExitStack() as clients:
        senders = [clients.enter_context(memory.lines()) for _ in range(MAX_LARGE_LINES)]
        other = clients.enter_context(memory.lines())
        for lines in senders:
            feed(lines, LARGE)
            feed(lines, b"more")
        with pytest.raises(WireError, match="4 other clients are sending large prompts"):
            feed(other, LARGE)


def test_small_lines_are_never_refused() -> None:
    memory = LineMemory()
    with ExitStack() as clients:
        for _ in range(MAX_LARGE_LINES):
            feed(clients.enter_context(memory.lines()), LARGE)
        for _ in range(100):
            feed(clients.enter_context(memory.lines()), SMALL)


def test_large_line_that_is_whole_makes_room() -> None:
    memory = LineMemory()
    with ExitStack() as clients:
        senders = [clients.enter_context(memory.lines()) for _ in range(MAX_LARGE_LINES)]
        for lines in senders:
            feed(lines, LARGE)
        assert feed(senders[0], b"\n") == [LARGE]
        feed(clients.enter_context(memory.lines()), LARGE)


def test_client_that_left_makes_room() -> None:
    memory = LineMemory()
    for _ in range(MAX_LARGE_LINES + 1):
        with memory.lines() as lines:
            feed(lines, LARGE)


def test_line_beyond_the_most_is_refused_after_those_before_it() -> None:
    whole = []
    with LineMemory(10).lines() as lines, pytest.raises(WireError, match="longer than 10 bytes"):
        for line in lines.feed(b"short\n" + b"x" * 11):
            whole.append(line)

    assert whole == [b"short"]
