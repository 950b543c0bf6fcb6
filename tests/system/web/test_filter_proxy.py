"""The proxy of the browser: what it leads to, and what it refuses."""

import os
import signal
import socket
import subprocess
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path

import anyio
import pytest
from anyio.abc import ByteStream
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.system.web.filter_proxy import MAX_CONNECTIONS, FilterProxy
from panpan.system.web.url_guard import is_public
from tests.fakes.outside import PUBLIC, Network, Server, rest_of, said_to, serving
from tests.needed_programs import need
from tests.system.backends import on_both_backends, run_on, until
from tests.system.web.test_accepting import no_more_files, some_turns

NAMES = {"example.org": [PUBLIC], "inside.org": ["10.0.0.1"], "mixed.org": [PUBLIC, "::1"]}
REFUSED = b"HTTP/1.1 403 panpan: "


@asynccontextmanager
async def proxy_before(server: Server, *ports: int) -> AsyncGenerator[tuple[FilterProxy, Network], None]:
    """Have the server stand for example.org at these ports, with a proxy before it."""
    async with serving(server.serve) as port:
        network = Network(names=NAMES, ports={(PUBLIC, number): port for number in ports})
        async with FilterProxy(network.web) as proxy:
            yield proxy, network


@on_both_backends
def test_plain_request_is_passed_on(backend: str) -> None:
    async def main() -> None:
        server = Server()
        async with proxy_before(server, 80) as (proxy, network):
            answer = await said_to(proxy.port, b"GET http://example.org/a HTTP/1.1\r\nHost: example.org\r\n\r\n")

        assert answer.endswith(b"hello")
        assert network.dialled == [(PUBLIC, 80)]
        assert (proxy.hosts, proxy.refused) == (("example.org",), ())

    run_on(backend, main)


@on_both_backends
@pytest.mark.parametrize("port", [443, 80, 8443])  # 80: how browsers ask for ws://
def test_tunnel_leads_to_the_checked_address(backend: str, port: int) -> None:
    async def main() -> None:
        async with proxy_before(Server(answer=b"pong", until=b"ping"), port) as (proxy, network):
            async with await anyio.connect_tcp("127.0.0.1", proxy.port) as stream:
                await stream.send(b"CONNECT example.org:%d HTTP/1.1\r\nHost: example.org:%d\r\n\r\nping" % (port, port))
                answer = await rest_of(stream)

        assert answer == b"HTTP/1.1 200 Connection established\r\n\r\npong"
        assert network.dialled == [(PUBLIC, port)]

    run_on(backend, main)


@pytest.mark.parametrize(
    "place",
    ["inside.org", "mixed.org", "127.0.0.1", "127.0.0.1:8000", "[::1]", "[::ffff:10.0.0.1]", "[64:ff9b::a00:1]",
     "localhost", "a.localhost", "router", "printer.local", "169.254.169.254", "example.org:25", "example.org:22"],
)  # fmt: skip
async def test_filter_proxy_refuses_private_hosts(place: str) -> None:
    tunnel = place if place.rpartition(":")[2].isdigit() else f"{place}:443"
    async with proxy_before(Server()) as (proxy, network):
        answers = [
            await said_to(proxy.port, f"GET http://{place}/ HTTP/1.1\r\nHost: {place}\r\n\r\n".encode()),
            await said_to(proxy.port, f"CONNECT {tunnel} HTTP/1.1\r\nHost: {tunnel}\r\n\r\n".encode()),
        ]

    assert [answer[: len(REFUSED)] for answer in answers] == [REFUSED, REFUSED]
    assert network.dialled == []
    assert proxy.refused


async def test_filter_proxy_does_not_serve_itself() -> None:
    async with proxy_before(Server()) as (proxy, network):
        place = f"127.0.0.1:{proxy.port}"
        answer = await said_to(proxy.port, f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode())

    assert answer.startswith(REFUSED)
    assert network.dialled == []


