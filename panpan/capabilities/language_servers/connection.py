"""One conversation in JSON-RPC with a process: requests and their answers, what it tells, what it asks.

The rule: nothing that a server does costs more than the request that waits for it. Each request has a bounded time,
what waits to be sent has a bounded size, and a server that sends nonsense or never stops is given up.
"""

import json
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from typing import Any

import anyio
from anyio import to_thread
from anyio.lowlevel import checkpoint

from panpan.errors import ToolError
from panpan.system.processes.process import OutputPipe
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass

# Anything that is not a message, or is too large for one, is an error at once: nobody can tell where the next message
# begins.

MAX_BODY_BYTES = 32_000_000
MAX_HEADER_BYTES = 4_096


class FramingError(Exception):
    """The server sent something that is not a message; the text completes the sentence "the server sent …"."""


def frame_message(message: Mapping[str, Any]) -> bytes:
    """Return a message as it is sent."""
    body = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, separators=(",", ":"))
    data = body.encode("utf-8", "replace")  # JSON cannot hold half of a surrogate pair, as in a damaged file
    return b"Content-Length: %d\r\n\r\n%b" % (len(data), data)


class FrameReader:
    """Puts the pieces of a stream together."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._body_bytes: int | None = None
        """Length of the body whose header has been read; None while no header is complete."""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Take a piece, and yield the bodies that are whole now. Raise FramingError if it is none of a message."""
        self._buffer += chunk
        while True:
            if self._body_bytes is None:
                self._read_header()
            if self._body_bytes is None or len(self._buffer) < self._body_bytes:
                return
            body = bytes(self._buffer[: self._body_bytes])
            del self._buffer[: self._body_bytes]
            self._body_bytes = None
            yield body

    def _read_header(self) -> None:
        end = self._buffer.find(b"\r\n\r\n", 0, MAX_HEADER_BYTES)
        if end < 0:
            if len(self._buffer) >= MAX_HEADER_BYTES:
                raise FramingError("something that is not a message")
            return
        self._body_bytes = _length(bytes(self._buffer[:end]))
        del self._buffer[: end + 4]


def _length(header: bytes) -> int:
    for line in header.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        if not colon:
            raise FramingError("something that is not a message")
        if name.strip().lower() == b"content-length":
            digits = value.strip()
            if not digits.isdigit() or len(digits) > 12:
                raise FramingError("a message without a length")
            if int(digits) > MAX_BODY_BYTES:
                raise FramingError(f"a message of {int(digits):,} bytes, and at most {MAX_BODY_BYTES:,} are read")
            return int(digits)
    raise FramingError("a message without a length")


