"""The message bus: requests, responses and events between two ends, over any transport.

Lines are those of `wire.py`. The rule: a request ends with a response, an error, its time, or the end of the transport;
nothing waits for an end that is gone.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Protocol

import anyio
from anyio import BrokenResourceError, ClosedResourceError, EndOfStream, create_memory_object_stream
from anyio.streams.stapled import StapledObjectStream

from panpan.core.event_channel import EventChannel
from panpan.errors import PanpanError
from panpan.hub.wire import Line, WireError, line_of, parse_line

GONE = (EndOfStream, ClosedResourceError, BrokenResourceError)
"""Errors that say that the other end has left."""
REQUEST_S = 30.0
"""Seconds that the other end has for a response."""
DIRECT_LINES = 1_000
"""Lines that wait between two ends in one process."""


class Transport(Protocol):
    """Carries bytes between two ends: a Unix socket, a WebSocket, or a pair in one process."""

    async def receive(self) -> bytes:
        """Return the next bytes, of any part of a line or several; raise one of `GONE` at the end."""
        ...

    async def send(self, item: bytes) -> None:
        """Send a line; raise one of `GONE` if the other end has left."""
        ...

    async def aclose(self) -> None:
        """Close it."""
        ...


class Lines(Protocol):
    """Puts pieces together to lines."""

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the lines that a piece completes; raise WireError for a line that is too long."""
        ...


def direct_pair() -> tuple[Transport, Transport]:
    """Return two ends in one process."""
    to_second, second_in = create_memory_object_stream[bytes](DIRECT_LINES)
    to_first, first_in = create_memory_object_stream[bytes](DIRECT_LINES)
    return StapledObjectStream(to_second, first_in), StapledObjectStream(to_first, second_in)


class BusClosedError(PanpanError):
    """The other end has left, or has closed the session."""


Listener = Callable[[Line], Awaitable[None]]
"""Gets the line of an event."""


class MessageBus:
    """One end.

    Args:
        transport: The way to the other end.
        lines: Puts its lines together.
        answer: Gets each line that is no response and no event; sends what belongs to it. None to refuse requests.
        whole_s: Seconds in which a line is sent whole even if its sender is cancelled; 0 to send it in part then.
    """

    def __init__(
        self, transport: Transport, lines: Lines, answer: Listener | None = None, *, whole_s: float = 0.0
    ) -> None:
        self._transport = transport
        self._lines = lines
        self._answer = answer
        self._whole_s = whole_s
        self._ids = count(1)
        self._waiting: dict[object, EventChannel[Line]] = {}
        self._listeners: list[Listener] = []
        self._sending = anyio.Lock()
        self._is_over = False
        self.is_in_line = False
        """True if a line was begun and may not be whole."""
        self.reason = ""
        """Reason for the end; empty if the other end left without a word."""

    async def run(self) -> None:
        """Read until the other end leaves."""
        try:
            while True:
                for line in self._lines.feed(await self._transport.receive()):
                    await self._take(line)
        except GONE:
            pass
        except WireError as error:  # where the next line begins is not known
            self.reason = self.reason or str(error)
            if self._answer is not None:
                await self.respond("", error=str(error))
        finally:
            self._is_over = True
            for response in self._waiting.values():
                response.close()

    async def request(self, method: str, timeout_s: float | None = REQUEST_S, /, **params: object) -> Any:
        """Send a request and return its result.

        Args:
            method: Name of the operation.
            timeout_s: Seconds for the response; with None, only the end of the transport ends it.
            params: Its parameters.

        Raises:
            BusClosedError: The other end has left.
            PanpanError: It refuses, or does not answer in time.
        """
        if self._is_over:
            raise self._left()
        number = next(self._ids)
        response = self._waiting[number] = EventChannel[Line](1)
        try:
            with anyio.fail_after(timeout_s):
                await self._send(line_of(type="request", id=number, method=method, params=params))
                taken = await response.take()
        except TimeoutError as error:
            raise PanpanError(f"the other end did not answer {method} within {timeout_s:g} s") from error
        except (BrokenResourceError, ClosedResourceError) as error:
            raise self._left() from error
        finally:
            del self._waiting[number]
        if not taken:
            raise self._left()
        if (refused := taken[0].get("error")) is not None:
            raise PanpanError(str(refused))
        return taken[0].get("result")

    async def respond(self, request_id: object, **outcome: object) -> None:
        """Answer a request with its `result` or an `error`."""
        await self._send(line_of(type="response", id=request_id, **outcome))

    async def emit(self, event: str, data: object, event_id: object = "") -> None:
        """Send an event.

        Args:
            event: Name of the event.
            data: Its data as JSON.
            event_id: Its id, such as a number.
        """
        await self._send(line_of(type="event", id=event_id, event=event, data=data))

    @contextmanager
    def on_event(self, listener: Listener) -> Iterator[None]:
        """Give each event of the other end to a listener, inside the block."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    def _left(self) -> BusClosedError:
        return BusClosedError(self.reason or "the other end has left")

    async def _send(self, line: bytes) -> None:
        async with self._sending:
            with anyio.move_on_after(self._whole_s or None, shield=self._whole_s > 0) as scope:
                self.is_in_line = True
                await self._transport.send(line)
                self.is_in_line = False
            if scope.cancelled_caught:  # a line that is there in part would spoil the next one
                self.reason = f"the other end took nothing for {self._whole_s:.0f} s"
                await self._transport.aclose()

    async def _take(self, line: bytes) -> None:
        try:
            message = parse_line(line)
        except WireError as error:
            if self._answer is None:
                raise
            await self.respond("", error=str(error))
            return
        match message.get("type"):
            case "response" if self._answer is None or self._waiting:
                await self._take_response(message)
            case "event" if self._listeners:
                for listener in tuple(self._listeners):
                    await listener(message)
            case _ if self._answer is not None:
                await self._answer(message)
            case _:
                pass  # of a later version

    async def _take_response(self, message: Line) -> None:
        number = message.get("id")
        if number == "" and "error" in message:  # of no request: the other end closes the connection
            raise WireError(str(message["error"]))
        waiting = self._waiting.get(number) if isinstance(number, int) else None
        if waiting is not None:
            await waiting.send(message)
