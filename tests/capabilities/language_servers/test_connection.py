"""A conversation over two pipes: what a server may do to it, and what whoever asks may do."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from panpan.capabilities.language_servers.connection import (
    Connection,
    FrameReader,
    ServerGoneError,
    frame_message,
    parse_body,
)
from panpan.errors import ToolError
from panpan.system.processes.process import OutputPipe
from tests.system.backends import on_both_backends, run_on, until


class Peer:
    """The server's ends of the pipes."""

    def __init__(self, **bounds: int) -> None:
        self.told: list[tuple[str, Any]] = []
        self.ends: list[str] = []
        self._output = OutputPipe()
        self._read_fd, self._write_fd = os.pipe()
        os.set_blocking(self._write_fd, False)
        os.set_blocking(self._read_fd, False)
        self._reader = FrameReader()
        self._got: list[dict[str, Any]] = []
        self.connection = Connection(
            "peer",
            self._output,
            self._write_fd,
            told=lambda *told: self.told.append(told),
            asked=_knows_nothing,
            ended=self.ends.append,
            **bounds,
        )

    def send(self, data: bytes) -> None:
        os.write(self._output.write_fd, data)

    @property
    def got(self) -> list[dict[str, Any]]:
        """All messages so far."""
        try:
            chunk = os.read(self._read_fd, 1 << 20)
        except BlockingIOError:
            chunk = b""
        self._got += [parse_body(body) for body in self._reader.feed(chunk)]
        return self._got

    def close(self) -> None:
        self._output.close()
        os.close(self._read_fd)
        os.close(self._write_fd)


def _knows_nothing(method: str, params: Any) -> Any:
    raise KeyError(method)


@asynccontextmanager
async def peer(**bounds: int) -> AsyncGenerator[Peer, None]:
    other = Peer(**bounds)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(other.connection.read)
            group.start_soon(other.connection.write)
            yield other
            group.cancel_scope.cancel()
    finally:
        other.close()


@on_both_backends
def test_answers_find_their_questions_in_any_order(backend: str) -> None:
    answers: dict[str, Any] = {}

    async def ask(other: Peer, method: str) -> None:
        answers[method] = await other.connection.request(method, {}, timeout_s=10)

    async def main() -> None:
        async with peer() as other, anyio.create_task_group() as group:
            group.start_soon(ask, other, "one")
            await until(lambda: len(other.got) == 1)
            group.start_soon(ask, other, "two")
            await until(lambda: len(other.got) == 2)
            other.send(frame_message({"id": 99, "result": "of nobody"}))
            other.send(
                frame_message({"id": 2, "result": 2})
                + frame_message({"id": 1, "result": 1})
                + frame_message({"id": 1, "result": 3})
            )

    run_on(backend, main)

    assert answers == {"one": 1, "two": 2}


@on_both_backends
def test_abandoned_question_is_cancelled(backend: str) -> None:
    got: list[dict[str, Any]] = []

    async def main() -> None:
        async with peer() as other:
            with anyio.move_on_after(10) as waiting:
                async with anyio.create_task_group() as group:
                    group.start_soon(lambda: other.connection.request("slow", {}, timeout_s=10))
                    await until(lambda: len(other.got) == 1)
                    group.cancel_scope.cancel()
            await until(lambda: len(other.got) == 2)
            got.extend(other.got)
            assert not waiting.cancelled_caught

    run_on(backend, main)

    assert [message["method"] for message in got] == ["slow", "$/cancelRequest"]
    assert got[1]["params"] == {"id": got[0]["id"]}


async def test_server_that_sends_without_end_is_given_up() -> None:
    async with peer(flood_bytes=10_000) as other:
        for _ in range(20):
            other.send(frame_message({"method": "noise", "params": "x" * 1_000}))
        await until(lambda: bool(other.connection.gone))

    assert other.connection.gone == "peer sent more than 10,000 bytes in 30 s"
    assert len(other.told) <= 10


async def test_server_that_does_not_read_is_given_up_and_fails_waiters() -> None:
    failures: list[str] = []

    async def ask(other: Peer) -> None:
        try:
            await other.connection.request("question", {}, timeout_s=10)
        except ServerGoneError as exc:
            failures.append(str(exc))

    async with peer(outbox_bytes=200_000) as other:
        async with anyio.create_task_group() as group:
            group.start_soon(ask, other)
            await until(lambda: len(other.got) == 1)
            with pytest.raises(ServerGoneError):
                for _ in range(100):
                    other.connection.notify("long", "x" * 10_000)

    assert failures == ["peer does not read what it is sent"] == other.ends


async def test_refusal_is_an_error_in_the_servers_cleaned_words() -> None:
    said: list[str] = []

    async def ask(other: Peer) -> None:
        try:
            await other.connection.request("question", {}, timeout_s=10)
        except ToolError as exc:
            said.append(str(exc))

    async with peer() as other, anyio.create_task_group() as group:
        group.start_soon(ask, other)
        await until(lambda: len(other.got) == 1)
        other.send(frame_message({"id": 1, "error": {"code": 1, "message": "\x1b[31mno\n" + "x" * 1_000}}))

    assert said[0].startswith("peer refuses question: no xxx")
    assert len(said[0]) < 400
