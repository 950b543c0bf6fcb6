"""The pipes to the program that runs panpan: one reader of standard input, and one writer of standard output.

The rule: the reader never waits for what it has read, and nothing waits for a program that does not read. A line that
cannot be used costs itself: it is reported, and what comes behind it counts.
"""

import json
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import count
from typing import Any

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from panpan.cli_kit.failures import TextOut, json_line
from panpan.cli_kit.stdin import StdinReader
from panpan.errors import ConfigError, PanpanError, ToolError
from panpan.types.dataclass import dataclass

MAX_LINE_BYTES = 64_000_000
"""Longest line of the input."""
MAX_UNREAD_CHARS = 4_000_000
"""Characters that wait for a program which does not read, from which on deltas are left out; nothing else is."""
MAX_WAITING = 2_000
"""Most requests that wait for an answer, in each direction."""
_LARGE_BYTES = 500_000
"""Larger lines are parsed in a worker thread."""
_DELTA = '{"type":"stream_event"'
_MAX_SHOWN_CHARS = 200


class LineQueue:
    """Lines for standard output, which are written in their order as fast as they are read.

    Args:
        out: Standard output.
    """

    def __init__(self, out: TextOut) -> None:
        self._out = out
        self._lines: deque[str] = deque()
        self._chars = 0
        self._is_writing = False
        self._has_more = anyio.Event()
        self._is_done = anyio.Event()

    def put(self, line: Mapping[str, Any]) -> None:
        """Let a line be written."""
        self._put(json_line(line))

    async def write(self, text: str) -> None:
        self._put(text)

    def _put(self, text: str) -> None:
        if self._chars > MAX_UNREAD_CHARS and text.startswith(_DELTA):
            return
        self._lines.append(text)
        self._chars += len(text)
        self._has_more.set()

    async def run(self) -> None:
        """Write until it is cancelled.

        Raises:
            BrokenPipeError: Nobody reads any more.
            OutputError: The text cannot be written.
        """
        while True:
            self._has_more = anyio.Event()
            while self._lines:
                self._is_writing = True
                text = self._lines.popleft()
                self._chars -= len(text)
                await self._out.write(text)
            self._is_writing = False
            self._is_done.set()
            self._is_done = anyio.Event()
            if not self._lines:
                await self._has_more.wait()

    async def drain(self) -> None:
        """Wait until everything is written."""
        while self._lines or self._is_writing:
            await self._is_done.wait()


@dataclass(frozen=True, slots=True)
class Request:
    """A control request of the program."""

    id: str
    subtype: str
    fields: Mapping[str, Any]


Answers = Callable[[Request], Awaitable[Mapping[str, Any]]]
"""Answers a control request; raises PanpanError with the reason if it cannot be answered."""


class _Open:
    """A request to the program that waits for its answer."""

    def __init__(self) -> None:
        self.closed = anyio.Event()
        self.answer: Mapping[str, Any] | None = None
        self.failure = ""


