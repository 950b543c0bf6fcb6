import json
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from panpan.config.models import LOCAL_PORTS, vendor_named
from panpan.models.local_servers import PROBES, LocalServer, Probe, advice_without_model, find_local_servers
from tests.model_server import serving

PATIENT_S = 30
"""For tests in which the time limit must not matter."""


@asynccontextmanager
async def raw_server(answer: bytes | None) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Answer each connection with these bytes and close it; None: never. Yields the port and what was received."""
    received: list[bytes] = []

    async def handle(stream: SocketStream) -> None:
        async with stream:
            received.append(await stream.receive())
            if answer is None:
                await anyio.sleep_forever()
            with suppress(anyio.BrokenResourceError):  # a client may have had enough
                await stream.send(answer or b"")

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as task_group:
        task_group.start_soon(listener.serve, handle)
        yield listener.extra(SocketAttribute.local_port), received
        task_group.cancel_scope.cancel()


@contextmanager
def deaf_port() -> Iterator[int]:
    """A port at which nobody listens, and which nobody else gets meanwhile."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        yield deaf.getsockname()[1]


async def test_local_servers_are_found_by_their_model_lists() -> None:
    tags = {"models": [{"name": "qwen3-coder:30b", "size": 1}, {"name": "gpt-oss:20b"}]}
    with (
        serving([], probes={"/api/tags": tags}, models=()) as ollama,
        serving([], models=("local-model",)) as studio,
        deaf_port() as deaf,
    ):
        probes = [
            Probe("ollama", "Ollama", ollama.port, "/api/tags"),
            Probe("vllm", "vLLM", deaf, "/v1/models"),
            Probe("lmstudio", "LM Studio", studio.port, "/v1/models"),
        ]

        found = await find_local_servers(probes, time_limit_s=PATIENT_S)

    assert tuple(replace(server, program="", user=None) for server in found) == (
        LocalServer("ollama", "Ollama", f"http://127.0.0.1:{ollama.port}/v1", ("qwen3-coder:30b", "gpt-oss:20b")),
        LocalServer("lmstudio", "LM Studio", f"http://127.0.0.1:{studio.port}/v1", ("local-model",)),
    )
    assert [(request.method, request.path, request.raw) for request in ollama.other_requests] == [
        ("GET", "/api/tags", b"")
    ]
    assert set(ollama.other_requests[0].headers) == {"host", "accept", "connection"}
    assert ollama.requests == studio.requests == []


def http(body: bytes, head: str = "HTTP/1.1 200 OK") -> bytes:
    return f"{head}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9\r\n",
        b"\x00\xff" * 50,
        http(b"<html>a web server</html>"),
        http(b"[1, 2]"),
        http(b'{"data": [1]}'),
        http(b'{"data": [{"id": 5}]}'),
        http(b'{"data": [{"id": "\\u001b[31mred"}]}'),
        http(b'{"data": [{"id": "a"}]}', "HTTP/1.1 404 Not Found"),
        http(b'{"data": [{"id": "a"}]}', "HTTP/1.1 302 Found"),
        b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{}",
        http(b"[" * 100_000),
        b'HTTP/1.1 200 OK\r\n\r\n{"data": []}' + b" " * 2_000_000,
    ],
)
async def test_other_servers_are_skipped(answer: bytes) -> None:
    async with raw_server(answer) as (port, _):
        assert await find_local_servers([Probe("x", "X", port, "/v1/models")], time_limit_s=PATIENT_S) == ()


@pytest.mark.parametrize("has_length", [True, False])
async def test_answer_ends_with_its_length_or_the_connection(has_length: bool) -> None:
    body = json.dumps({"object": "list", "data": [{"id": "m"}]}).encode()
    answer = http(body) if has_length else b"HTTP/1.0 200 OK\r\n\r\n" + body
    async with raw_server(answer) as (port, received):
        (server,) = await find_local_servers([Probe("x", "X", port, "/v1/models")], time_limit_s=PATIENT_S)

    assert server.models == ("m",)
    assert len(received) == 1


def listening_user_of_ours() -> int | None:
    return os.geteuid() if Path("/proc/net/tcp").exists() else None


@pytest.mark.parametrize(
    ("server", "owners", "program"),
    [
        ("Server: llama.cpp", ["llamacpp"], "llama.cpp, llamacpp"),
        ("server: uvicorn/0.30.1", ["vllm", "vllm"], "uvicorn, vllm"),
        ("Date: today", ["b", "a"], "a, b"),
        ("Date: today", [None, 5, "\x1b[2J"], ""),
        ("Server: " + "x" * 500, [], "x" * 100),
    ],
)
async def test_local_server_is_told_apart_by_its_own_words(server: str, owners: list[object], program: str) -> None:
    rows = [{"id": f"m{number}", "owned_by": owner} for number, owner in enumerate(owners)]
    async with raw_server(http(json.dumps({"data": rows}).encode(), f"HTTP/1.1 200 OK\r\n{server}")) as (port, _):
        (found,) = await find_local_servers([Probe("x", "X", port, "/v1/models")], time_limit_s=PATIENT_S)

    assert found.program == program
    assert found.user == listening_user_of_ours()


async def test_local_server_without_models_is_found_too() -> None:
    async with raw_server(http(b'{"models": []}')) as (port, _):
        (server,) = await find_local_servers([Probe("ollama", "Ollama", port, "/api/tags")], time_limit_s=PATIENT_S)

    assert server.models == ()
    assert server.flag == "--model ollama/NAME"


def test_silent_server_does_not_hold_up_the_others() -> None:
    async def main() -> None:
        good = http(b'{"data": [{"id": "m"}]}')
        async with raw_server(None) as (silent, received), raw_server(good) as (port, _):
            probes = [Probe("a", "A", silent, "/"), Probe("b", "B", port, "/")]
            with anyio.fail_after(PATIENT_S):
                found = await find_local_servers(probes, time_limit_s=2)
        assert [server.provider for server in found] == ["b"]
        assert len(received) == 1

    for backend in ("asyncio", "trio"):
        anyio.run(main, backend=backend)


def test_probed_ports_belong_to_known_providers() -> None:
    assert {probe.provider: probe.port for probe in PROBES} == dict(LOCAL_PORTS)
    for probe in PROBES:
        vendor = vendor_named(probe.provider)
        assert vendor is not None
        assert vendor.base_url == f"http://127.0.0.1:{probe.port}/v1"


def test_advice_has_three_lines_and_names_a_found_server() -> None:
    server = LocalServer("ollama", "Ollama", "http://127.0.0.1:11434/v1", ("qwen3-coder:30b",))

    for found in ((), (server,)):
        assert len(advice_without_model(found).splitlines()) == 3
    assert "use --model ollama/qwen3-coder:30b (Ollama is running)" in advice_without_model([server])
    assert "ANTHROPIC_API_KEY" in advice_without_model([])
    assert "panpan demo" in advice_without_model([])
