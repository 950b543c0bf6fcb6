"""Server-sent events: bytes of a stream in, whole events out, whatever the sizes in which the bytes come.

Follows the WHATWG standard (https://html.spec.whatwg.org/multipage/server-sent-events.html, section 9.2.6). The rule:
the events do not depend on how the stream was cut into chunks. Only what providers use is returned, the name and the
data of an event; `id` and `retry` concern a browser's reconnecting and are skipped. Data stay bytes, because a JSON
reader decodes them faster than we could, and because a character may not be cut at an event's border anyway.

Streams come by the ten thousand events, so the usual form, `event: x` and one line of `data: …`, takes a short way
through `bytes.split`; everything else goes line by line.
"""

from typing import NamedTuple

from panpan.errors import StreamError

MAX_EVENT_BYTES = 16 * 1024 * 1024
"""Longest event; twice what the arguments of a tool may be."""

_BOM = b"\xef\xbb\xbf"


class ServerSentEvent(NamedTuple):
    """One event; `name` is empty where the stream gave none, which the standard takes as "message".

    The data may be empty, too: servers keep a connection alive with such events.
    """

    name: bytes
    data: bytes


class SseParser:
    """Parses one stream.

    Args:
        sender: Who sends it, for messages.
        max_event_bytes: Longest event that is accepted.
    """

    def __init__(self, sender: str = "the server", *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._sender = sender
        self._max_event_bytes = max_event_bytes
        self._rest = bytearray()  # the event that has not ended yet, line ends already LF
        self._ended_in_cr = False
        self._is_at_start = True

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Return the events that end in this chunk.

        Raises:
            StreamError: An event is longer than the limit.
        """
        if self._is_at_start:
            chunk = self._without_bom(chunk)
        if self._ended_in_cr or b"\r" in chunk:
            chunk = self._with_lf(chunk)
        data = self._complete(chunk)
        events: list[ServerSentEvent] = []
        if data is not None:
            for block in data.split(b"\n\n"):
                if len(block) > self._max_event_bytes:
                    raise self._too_long()
                event = _event_of(block)
                if event is not None:
                    events.append(event)
        return events

    def finish(self) -> list[ServerSentEvent]:
        """Return the event that the end of the stream left without its blank line, if there is one.

        The standard drops it; servers exist that end with a bare `data: [DONE]`. What was cut in its middle is no JSON
        and is recognised by that.
        """
        block, self._rest = bytes(self._rest), bytearray()
        event = _event_of(block)
        return [] if event is None else [event]

    def _complete(self, chunk: bytes) -> bytes | None:
        """Return the bytes up to the last blank line, and keep those behind it; None where no event ends."""
        rest = self._rest
        if not rest:
            head, blank_line, tail = chunk.rpartition(b"\n\n")
        else:
            searched = max(0, len(rest) - 1)  # so that a long event in small chunks is not searched again and again
            rest += chunk
            if rest.find(b"\n\n", searched) < 0:
                if len(rest) > self._max_event_bytes:
                    raise self._too_long()
                return None
            head, blank_line, tail = bytes(rest).rpartition(b"\n\n")
            self._rest = rest = bytearray()
        rest += tail
        if len(rest) > self._max_event_bytes:
            raise self._too_long()
        return head if blank_line else None

    def _without_bom(self, chunk: bytes) -> bytes:
        start = bytes(self._rest) + chunk
        self._rest = bytearray()
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._rest += start
            return b""
        self._is_at_start = False
        return start.removeprefix(_BOM)

    def _with_lf(self, chunk: bytes) -> bytes:
        """Return the chunk with LF for every line end; a CR ends its line at once, and an LF after it is skipped."""
        if not chunk:
            return chunk
        if self._ended_in_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._ended_in_cr = False
            if not chunk:
                return chunk
        self._ended_in_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _too_long(self) -> StreamError:
        return StreamError(f"{self._sender} sent an event of more than {self._max_event_bytes:,} bytes")


def _event_of(block: bytes) -> ServerSentEvent | None:
    """Return the event that these lines make, or None where they have no line of data."""
    name = b""
    data = block
    if block.startswith(b"event: "):
        name, _, data = block.partition(b"\n")
        name = name[7:]
    if data.startswith(b"data: ") and b"\n" not in data:
        return ServerSentEvent(name, data[6:])
    return _event_of_lines(block.split(b"\n"))


def _event_of_lines(lines: list[bytes]) -> ServerSentEvent | None:
    name = b""
    data: list[bytes] = []
    for line in lines:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
    return ServerSentEvent(name, b"\n".join(data)) if data else None
