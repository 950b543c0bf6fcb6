"""Ways to a server: the pipes of a program, or HTTP, as the streams of messages that the library `mcp` reads.

The rule: a server that sends nonsense, a line without end, or nothing at all costs its own connection and nothing else.
"""

import json
import math
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import anyio
import httpx2
from anyio import create_task_group, to_thread
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from anyio.lowlevel import checkpoint
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
    JSONRPCRequest,
    JSONRPCResponse,
    Tool,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from panpan.capabilities.mcp.definitions import MAX_LIST_BYTES
from panpan.capabilities.mcp.entries import ServerEntry
from panpan.errors import ToolError
from panpan.session.host import Host
from panpan.system.sandbox.server_process import ServerProcess
from panpan.system.text.lines import LineSplitter, LineTooLongError
from panpan.system.text.terminal_text import clean_line

Streams: TypeAlias = tuple[Any, Any]
"""Messages of the server, and those for it (`mcp.client.Transport`)."""

Mend: TypeAlias = Callable[[SessionMessage], SessionMessage]
"""Returns a message of a server as the library takes it."""

MAX_LINE_BYTES = 64_000_000
"""Longest message of a program."""
MAX_STATE_CHARS = 65_536
"""Longest state that a server has panpan keep while the user answers (MCP 2026-07-28)."""
MOST_QUESTIONS = 100
"""Most requests of a server at the same time."""
_MOST_LISTED = 10_000
"""Most tools that are looked at in one page of a list."""
MOST_BAD_LINES = 3
"""Lines that are no messages, as of a program that prints greetings, after which it is given up."""
_LARGE_BYTES = 500_000
"""Larger messages are parsed in a worker thread."""
_WRITE_BYTES = 1 << 16
_MAX_SHOWN_CHARS = 200


@asynccontextmanager
async def program_streams(
    process: ServerProcess, gone: Callable[[str], None], mend: Mend
) -> AsyncGenerator[Streams, None]:
    """Give the streams of a program that runs.

    Args:
        process: The program.
        gone: Told why it sends no more.
        mend: Returns each message as the library takes it.
    """
    put, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, take = anyio.create_memory_object_stream[SessionMessage](0)
    async with create_task_group() as group:
        questions = _Questions()
        group.start_soon(_read, process, put, gone, mend, questions)
        group.start_soon(_write, process, take, questions)
        try:
            yield incoming, outgoing
        finally:
            group.cancel_scope.cancel("the server is not needed any more")
    for stream in (put, incoming, outgoing, take):
        stream.close()


class _Questions:
    """Requests of a server that panpan has not answered."""

    def __init__(self) -> None:
        self.open = 0


async def _read(
    process: ServerProcess,
    put: ObjectSendStream[SessionMessage | Exception],
    gone: Callable[[str], None],
    mend: Mend,
    questions: _Questions,
) -> None:
    lines, bad, pipe = LineSplitter(MAX_LINE_BYTES), [], process.child.stdout
    async with put:
        while True:
            chunk = pipe.read()
            if chunk is None:
                await anyio.wait_readable(pipe.fd)
                continue
            if not chunk:
                gone(await process.exit_reason())
                return
            try:
                whole = list(lines.feed(chunk))
            except LineTooLongError:
                gone(f"sent a message of more than {MAX_LINE_BYTES:,} bytes")
                return
            for line in whole:
                is_large = len(line) > _LARGE_BYTES
                message = await to_thread.run_sync(parse_message, line) if is_large else parse_message(line)
                if message is None and b'"jsonrpc"' in line[:_LARGE_BYTES]:
                    gone("sent a message that cannot be read")
                    return
                if message is None:
                    bad.append(clean_line(line[: 4 * _MAX_SHOWN_CHARS].decode("utf-8", "replace"))[:_MAX_SHOWN_CHARS])
                    if len(bad) >= MOST_BAD_LINES:
                        gone(f"prints what is no message: {' / '.join(bad)}")
                        return
                    continue
                questions.open += isinstance(message.message, JSONRPCRequest)
                if questions.open > MOST_QUESTIONS:
                    gone(f"asks more than {MOST_QUESTIONS} things at once")
                    return
                try:
                    await put.send(mend(message))
                except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                    return
            await checkpoint()


