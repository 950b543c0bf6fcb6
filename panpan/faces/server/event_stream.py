"""Events over HTTP, as server-sent events.

An event has the id `EPOCH:NUMBER`, its name, and its data as on the other transports. The rule: a reader has a place in
the feed, so that one that does not read costs its buffers alone, and one that comes back goes on where it was.
"""

import json
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, Protocol

import anyio
from anyio import create_memory_object_stream, create_task_group
from anyio.streams.memory import MemoryObjectSendStream
from sse_starlette.sse import EventSourceResponse
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from panpan.hub.events import Resync
from panpan.hub.feed import Numbered, Reader
from panpan.hub.hub import Hub
from panpan.hub.open_sessions import OpenSessions
from panpan.hub.operations.table import BusyError, Caller
from panpan.hub.wire import event_as_json

PING_S = 15
"""Seconds between two signs of life."""
SEND_S = 120.0
"""Seconds after which a client that reads nothing is dropped."""
MAX_STREAMS = 192
"""Most streams at the same time, so that other requests have room, too."""
_KEPT_BYTES = 1_000_000
"""Bytes of the newest events that are kept for other readers."""
_LIMITS: Mapping[str, Any] = {"ping": PING_S, "send_timeout": SEND_S, "headers": {"Cache-Control": "no-store"}}


class EventLines:
    """Events of one session as bytes, written once for all readers.

    It does not know the hub, which would never be forgotten by those who keep the lines for as long as there is one.

    Args:
        epoch: Id of the numbering of the events.
        most_bytes: Most bytes that are kept.
    """

    def __init__(self, epoch: str, most_bytes: int = _KEPT_BYTES) -> None:
        self._epoch = epoch
        self._most_bytes = most_bytes
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        self._bytes = 0

    def of(self, one: Numbered) -> bytes:
        """Return an event as it is sent."""
        if isinstance(one.event, Resync):  # differs from reader to reader
            return self._written(one)
        if (known := self._kept.get(one.number)) is None:
            known = self._kept[one.number] = self._written(one)
            self._bytes += len(known)
            while self._bytes > self._most_bytes:
                self._bytes -= len(self._kept.popitem(last=False)[1])
        return known

    def _written(self, one: Numbered) -> bytes:
        event = event_as_json(one.event)
        return sse(f"{self._epoch}:{one.number}", event["event"], event["data"])


def sse(event_id: str, name: str, data: object) -> bytes:
    """Return a server-sent event."""
    text = json.dumps(data, separators=(",", ":"))
    head = f"id: {event_id}\r\n" if event_id else ""
    return f"{head}event: {name}\r\ndata: {text}\r\n\r\n".encode()


def place_of(hub: Hub, epoch: str, after: int | None) -> tuple[int, bool]:
    """Return the number to read on after, and whether the client may go on there.

    Args:
        hub: The hub of the session.
        epoch: Epoch of the client's number; empty for the present one.
        after: Number of the last event that it has; None to begin with the next event.
    """
    if after is None:
        return hub.feed.last, True
    goes_on = epoch in ("", hub.epoch) and after <= hub.feed.last
    return (after, True) if goes_on else (hub.feed.last, False)


class Streams:
    """Streams of a server, within a bound.

    Args:
        most: Most streams at the same time.
    """

    def __init__(self, most: int = MAX_STREAMS) -> None:
        self._most = most
        self._number = 0

    def of(self, stream: EventSourceResponse) -> Response:
        """Return a stream that counts while it is sent.

        Raises:
            BusyError: Too many are open.
        """
        if self._number >= self._most:
            raise BusyError(f"{self._most} streams of events are open; close one first")
        return _CountedStream(stream, self._counted())

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._number += 1
        try:
            yield
        finally:
            self._number -= 1


class _CountedStream(Response):
    def __init__(self, stream: EventSourceResponse, counted: AbstractContextManager[None]) -> None:
        super().__init__()
        self._stream = stream
        self._counted = counted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._counted:
            await self._stream(scope, receive, send)


