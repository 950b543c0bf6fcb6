"""The end of a login in the browser: a port of this machine that waits for the issuer's answer."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from html import escape
from typing import TypeAlias
from urllib.parse import parse_qs, urlsplit

import anyio
from anyio.abc import SocketAttribute, SocketListener, SocketStream
from anyio.lowlevel import checkpoint

from panpan.errors import ConfigError

Paste: TypeAlias = Callable[[bool], Awaitable[str]]
"""Returns the address that the browser ended at, which the user has copied; told if the one before was wrong."""

_PATH = "/callback"
_MAX_HEAD_BYTES = 32_768
_READ_S = 10.0
_MOST_CALLERS = 16
_PAUSE_S = 0.1


class Callback:
    """A port of this machine to which the issuer's page sends the browser at the end."""

    def __init__(self, port: int) -> None:
        self.address = f"http://localhost:{port}{_PATH}"
        self._state = ""
        self._answer: dict[str, str] = {}
        self._is_there = anyio.Event()
        self._callers = anyio.Semaphore(_MOST_CALLERS)

    @classmethod
    @asynccontextmanager
    async def listening(cls, port: int | None) -> "AsyncGenerator[Callback, None]":
        """Listen at a port, or at any."""
        try:
            listeners = await _listen("127.0.0.1", port or 0)
        except OSError as error:
            raise ConfigError(f"the port {port} for the browser's answer cannot be used: {error.strerror}") from error
        port = int(listeners[0].extra(SocketAttribute.local_port))
        with suppress(OSError):  # a machine without IPv6, where localhost is the other one
            listeners += await _listen("::1", port)
        async with anyio.create_task_group() as group:
            callback = cls(port)
            for listener in listeners:
                group.start_soon(callback._serve, listener)
            try:
                yield callback
            finally:
                for listener in listeners:
                    await listener.aclose()
            group.cancel_scope.cancel("the login is over")

    async def _serve(self, listener: SocketListener) -> None:
        async with anyio.create_task_group() as group:
            while True:
                await self._callers.acquire()
                try:
                    stream = await listener.accept()
                except anyio.ClosedResourceError:
                    return
                except OSError:  # such as too many open files
                    self._callers.release()
                    await anyio.sleep(_PAUSE_S)
                    continue
                group.start_soon(self._take, stream)

    def expect(self, state: str) -> None:
        """Take the answer with this state, which nobody else knows."""
        self._state = state

    async def wait(self, paste: Paste) -> Mapping[str, str]:
        """Return the answer: from the browser, or from the user who has copied it."""
        async with anyio.create_task_group() as group:

            async def take_pasted() -> None:
                is_wrong = False
                while pasted := await paste(is_wrong):
                    is_wrong = not self._take_answer(pasted)
                    await checkpoint()

            group.start_soon(take_pasted)
            await self._is_there.wait()
            group.cancel_scope.cancel("the answer is there")
        return self._answer

    def _take_answer(self, address: str) -> bool:
        """Take an address if it has the state."""
        try:
            query = {name: values[0] for name, values in parse_qs(urlsplit(address.strip()).query).items()}
        except ValueError:
            return False
        if not self._state or query.get("state") != self._state:
            return False
        if not self._is_there.is_set():
            self._answer = query
            self._is_there.set()
        return True

    async def _take(self, stream: SocketStream) -> None:
        """Answer one request of the browser."""
        try:
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                async with stream:
                    with anyio.move_on_after(_READ_S):
                        await self._answer_request(stream)
        finally:
            self._callers.release()

    async def _answer_request(self, stream: SocketStream) -> None:
        head = bytearray()
        while b"\r\n\r\n" not in head and len(head) < _MAX_HEAD_BYTES:
            head += await stream.receive()
        method, _, rest = head.partition(b" ")
        target = rest.partition(b" ")[0].decode("latin-1")
        is_right = method == b"GET" and target.startswith(f"{_PATH}?") and self._take_answer(target)
        said = self._said() if is_right else "This is not the answer that panpan waits for."
        page = f"<!doctype html><meta charset=utf-8><title>panpan</title><p>{escape(said)}</p>".encode()
        lines = (
            f"HTTP/1.1 {'200 OK' if is_right else '404 Not Found'}",
            "Content-Type: text/html; charset=utf-8",
            f"Content-Length: {len(page)}",
            "Cache-Control: no-store",
            "Referrer-Policy: no-referrer",
            "Connection: close",
        )
        await stream.send("\r\n".join((*lines, "", "")).encode() + page)

    def _said(self) -> str:
        if "error" in self._answer:
            return "The login was refused. You can close this page."
        return "panpan has the answer. You can close this page and go back to the terminal."


async def _listen(host: str, port: int) -> list[SocketListener]:
    found = await anyio.create_tcp_listener(local_host=host, local_port=port)
    return [one for one in found.listeners if isinstance(one, SocketListener)]