def parse_body(body: bytes) -> dict[str, Any]:
    """Return the parsed body. Raise FramingError if it is not a JSON object."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as exc:
        raise FramingError("a message that is not JSON") from exc
    if not isinstance(message, dict):
        raise FramingError("a message that is not an object")
    return message


MAX_OUTBOX_BYTES = 64_000_000
MAX_OPEN_REQUESTS = 64
FLOOD_BYTES = 256_000_000
FLOOD_S = 30.0

_LARGE_BODY_BYTES = 500_000
"""Larger bodies are parsed in a worker thread."""
_WRITE_BYTES = 1 << 16
_MAX_MESSAGE_CHARS = 300
_TRY_AGAIN = frozenset({-32801, -32802})
"""ContentModified and ServerCancelled: the answer would be old, ask again (LSP 3.17)."""
_MOST_TRIES = 4
_PAUSE_S = 0.1
_MOST_UNANSWERED = 3
"""Requests in a row whose time was up without a byte of the server; one that is only slow says something meanwhile."""


class ServerGoneError(ToolError):
    """The server answers no more; the text says why."""


@dataclass(slots=True)
class _Waiting:
    """A request that has no answer yet."""

    answered: anyio.Event = field(default_factory=anyio.Event)
    result: Any = None
    error: Mapping[str, Any] | None = None


class Connection:
    """The two ends of a conversation. `read` and `write` run beside whoever asks.

    `told`: given each notification: its method and parameters. `asked`: answers what the server asks, by method and
    parameters; raises KeyError for what it does not know. `ended`: told once, why it answers no more, before anybody
    who waits for an answer is. `flood_bytes`: a server that sends more within `FLOOD_S` is given up. `outbox_bytes`:
    one that leaves more of what it is sent unread is, too.
    """

    def __init__(
        self,
        name: str,
        output: OutputPipe,
        input_fd: int,
        *,
        told: Callable[[str, Any], None],
        asked: Callable[[str, Any], Any],
        ended: Callable[[str], None],
        flood_bytes: int = FLOOD_BYTES,
        outbox_bytes: int = MAX_OUTBOX_BYTES,
    ) -> None:
        self.name = name
        self.gone = ""
        """Reason why the server no longer answers; empty while it does."""
        self._output = output
        self._input_fd = input_fd
        self._told = told
        self._asked = asked
        self._ended = ended
        self._flood_bytes = flood_bytes
        self._max_outbox_bytes = outbox_bytes
        self._waiting: dict[int, _Waiting] = {}
        self._last_id = 0
        self._outbox: deque[bytes] = deque()
        self._outbox_bytes = 0
        self._has_output = anyio.Event()
        self._unanswered = 0
        self._received = 0
        self._counted_since = 0.0

    def give_up(self, why: str) -> None:
        """Answer all that wait with an error; nothing is sent from now on."""
        if self.gone:
            return
        self.gone = why
        for waiting in self._waiting.values():
            waiting.answered.set()
        self._has_output.set()
        self._ended(why)

    def notify(self, method: str, params: Any = None) -> None:
        """Tell the server something. Raise Gone if it answers no more."""
        self._send({"method": method} if params is None else {"method": method, "params": params})

    async def request(self, method: str, params: Any, *, timeout_s: float) -> Any:
        """Ask the server and return its answer, as it came.

        Raises:
            ToolError: It refuses, or does not answer in time; `ServerGoneError` where it never will.
        """
        with anyio.move_on_after(timeout_s):
            for attempt in range(_MOST_TRIES):
                waiting = await self._answered(method, params)
                if waiting.error is None:
                    return waiting.result
                if not _is_worth_another(waiting.error) or attempt == _MOST_TRIES - 1:
                    raise ToolError(f"{self.name} refuses {method}: {_words(waiting.error.get('message'))}")
                await anyio.sleep(_PAUSE_S * 2**attempt)
        why = f"{self.name} did not answer {method} within {timeout_s:g} s"
        self._unanswered += 1
        if self._unanswered >= _MOST_UNANSWERED:
            self.give_up(f"{why}, and nothing else for {_MOST_UNANSWERED} requests")
        raise ToolError(why)

    async def _answered(self, method: str, params: Any) -> _Waiting:
        if len(self._waiting) >= MAX_OPEN_REQUESTS:
            raise ToolError(f"{self.name} has left {MAX_OPEN_REQUESTS} requests unanswered; try again later")
        self._last_id += 1
        number = self._last_id
        self._send({"id": number, "method": method, **({} if params is None else {"params": params})})
        waiting = self._waiting[number] = _Waiting()
        try:
            await waiting.answered.wait()
        finally:
            del self._waiting[number]
            if not waiting.answered.is_set():
                with suppress(ServerGoneError):
                    self._send({"method": "$/cancelRequest", "params": {"id": number}})
        if self.gone:
            raise ServerGoneError(self.gone)
        return waiting

    def _send(self, message: Mapping[str, Any]) -> None:
        if self.gone:
            raise ServerGoneError(self.gone)
        data = frame_message(message)
        if self._outbox_bytes + len(data) > self._max_outbox_bytes:
            self.give_up(f"{self.name} does not read what it is sent")
            raise ServerGoneError(self.gone)
        self._outbox.append(data)
        self._outbox_bytes += len(data)
        self._has_output.set()

    async def write(self) -> None:
        """Send what is to be sent, until the server is gone."""
        while not self.gone:
            if not self._outbox:
                self._has_output = anyio.Event()
                await self._has_output.wait()
                continue
            left = memoryview(self._outbox.popleft())
            self._outbox_bytes -= len(left)
            while left:
                try:
                    left = left[os.write(self._input_fd, left[:_WRITE_BYTES]) :]
                except BlockingIOError:
                    await anyio.wait_writable(self._input_fd)
                except OSError:  # the server has closed its input; its output explains more
                    return

    async def read(self) -> None:
        """Handle the server's messages until it is gone."""
        reader = FrameReader()
        try:
            while not self.gone:
                chunk = self._output.read()
                if chunk is None:
                    await anyio.wait_readable(self._output.fd)
                    continue
                if not chunk:
                    return
                self._unanswered = 0
                self._count(len(chunk))
                for body in reader.feed(chunk):
                    is_large = len(body) > _LARGE_BODY_BYTES
                    self._take(await to_thread.run_sync(parse_body, body) if is_large else parse_body(body))
                    await checkpoint()
                await checkpoint()
        except FramingError as exc:
            self.give_up(f"{self.name} sent {exc}")

    def _count(self, size: int) -> None:
        now = anyio.current_time()
        if now - self._counted_since > FLOOD_S:
            self._counted_since, self._received = now, 0
        self._received += size
        if self._received > self._flood_bytes:
            raise FramingError(f"more than {self._flood_bytes:,} bytes in {FLOOD_S:g} s")

    def _take(self, message: dict[str, Any]) -> None:
        method, number = message.get("method"), message.get("id")
        if isinstance(method, str):
            if number is None:
                self._told(method, message.get("params"))
            else:
                self._answer(method, number, message.get("params"))
            return
        waiting = self._waiting.get(number) if isinstance(number, int) else None
        if waiting is None or waiting.answered.is_set():
            return  # nobody waits for this request any more, or ever did
        error = message.get("error")
        waiting.error = error if isinstance(error, dict) else None if error is None else {"message": error}
        waiting.result = message.get("result")
        waiting.answered.set()

    def _answer(self, method: str, number: Any, params: Any) -> None:
        try:
            answer: dict[str, Any] = {"result": self._asked(method, params)}
        except KeyError:
            answer = {"error": {"code": -32601, "message": f"there is no {method[:100]} here"}}
        try:
            self._send({"id": number, **answer})
        except ServerGoneError:
            return


def _is_worth_another(error: Mapping[str, Any]) -> bool:
    code = error.get("code")
    return isinstance(code, int) and code in _TRY_AGAIN


def _words(message: Any) -> str:
    return clean_line(str(message))[:_MAX_MESSAGE_CHARS] or "it does not say why"