def event_stream(hub: Hub, lines: EventLines, caller: Caller, *, epoch: str, after: int | None) -> EventSourceResponse:
    """Return the events of a session behind a number, until the client goes or the session is closed."""
    number, goes_on = place_of(hub, epoch, after)

    async def events() -> AsyncGenerator[bytes, None]:
        if not goes_on:  # such as after the server was started again
            yield lines.of(Numbered(number, Resync((), is_whole=False)))
        reader = hub.read(number)
        with ExitStack() as here, suppress(anyio.EndOfStream):
            if not caller.only_reads:
                here.enter_context(hub.questions.answered_by(caller.name))
            while True:
                yield b"".join(map(lines.of, _to_send(await reader.take())))

    return EventSourceResponse(events(), **_LIMITS)


def _to_send(events: Sequence[Numbered]) -> Sequence[Numbered]:
    """Leave out events before a `Resync` that tells the client to read the session again.

    They would have its number or a lower one. A connection that broke between them would hide that others are missing.
    """
    if events and isinstance(resync := events[-1].event, Resync) and not resync.is_whole:
        return events[-1:]
    return events


class Telling(Protocol):
    """Writes the events of all sessions for one client."""

    def first(self) -> bytes:
        """Return what the client gets at once."""
        ...

    def opened(self, session_id: str, hub: Hub, *, is_new: bool) -> tuple[bytes, Callable[[Numbered], bytes]]:
        """Return what tells that a session is open, and what writes its events from now on.

        Args:
            session_id: Its id.
            hub: Its hub.
            is_new: False if it was open before the client came.
        """
        ...

    def closed(self, session_id: str) -> bytes:
        """Return what tells that a session was closed."""
        ...


class _OwnLines:
    def first(self) -> bytes:
        return b""

    def opened(self, session_id: str, hub: Hub, *, is_new: bool) -> tuple[bytes, Callable[[Numbered], bytes]]:
        return sse("", "session_opened", {"session": session_id}), partial(self._line, session_id, hub.epoch)

    def closed(self, session_id: str) -> bytes:
        return sse("", "session_closed", {"session": session_id})

    def _line(self, session_id: str, epoch: str, one: Numbered) -> bytes:
        event = event_as_json(one.event)
        return sse("", event["event"], {"session": session_id, "epoch": epoch, "number": one.number, **event})


def stream_of_all(sessions: OpenSessions, telling: Telling | None = None) -> EventSourceResponse:
    """Return the events of all open sessions from now on, until the client goes.

    Args:
        sessions: The sessions of the server.
        telling: Writes them; None for events as on the other transports, each with its session.
    """
    send, receive = create_memory_object_stream[bytes](0)

    async def events() -> AsyncGenerator[bytes, None]:
        with receive:
            async for line in receive:
                yield line

    every = _AllEvents(sessions, send, telling or _OwnLines())
    return EventSourceResponse(events(), data_sender_callable=every.run, **_LIMITS)


class _AllEvents:
    """Sends the events of all sessions to one client: that one is open, all its events, and that it is closed."""

    def __init__(self, sessions: OpenSessions, send: MemoryObjectSendStream[bytes], telling: Telling) -> None:
        self._sessions = sessions
        self._stream = send
        self._telling = telling
        self._ends: dict[str, anyio.Event] = {}
        """Events that are set when a session's last event is sent, by its id."""

    async def run(self) -> None:
        """Send until the client goes."""
        known: Mapping[str, Hub] = {}
        with self._stream:
            await self._send(self._telling.first())
            async with create_task_group() as tasks:
                is_new = False
                while True:
                    change, hubs = self._sessions.next_change, self._sessions.hubs
                    for session_id, hub in hubs.items():
                        if known.get(session_id) is not hub:  # it may have been closed and opened again meanwhile
                            tasks.start_soon(self._follow, session_id, hub, hub.read(), is_new)
                    known, is_new = hubs, True
                    await change.wait()

    async def _follow(self, session_id: str, hub: Hub, reader: Reader, is_new: bool) -> None:
        before, end = self._ends.get(session_id), anyio.Event()
        self._ends[session_id] = end
        if before is not None:
            await before.wait()
        line, write = self._telling.opened(session_id, hub, is_new=is_new)
        await self._send(line)
        with suppress(anyio.EndOfStream):
            while True:
                for one in await reader.take():
                    await self._send(write(one))
        await self._send(self._telling.closed(session_id))
        end.set()
        if self._ends[session_id] is end:
            del self._ends[session_id]

    async def _send(self, line: bytes) -> None:
        if line:
            await self._stream.send(line)