async def test_filter_proxy_bounds_its_connections() -> None:
    async with proxy_before(Server()) as (proxy, _):
        held = [await anyio.connect_tcp("127.0.0.1", proxy.port) for _ in range(MAX_CONNECTIONS)]
        answer = await said_to(proxy.port, b"")
        for stream in held:
            await stream.aclose()

    assert answer.startswith(b"HTTP/1.1 503 ")


async def test_leaving_the_proxy_ends_its_connections() -> None:
    async with proxy_before(Server()) as (proxy, _):
        stream = await anyio.connect_tcp("127.0.0.1", proxy.port)

    async with stream:
        assert await rest_of(stream) == b""


_HOSTS = st.one_of(
    st.ip_addresses().map(lambda address: f"[{address}]" if address.version == 6 else str(address)),
    st.sampled_from(
        ["example.org", "inside.org", "localhost", "0x7f.1", "127.1", "2130706433", "a.local", "[::]", "@b.c"]
    ),
    st.text("0123456789abcdefx.:[]@%", max_size=20),
)


@given(_HOSTS, st.integers(-1, 70_000), st.lists(st.ip_addresses().map(str), max_size=2), st.booleans())
@settings(max_examples=60, deadline=None)
def test_filter_proxy_dials_only_public_addresses(host: str, port: int, resolved: list[str], is_tunnel: bool) -> None:
    class Anywhere(Network):
        async def resolve(self, host: str, port: int) -> Sequence[str]:
            return resolved

    network = Anywhere()
    place = f"{host}:{port}"
    request = f"CONNECT {place} HTTP/1.1" if is_tunnel else f"GET http://{place}/ HTTP/1.1"

    async def main() -> None:
        async with FilterProxy(network.web) as proxy:
            await said_to(proxy.port, f"{request}\r\nHost: {place}\r\n\r\n".encode())

    anyio.run(main)

    assert all(is_public(ip_address(address)) for address, _ in network.dialled)


PAGE = b"""<!doctype html><title>page</title><img src="http://inside.org/a.png"><script>
for (const url of ["ws://example.org/", "ws://127.0.0.1:9999/", "ws://mixed.org:8080/"])
  try { new WebSocket(url) } catch {}
for (const url of ["http://localhost:7777/", "http://[::1]/", "http://169.254.169.254/"]) fetch(url).catch(() => 0);
navigator.sendBeacon("http://10.0.0.1/", "x");
</script>"""


async def test_real_browser_reaches_only_public_hosts(tmp_path: Path) -> None:
    need("chromium")
    private = {"inside.org", "mixed.org", "127.0.0.1", "localhost", "::1", "169.254.169.254", "10.0.0.1"}
    asked: list[bytes] = []

    async def site(stream: ByteStream) -> None:
        asked.append((await stream.receive()).partition(b"\r\n")[0])
        await stream.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(PAGE) + PAGE
        )

    async with serving(site) as port:
        network = Network(names=NAMES, ports={(PUBLIC, 80): port})
        async with FilterProxy(network.web) as proxy:
            command = [
                "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
                "--disable-component-update", "--no-first-run", "--remote-debugging-port=0",
                f"--user-data-dir={tmp_path}", "--proxy-bypass-list=<-loopback>",
                f"--proxy-server=http://127.0.0.1:{proxy.port}", "http://example.org/",
            ]  # fmt: skip
            browser = await anyio.open_process(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
            )
            try:
                # the page, and the socket, which is asked for with CONNECT
                await until(lambda: private <= set(proxy.hosts) and asked.count(b"GET / HTTP/1.1") >= 2)
            finally:
                os.killpg(browser.pid, signal.SIGKILL)
                await browser.wait()

    assert {address for address, _ in network.dialled} == {PUBLIC}


@on_both_backends
def test_filter_proxy_waits_for_file_descriptors(backend: str) -> None:
    async def main() -> None:
        async with proxy_before(Server(), 80) as (proxy, _):
            await anyio.wait_all_tasks_blocked()
            with socket.socket() as client, no_more_files():
                client.connect(("127.0.0.1", proxy.port))
                await some_turns()
            answer = await said_to(proxy.port, b"GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n")

        assert answer.startswith(b"HTTP/1.1 200")

    run_on(backend, main)