class Channel:
    """Speaks with the program: passes on its messages, answers its requests, and asks it.

    Args:
        stdin: Standard input.
        out: Lines for standard output.
        most_waiting: Most requests that wait for an answer, in each direction.
    """

    def __init__(self, stdin: StdinReader, out: LineQueue, most_waiting: int = MAX_WAITING) -> None:
        self.out = out
        self._stdin = stdin
        self._most_waiting = most_waiting
        self._number = 0
        """Number of the newest line, from 1."""
        self._messages: deque[tuple[bytes, int]] = deque()
        """Lines that are no part of the control protocol, with their numbers."""
        self._changed = anyio.Event()
        self.has_ended = False
        """True once the program says no more."""
        self.is_controlled = False
        """True once the program has spoken the control protocol."""
        self._open: dict[str, _Open] = {}
        self._numbers = count(1)
        self._answering: dict[str, anyio.CancelScope] = {}

    async def first(self) -> Request | None:
        """Return the request with which the program begins; None if it begins otherwise."""
        while not self.has_ended:
            found = await self._next()
            if isinstance(found, Request):
                return found
            if self._messages:
                break
        return None

    async def run(self, answers: Answers) -> None:
        """Read to the end of the input; `answers` answers the requests."""
        async with anyio.create_task_group() as group:
            while not self.has_ended:
                if isinstance(found := await self._next(), Request):
                    self.answer_soon(group, found, answers)
            self._fail_open("the program has closed its side")

    def answer_soon(self, group: TaskGroup, request: Request, answers: Answers) -> None:
        """Answer a request beside everything else."""
        group.start_soon(self._answer, request, answers)

    async def messages(self) -> AsyncGenerator[tuple[bytes, int], None]:
        """Yield the lines that are no part of the control protocol, each with its number."""
        while True:
            while self._messages:
                yield self._messages.popleft()
            if self.has_ended:
                return
            await self._changed.wait()

    @property
    def has_messages(self) -> bool:
        """True if there are lines that nobody has taken yet."""
        return bool(self._messages)

    def end(self) -> None:
        """Take nothing more in, as at the end of the input."""
        self.has_ended = True
        self._messages.clear()
        self._fail_open("the program has ended the session")
        self._wake()

    def respond(self, request_id: str, response: Mapping[str, Any]) -> None:
        """Answer a request of the program."""
        body = {"subtype": "success", "request_id": request_id, "response": dict(response)}
        self.out.put({"type": "control_response", "response": body})

    def refuse(self, request_id: str, why: str) -> None:
        """Answer a request of the program with an error."""
        body = {"subtype": "error", "request_id": request_id, "error": why}
        self.out.put({"type": "control_response", "response": body})

    def report(self, problem: str) -> None:
        """Report a line of the input that cannot be used."""
        self.out.put({"type": "system", "subtype": "input_error", "error": problem})

    async def ask(self, subtype: str, **fields: Any) -> Mapping[str, Any]:
        """Send a request to the program and return its answer, however long it takes; cancelling tells the program.

        Raises:
            ToolError: It answers with an error, says no more, or leaves too many requests without an answer.
        """
        if self.has_ended:
            raise ToolError("the program has closed its side, and cannot be asked")
        if len(self._open) >= self._most_waiting:
            raise ToolError(
                f"{self._most_waiting:,} requests wait for the program already, which has to answer them first"
            )
        request_id, one = f"panpan-{next(self._numbers)}", _Open()
        self._open[request_id] = one
        self.out.put({"type": "control_request", "request_id": request_id, "request": {"subtype": subtype, **fields}})
        try:
            await one.closed.wait()
        except anyio.get_cancelled_exc_class():
            self.out.put({"type": "control_cancel_request", "request_id": request_id})
            raise
        finally:
            del self._open[request_id]
        if one.answer is None:
            raise ToolError(one.failure)
        return one.answer

    async def _answer(self, request: Request, answers: Answers) -> None:
        if request.id in self._answering:
            self.report(f"the request {request.id[:_MAX_SHOWN_CHARS]} is being answered already")
            return
        if len(self._answering) >= self._most_waiting:
            self.refuse(
                request.id, f"{self._most_waiting:,} requests wait already; wait for answers before you send more"
            )
            return
        with anyio.CancelScope() as scope:
            self._answering[request.id] = scope
            try:
                self.respond(request.id, await answers(request))
            except PanpanError as error:
                self.refuse(request.id, str(error))
            except KeyError as error:
                self.refuse(request.id, f"the request {request.subtype} needs {error.args[0]}")
            except (TypeError, ValueError, AttributeError) as error:
                self.refuse(request.id, f"the request {request.subtype} is not as it should be: {error!r}")
            finally:
                del self._answering[request.id]

    async def _next(self) -> Request | None:
        """Take the next line; return it if it is a request."""
        try:
            line = await self._stdin.line(max_bytes=MAX_LINE_BYTES)
        except ConfigError:
            await self._stdin.skip_line()
            self._number += 1
            self.report(f"line {self._number} of the input has more than {MAX_LINE_BYTES:,} bytes; it is left out")
            return None
        if line is None:
            self.has_ended = True
            self._wake()
            return None
        self._number += 1
        if b'"control_' not in line and b'"keep_alive"' not in line:  # most are messages, which are parsed later
            self._keep(line)
            return None
        try:
            value = await to_thread.run_sync(json.loads, line) if len(line) > _LARGE_BYTES else json.loads(line)
            kind = value["type"]
        except (ValueError, KeyError, TypeError, RecursionError):
            self._keep(line)
            return None
        match kind:
            case "control_request":
                return self._request(value)
            case "control_response":
                self._take_answer(value)
            case "control_cancel_request":
                with suppress(KeyError, TypeError):
                    self._answering[value["request_id"]].cancel("the program takes its request back")
            case "keep_alive":
                pass
            case _:
                self._keep(line)
        return None

    def _keep(self, line: bytes) -> None:
        if line.strip():
            self._messages.append((line, self._number))
            self._wake()

    def _request(self, value: Mapping[str, Any]) -> Request | None:
        self.is_controlled = True
        match value:
            case {"request_id": str(id_), "request": {"subtype": str(subtype), **fields}}:
                return Request(id_, subtype, {str(name): field for name, field in fields.items()})
            case {"request_id": str(id_)}:
                self.refuse(id_, f"line {self._number} of the input is a request without a subtype")
            case _:
                self.report(f"line {self._number} of the input is a request without an id")
        return None

    def _take_answer(self, value: Mapping[str, Any]) -> None:
        match value.get("response"):
            case {"request_id": str(id_), **body}:
                one = self._open.get(id_)
            case _:
                self.report(f"line {self._number} of the input is an answer without the id of a request")
                return
        if one is None or one.closed.is_set():
            self.report(f"line {self._number} of the input answers {id_[:_MAX_SHOWN_CHARS]}, which nothing waits for")
            return
        answer = body.get("response", {})
        if body.get("subtype") == "success" and isinstance(answer, Mapping):
            one.answer = answer
        else:
            one.failure = f"the program answers: {body.get('error', 'what is no object')}"
        one.closed.set()

    def _fail_open(self, why: str) -> None:
        for one in self._open.values():
            one.failure = one.failure or why
            one.closed.set()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
