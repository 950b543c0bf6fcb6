"""Taking connections of programs that nobody vouches for: a page's browser, a boxed command.

The rule: however many they open, panpan holds few of them, and one that cannot be taken ends no other.
"""

from collections.abc import Awaitable, Callable

import anyio
from anyio import BrokenResourceError
from anyio.abc import SocketListener, SocketStream

MAX_REFUSED_CONNECTIONS = 32
"""That are told at the same time that there are too many; others wait in the system's queue."""
_AGAIN_S = 0.1
"""Seconds until connections are taken again after one could not be, such as for want of file descriptors."""


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
