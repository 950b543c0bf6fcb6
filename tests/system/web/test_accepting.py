import os
import resource
import socket
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio
import anyio.lowlevel
from anyio.abc import SocketAttribute, SocketListener, SocketStream

from panpan.system.web.proxy_connection import answer_connections
from tests.system.backends import on_both_backends, run_on


class Answers:
    """Says hello to each connection, and holds it until the other side closes."""

    def __init__(self) -> None:
        self.open = 0
        self.most = 0

    async def answer(self, stream: SocketStream) -> None:
        self.open += 1
        self.most = max(self.most, self.open)
        async with stream:
            await stream.send(b"hello")
            async for _ in stream:
                pass
        self.open -= 1


@asynccontextmanager
async def answering(answers: Answers, most: int) -> AsyncGenerator[int, None]:
    listener = await SocketListener.from_socket(socket.create_server(("127.0.0.1", 0), backlog=100))
    async with listener, anyio.create_task_group() as task_group:
        task_group.start_soon(answer_connections, listener, answers.answer, most)
        yield listener.extra(SocketAttribute.local_port)
        task_group.cancel_scope.cancel()


@contextmanager
def no_more_files() -> Iterator[None]:
    """Let this process open nothing more."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


async def some_turns() -> None:
    """Let the others try, who would not rest until they can."""
    for _ in range(100):
        await anyio.lowlevel.checkpoint()


@on_both_backends
def test_accepting_waits_for_file_descriptors(backend: str) -> None:
    async def main() -> None:
        async with answering(Answers(), 10) as port:
            with socket.socket() as waiting:
                with no_more_files():
                    waiting.connect(("127.0.0.1", port))
                    await some_turns()
                async with await anyio.connect_tcp("127.0.0.1", port) as client:
                    assert await client.receive() == b"hello"

    run_on(backend, main)


@on_both_backends
def test_accepting_bounds_connections_and_serves_all(backend: str) -> None:
    async def main() -> None:
        answers = Answers()

        async def asked(port: int) -> None:
            async with await anyio.connect_tcp("127.0.0.1", port) as client:
                assert await client.receive() == b"hello"

        async with answering(answers, 3) as port, anyio.create_task_group() as clients:
            for _ in range(50):
                clients.start_soon(asked, port)

        assert answers.most <= 3

    run_on(backend, main)
