"""One side of an exchange over HTTP/1.1: a stream of bytes, and the events that h11 makes of it.

The rule: what cannot be read as HTTP is an error of the side that sent it, and is never passed on.
"""

from contextlib import suppress

import h11
from anyio import BrokenResourceError, ClosedResourceError, EndOfStream
from anyio.abc import ByteStream
from anyio.lowlevel import checkpoint

GONE = (BrokenResourceError, ClosedResourceError, EndOfStream, OSError)
"""What a connection raises whose other side has left."""


class HttpSide:
    """A stream, and what h11 makes of it.

    Args:
        stream: The connection.
        role: Which side this program is.
        max_head_bytes: Most that the other side may send before a line, head or chunk of it is whole.
    """

    def __init__(self, stream: ByteStream, role: type[h11.CLIENT] | type[h11.SERVER], max_head_bytes: int) -> None:
        self.stream = stream
        self.http = h11.Connection(role, max_incomplete_event_size=max_head_bytes)

    async def next_event(self) -> h11.Event:
        await checkpoint()  # thousands of events can be in what has arrived already, and others want their turn
        while not isinstance(event := self.http.next_event(), h11.Event):
            try:
                self.http.receive_data(await self.stream.receive())
            except EndOfStream:
                self.http.receive_data(b"")
        return event

    async def send(self, event: h11.Event) -> None:
        if data := self.http.send(event):
            await self.stream.send(data)

    async def took(self, event: h11.Event) -> bool:
        """Send it; False where the other side has left."""
        with suppress(*GONE):
            await self.send(event)
            return True
        return False
