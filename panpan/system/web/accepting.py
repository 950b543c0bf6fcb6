"""Taking connections of programs that nobody vouches for: a page's browser, a boxed command.

The rule: however many they open, panpan holds few of them, and one that cannot be taken ends no other.
"""

from collections.abc import Awaitable, Callable

import anyio
from anyio import BrokenResourceError
from anyio.abc import SocketListener, SocketStream

from panpan.errors import ToolError
from panpan.system.web.proxy_connection import ProxyConnection

MAX_REFUSED_CONNECTIONS = 32
"""That are told at the same time that there are too many; others wait in the system's queue."""
_AGAIN_S = 0.1
"""Seconds until connections are taken again after one could not be, such as for want of file descriptors."""


class Served:
    """Connections of a proxy that are served at the same time; one too many is told so.

    Args:
        most: How many.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0

    async def serve(self, connection: ProxyConnection, stream: SocketStream, note: Callable[[ToolError], None]) -> None:
        """Serve a connection, and close its stream.

        Args:
            connection: On `stream`.
            stream: What a program has opened.
            note: Told of a bug, which costs this connection and nothing else.
        """
        self._count += 1
        try:
            async with stream:
                if self._count > self._most:
                    await connection.refuse(503, f"{self._most} connections are open at the same time already")
                else:
                    await connection.serve()
        except Exception as exc:
            note(ToolError(f"panpan's proxy failed unexpectedly: {type(exc).__name__}: {exc}"))
        finally:
            self._count -= 1


async def answer_connections(
    listener: SocketListener, answer: Callable[[SocketStream], Awaitable[None]], most: int
) -> None:
    """Answer connections until it is cancelled.

    Args:
        listener: Where they arrive.
        answer: Serves one, and closes it.
        most: Connections that are held at the same time.
    """
    free = anyio.Semaphore(most)

    async def answered(stream: SocketStream) -> None:
        try:
            await answer(stream)
        finally:
            free.release()

    async with anyio.create_task_group() as task_group:
        while True:
            await free.acquire()
            try:
                stream = await listener.accept()
            except (BrokenResourceError, OSError):  # the first is what trio makes of the second
                free.release()
                await anyio.sleep(_AGAIN_S)
            else:
                task_group.start_soon(answered, stream)
