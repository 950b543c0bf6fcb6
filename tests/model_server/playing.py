"""Writes one reply as a chunked body of server-sent events, with its faults at their places."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, Literal, TypeAlias

from tests.model_server.script import Cut, Fault, Hold, Inject, Position, Reply, Stall, StreamFailure
from tests.model_server.wire import Dialect, WireEvent

_BULK_BYTES = 65_536
_HOLD_CHECK_S = 0.01

Ending: TypeAlias = Literal["whole", "close", "reset"]
"""End of a body: with its last chunk, or with the connection."""


class ClientLeftError(Exception):
    """The client closed the connection, or the server is stopping, in the middle of a pause."""


class Playback:
    """One reply that is being sent.

    Args:
        reply: The reply to play.
        dialect: Encodes its events.
        write: Sends bytes at once.
        wait: Pauses for seconds, or for ever.
    """

    def __init__(
        self, reply: Reply, dialect: Dialect, write: Callable[[bytes], Any], wait: Callable[[float | None], None]
    ) -> None:
        self._reply = reply
        self._dialect = dialect
        self._write = write
        self._wait = wait
        self._waiting = bytearray()

    def play(self, body: dict[str, Any], unique: str) -> Ending:
        """Send the events of the reply to `body`, and return the end of the answer's body."""
        reply = self._reply
        if reply.first_delay_s:
            self._wait(reply.first_delay_s)
        for position, (event, faults) in enumerate(self._with_faults(self._dialect.events(reply, body, unique))):
            if event is not None:
                if position and reply.delta_delay_s:
                    self._flush()
                    self._wait(reply.delta_delay_s)
                self._send(event.data)
            for fault in faults:
                ending = self._meet(fault)
                if ending is not None:
                    return ending
        self._flush()
        return "whole"

    def _with_faults(self, events: Iterator[WireEvent]) -> Iterator[tuple[WireEvent | None, list[Fault]]]:
        """Yield each event with the faults that come after it; None is the time before the first event."""
        left = list(self._reply.faults)
        if any(isinstance(fault.at, int) and fault.at < 0 for fault in left):
            events = iter(held := list(events))
            left = [_from_start(fault, len(held)) for fault in left]
        for number, event in enumerate(chain((None,), events)):
            delta = event.delta if event is not None else ""
            due = [fault for fault in left if _is_due(fault.at, number, delta)]
            left = [fault for fault in left if fault not in due]
            yield event, due
        if left:
            raise ValueError(f"the reply ended before these could happen: {left}")

    def _meet(self, fault: Fault) -> Ending | None:
        match fault:
            case Cut(how=how):
                self._flush()
                return "whole" if how == "clean" else how
            case Stall(seconds=seconds):
                self._flush()
                self._wait(seconds)
            case Hold(until=event):
                self._flush()
                while not event.is_set():
                    self._wait(_HOLD_CHECK_S)
            case StreamFailure():
                self._send(self._dialect.failure_event(fault))
                self._flush()
                return "whole"
            case Inject(what="malformed"):
                self._send(self._dialect.malformed_event())
            case Inject(what="unknown"):
                self._send(self._dialect.unknown_event())
            case Inject(what="ping"):
                self._send(self._dialect.ping())
            case Inject(what="comment"):
                self._send(b": nothing to see\n\n")
            case Inject(what=bytes() as data):
                self._send(data)
        return None

    def _send(self, data: bytes) -> None:
        writes = self._reply.writes
        if writes == "events":
            self._write_chunk(data)
            return
        self._waiting += data
        size = _BULK_BYTES if writes == "bulk" else writes
        while len(self._waiting) >= size:
            self._write_chunk(bytes(self._waiting[:size]))
            del self._waiting[:size]

    def _flush(self) -> None:
        if self._waiting:
            self._write_chunk(bytes(self._waiting))
            self._waiting.clear()

    def _write_chunk(self, data: bytes) -> None:
        self._write(b"%x\r\n%b\r\n" % (len(data), data))


def _is_due(at: Position, number: int, delta: str) -> bool:
    return number == at if isinstance(at, int) else delta == at


def _from_start(fault: Fault, count: int) -> Fault:
    """Return the fault with a position that counts from the start."""
    if not isinstance(fault.at, int) or fault.at >= 0:
        return fault
    return replace(fault, at=count + fault.at)