async def _write(process: ServerProcess, take: ObjectReceiveStream[SessionMessage], questions: _Questions) -> None:
    async with take:
        async for one in take:
            questions.open -= isinstance(one.message, JSONRPCResponse | JSONRPCError)
            left = memoryview(one.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            while left:
                try:
                    left = left[os.write(process.input_fd, left[:_WRITE_BYTES]) :]
                except BlockingIOError:
                    await anyio.wait_writable(process.input_fd)
                except OSError:  # it has closed its input; its output explains more
                    return


def parse_message(line: bytes) -> SessionMessage | None:
    """Return the message in a line; None if it is none."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_python(json.loads(line), by_name=False))
    except (ValueError, RecursionError):
        return None


class Mender:
    """Makes messages of servers such that the library takes them, and nothing in them costs more than itself."""

    def __init__(self) -> None:
        self.left_out: list[str] = []
        """Tools that are not as the protocol says, each with the reason."""
        self.room = MAX_LIST_BYTES
        """Bytes of definitions that are still taken."""

    def begin(self) -> None:
        """Take a new list of tools."""
        self.left_out.clear()
        self.room = MAX_LIST_BYTES

    def __call__(self, message: SessionMessage) -> SessionMessage:
        """Return a message.

        A result without `resultType` is complete (MCP 2026-07-28), but the library refuses it. It refuses a whole list
        for one tool, and checks results by the schemas of servers, whose patterns may take for ever.
        """
        answer = message.message
        if isinstance(answer, JSONRPCResponse):
            answer.result.setdefault("resultType", "complete")
            if len(str(answer.result.get("requestState", ""))) > MAX_STATE_CHARS:
                why = ErrorData(code=INVALID_REQUEST, message=f"its state has more than {MAX_STATE_CHARS:,} characters")
                return SessionMessage(JSONRPCError(jsonrpc="2.0", id=answer.id, error=why))
            if isinstance(tools := answer.result.get("tools"), list):
                answer.result["tools"] = [tool for one in tools[:_MOST_LISTED] if (tool := self._tool(one)) is not None]
        return message

    def _tool(self, written: Any) -> Any:
        """Return a tool without the schema of its results; None if it is not as the protocol says."""
        try:
            self.room -= len(json.dumps(written))
            if self.room < 0:
                return None
            Tool.model_validate(written, by_name=False)
        except (ValidationError, RecursionError) as error:
            why = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else "it is too deep"
            return self._leave_out(written, why)
        schema = written["inputSchema"]
        fields = schema.get("properties", {})
        if schema.get("type") != "object" or not isinstance(fields, dict):
            return self._leave_out(written, "its schema is not that of an object")
        if not all(isinstance(field, dict) or field is True for field in fields.values()):
            return self._leave_out(written, "an argument in its schema is no schema")
        if fields:
            schema = {**schema, "properties": {name: {} if one is True else one for name, one in fields.items()}}
        return {**{key: value for key, value in written.items() if key != "outputSchema"}, "inputSchema": schema}

    def _leave_out(self, written: Any, why: str) -> None:
        name = written.get("name") if isinstance(written, dict) else written
        self.left_out.append(clean_line(f"{str(name)[:100]}: {why}"))


class _Mended(ObjectReceiveStream[SessionMessage | Exception]):
    """A stream of messages, each as the library takes it."""

    def __init__(self, stream: Any, mend: Mend) -> None:
        self._stream = stream
        self._mend = mend

    @property
    def last_context(self) -> Any:
        """The context of the sender, for the library."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        message: SessionMessage | Exception = await self._stream.receive()
        return self._mend(message) if isinstance(message, SessionMessage) else message

    async def aclose(self) -> None:
        await self._stream.aclose()


@asynccontextmanager
async def http_streams(
    entry: ServerEntry, client: Callable[..., httpx2.AsyncClient], mend: Mend
) -> AsyncGenerator[Streams, None]:
    """Give the streams of a server that is spoken to by HTTP.

    Args:
        entry: The server.
        client: Makes the client for its requests.
        mend: Returns each message as the library takes it.
    """
    url = entry.settings.url or ""
    if entry.transport == "sse":
        async with sse_client(url, httpx_client_factory=client) as (incoming, outgoing):
            yield _Mended(incoming, mend), outgoing
        return
    async with client() as http, streamable_http_client(url, http_client=http) as (incoming, outgoing):
        yield _Mended(incoming, mend), outgoing


@asynccontextmanager
async def host_streams(name: str, host: Host, mend: Mend) -> AsyncGenerator[Streams, None]:
    """Give the streams of a server in the program that runs panpan, which answers each message with at most one.

    Args:
        name: Name of the server.
        host: The program.
        mend: Returns each message as the library takes it.
    """
    put, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
    outgoing, take = anyio.create_memory_object_stream[SessionMessage](0)
    async with create_task_group() as group:
        group.start_soon(_exchange_all, name, host, take, put, mend)
        try:
            yield incoming, outgoing
        finally:
            group.cancel_scope.cancel("the server is not needed any more")
    for stream in (put, incoming, outgoing, take):
        stream.close()


async def _exchange_all(
    name: str,
    host: Host,
    take: ObjectReceiveStream[SessionMessage],
    put: ObjectSendStream[SessionMessage | Exception],
    mend: Mend,
) -> None:
    async with create_task_group() as group:
        async for one in take:
            group.start_soon(_exchange, name, host, one, put, mend)


async def _exchange(
    name: str, host: Host, one: SessionMessage, put: ObjectSendStream[SessionMessage | Exception], mend: Mend
) -> None:
    """Send one message, and pass on the answer to a request; a program that fails answers with an error."""
    message, why = one.message, "it did not answer"
    answer: Mapping[str, Any] | None = None
    try:
        answer = await host.send_to_server(name, message.model_dump(by_alias=True, exclude_unset=True, mode="json"))
    except ToolError as error:
        why = str(error)
    if not isinstance(message, JSONRPCRequest):
        return
    answer = _failed(message, why) if answer is None else answer
    found = parse_message(json.dumps({**answer, "id": message.id}).encode())
    if found is None:
        found = parse_message(json.dumps(_failed(message, "it answered with what is no message")).encode())
    assert found is not None
    await put.send(mend(found))


def _failed(message: JSONRPCRequest, why: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message.id, "error": {"code": INTERNAL_ERROR, "message": why}}


async def bound_answer(response: httpx2.Response) -> None:
    """Let no more of an answer be read than a message may have; a stream of events has no end.

    Raises:
        ReadError: It is compressed, so that its size is not known.
    """
    if response.headers.get("content-encoding", "identity") != "identity":
        raise httpx2.ReadError("the answer is compressed, which nobody asked for")
    if response.is_error or "text/event-stream" not in response.headers.get("content-type", ""):
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _BoundedStream(response.stream)


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_LINE_BYTES
        async for chunk in self._inner:
            left -= len(chunk)
            if left < 0:
                raise httpx2.ReadError(f"the answer has more than {MAX_LINE_BYTES:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
