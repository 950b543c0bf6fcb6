"""Ways to a server: the pipes of a program, or HTTP, as the streams of messages that the library `mcp` reads.

The rule: a server that sends nonsense, a line without end, or nothing at all costs its own connection and nothing else.
"""

import json
import os
from collections.abc import AsyncGenerator, Callable
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
from mcp_types import JSONRPCResponse, jsonrpc_message_adapter

from panpan.capabilities.mcp.entries import ServerEntry
from panpan.system.sandbox.server_process import ServerProcess
from panpan.system.text.terminal_text import clean_line

Streams: TypeAlias = tuple[Any, Any]
"""Messages of the server, and those for it (`mcp.client.Transport`)."""

MAX_LINE_BYTES = 64_000_000
"""Longest message of a program."""
MOST_BAD_LINES = 3
"""Lines that are no messages, as of a program that prints greetings, after which it is given up."""
_LARGE_BYTES = 500_000
"""Larger messages are parsed in a worker thread."""
_WRITE_BYTES = 1 << 16
_MAX_SHOWN_CHARS = 200


class LineReader:
    """Puts the pieces of a program's output together to lines."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take a piece, and return the lines that are whole now.

        Raises:
            ValueError: A line is too long.
        """
        self._buffer += chunk
        lines: list[bytes] = []
        while (end := self._buffer.find(b"\n", self._searched)) >= 0:
            lines.append(bytes(self._buffer[:end]))
            del self._buffer[: end + 1]
            self._searched = 0
        self._searched = len(self._buffer)
        if len(self._buffer) > MAX_LINE_BYTES:
            raise ValueError(f"a message of more than {MAX_LINE_BYTES:,} bytes")
        return lines


@asynccontextmanager
async def program_streams(process: ServerProcess, gone: Callable[[str], None]) -> AsyncGenerator[Streams, None]:
    """Give the streams of a program that runs.

    Args:
        process: The program.
        gone: Told why it sends no more.
    """
    put, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, take = anyio.create_memory_object_stream[SessionMessage](0)
    async with create_task_group() as group:
        group.start_soon(_read, process, put, gone)
        group.start_soon(_write, process, take)
        try:
            yield incoming, outgoing
        finally:
            group.cancel_scope.cancel("the server is not needed any more")
    for stream in (put, incoming, outgoing, take):
        stream.close()


async def _read(
    process: ServerProcess, put: ObjectSendStream[SessionMessage | Exception], gone: Callable[[str], None]
) -> None:
    lines, bad, pipe = LineReader(), [], process.child.stdout
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
                whole = lines.feed(chunk)
            except ValueError as error:
                gone(f"sent {error}")
                return
            for line in filter(bytes.strip, whole):
                is_large = len(line) > _LARGE_BYTES
                message = await to_thread.run_sync(parse_message, line) if is_large else parse_message(line)
                if message is None:
                    bad.append(clean_line(line[: 4 * _MAX_SHOWN_CHARS].decode("utf-8", "replace"))[:_MAX_SHOWN_CHARS])
                    if len(bad) >= MOST_BAD_LINES:
                        gone(f"prints what is no message: {' / '.join(bad)}")
                        return
                    continue
                try:
                    await put.send(message)
                except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                    return
            await checkpoint()


async def _write(process: ServerProcess, take: ObjectReceiveStream[SessionMessage]) -> None:
    async with take:
        async for one in take:
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
        return with_result_type(
            SessionMessage(jsonrpc_message_adapter.validate_python(json.loads(line), by_name=False))
        )
    except (ValueError, RecursionError):
        return None


def with_result_type(message: SessionMessage) -> SessionMessage:
    """Return a message whose result says what kind of result it is.

    A result without `resultType` is complete (MCP 2026-07-28); the library refuses it.
    """
    answer = message.message
    if isinstance(answer, JSONRPCResponse):
        answer.result.setdefault("resultType", "complete")
    return message


class _Completed(ObjectReceiveStream[SessionMessage | Exception]):
    """A stream of messages, each with its kind of result."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    @property
    def last_context(self) -> Any:
        """The context of the sender, for the library."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        message: SessionMessage | Exception = await self._stream.receive()
        return with_result_type(message) if isinstance(message, SessionMessage) else message

    async def aclose(self) -> None:
        await self._stream.aclose()


@asynccontextmanager
async def http_streams(entry: ServerEntry, client: Callable[..., httpx2.AsyncClient]) -> AsyncGenerator[Streams, None]:
    """Give the streams of a server that is spoken to by HTTP.

    Args:
        entry: The server.
        client: Makes the client for its requests.
    """
    url = entry.settings.url or ""
    if entry.transport == "sse":
        async with sse_client(url, httpx_client_factory=client) as (incoming, outgoing):
            yield _Completed(incoming), outgoing
        return
    async with client() as http, streamable_http_client(url, http_client=http) as (incoming, outgoing):
        yield _Completed(incoming), outgoing
