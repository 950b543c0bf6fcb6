"""The way out through the user's own proxy, and the hosts that the user has opened; sockets are real."""

import re
from base64 import b64decode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import pytest

from panpan.errors import ToolError
from panpan.system.web.domain_lists import without_closed_hosts
from panpan.system.web.filter_proxy import FilterProxy
from panpan.system.web.network import GuardedClient, WebNetwork
from panpan.system.web.upstream_proxy import UpstreamProxy
from tests.fakes.outside import Network, Server, made_certificate, rest_of, said_to, serving
from tests.fakes.upstream import Upstream
from tests.system.backends import on_both_backends, run_on

PLACES = ("example.org:80", "example.org:443")


@dataclass
class Way:
    """A proxy, a server that stands for example.org behind it, and the network of whoever uses it."""

    upstream: Upstream
    server: Server
    network: Network
    web: WebNetwork

    async def page(self, url: str = "http://example.org/a", *own: str) -> bytes:
        client = GuardedClient(self.web, user_agent="tests/1", own=own)
        async with client, client.stream("GET", url) as response:
            return await response.read(1_000)


@asynccontextmanager
async def way(
    scheme: str = "http",
    *,
    login: str = "",
    wants: tuple[str, str] | None = None,
    private: tuple[str, ...] = (),
    certificate: Path | None = None,
    answer: bytes = b"HTTP/1.1 200 OK\r\n\r\n",
    server: Server | None = None,
) -> AsyncGenerator[Way, None]:
    server = server or Server()
    async with serving(server.serve, certificate=certificate) as port:
        upstream = Upstream(dict.fromkeys(PLACES, port), wants, answer)
        async with serving(upstream.serve_socks if scheme == "socks5" else upstream.serve_http) as proxy_port:
            network = Network(names={}, trusted=certificate)
            web = network.web.as_set_up(private, f"{scheme}://{login}127.0.0.1:{proxy_port}")
            yield Way(upstream, server, network, web)


# how an address of a proxy is read


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://proxy.example.org:3128", ("http", "proxy.example.org", 3128, "", "")),
        ("https://proxy.example.org", ("https", "proxy.example.org", 443, "", "")),
        ("socks5h://127.0.0.1", ("socks5", "127.0.0.1", 1080, "", "")),
        ("socks5://ada:p%40ss@10.0.0.1:9/", ("socks5", "10.0.0.1", 9, "ada", "p@ss")),
        ("http://[::1]:3128", ("http", "::1", 3128, "", "")),
    ],
)
def test_parse_reads_kind_place_and_login(url: str, expected: tuple[str, str, int, str, str]) -> None:
    proxy = UpstreamProxy.parse(url)

    assert (proxy.kind, proxy.host, proxy.port, proxy.user, proxy.password) == expected


@pytest.mark.parametrize(
    "url",
    ["proxy:3128", "ftp://x:1", "http://", "http://a:hidden@x:port", "http://a:hidden@x/path", "http://hidden@x:1",
     "socks4://x:1", f"http://a:hidden{'n' * 256}@x:1"],
)  # fmt: skip
def test_parse_refuses_without_showing_a_password(url: str) -> None:
    with pytest.raises(ToolError) as error:
        UpstreamProxy.parse(url)

    assert "hidden" not in str(error.value)


# through it


@on_both_backends
@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_plain_request_goes_through_the_proxy(backend: str, scheme: str) -> None:
    async def main() -> None:
        async with way(scheme) as found:
            assert await found.page() == b"hello"

        assert (found.network.asked, found.network.dialled) == ([], [])
        first = found.upstream.asked[0].partition(b"\r\n")[0]
        assert first == (b"GET http://example.org/a HTTP/1.1" if scheme == "http" else b"example.org:80")

    run_on(backend, main)


@pytest.mark.parametrize("scheme", ["http", "socks5"])
async def test_tls_is_spoken_with_the_host_through_a_tunnel(tmp_path: Path, scheme: str) -> None:
    certificate = made_certificate(tmp_path, "example.org")
    async with way(scheme, certificate=certificate) as found:
        assert await found.page("https://example.org/a") == b"hello"

    assert found.server.received[0].startswith(b"GET /a HTTP/1.1\r\nhost: example.org")
    asked = found.upstream.asked[0]
    assert asked.startswith(b"CONNECT example.org:443 HTTP/1.1" if scheme == "http" else b"example.org:443")


async def test_tls_to_the_proxy_itself_checks_its_certificate(tmp_path: Path) -> None:
    certificate = made_certificate(tmp_path, "localhost")
    server = Server()
    async with serving(server.serve) as port:
        upstream = Upstream(dict.fromkeys(PLACES, port))
        async with serving(upstream.serve_http, certificate=certificate) as proxy_port:
            trusting = Network(trusted=certificate).web.as_set_up((), f"https://localhost:{proxy_port}")
            (tmp_path / "other").mkdir()
            other = Network(trusted=made_certificate(tmp_path / "other", "localhost"))
            doubting = other.web.as_set_up((), f"https://localhost:{proxy_port}")

            assert await Way(upstream, server, other, trusting).page() == b"hello"
            with pytest.raises(ToolError, match="no safe connection to the proxy"):
                await Way(upstream, server, other, doubting).page()


async def test_login_goes_to_the_http_proxy_and_not_to_the_host(tmp_path: Path) -> None:
    certificate = made_certificate(tmp_path, "example.org")
    async with way(login="ada:p%40ss@", certificate=certificate) as found:
        await found.page("https://example.org/")

    (line,) = [line for line in found.upstream.asked[0].split(b"\r\n") if line.startswith(b"Proxy-Authorization: ")]
    assert b64decode(line.rpartition(b" ")[2]) == b"ada:p@ss"
    assert b"uthorization" not in found.server.received[0]


@pytest.mark.parametrize("login", ["ada:p%40ss@", "ada:wrong@", ""])
async def test_socks_login_is_sent_on_request(login: str) -> None:
    async with way("socks5", login=login, wants=("ada", "p@ss")) as found:
        if login.startswith("ada:p"):
            assert await found.page() == b"hello"
        else:
            with pytest.raises(ToolError, match="wants another user name and password"):
                await found.page()


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (b"HTTP/1.1 407 No\r\n\r\n", r"status 407\); write its user name and password"),
        (b"HTTP/1.1 403 No\r\n\r\n", r"does not lead to example\.org \(status 403\)"),
        (b"", "ended the connection"),
        (b"SSH-2.0-x\r\n\r\n", "ended the connection"),
        (b"HTTP/1.1 200 OK\r\n\r\nnonsense", "spoke before it was asked"),
    ],
)
async def test_refusal_of_the_proxy_is_one_sentence(answer: bytes, complaint: str) -> None:
    async with way(answer=answer) as found, FilterProxy(found.web) as proxy:
        told = await tunnel(proxy, "example.org:443")

    assert told.startswith(b"HTTP/1.1 502 panpan: the proxy 127.0.0.1:")
    assert re.search(complaint, told.decode())


async def test_proxy_that_does_not_listen_names_the_setting() -> None:
    async with serving(Server().serve) as port:
        pass
    web = Network().web.as_set_up((), f"http://127.0.0.1:{port}")

    with pytest.raises(ToolError, match=r"does not answer; look at \[web\] proxy"):
        await Way(Upstream({}), Server(), Network(), web).page()


# what it never hears of


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "http://10.0.0.1/", "http://169.254.169.254/", "http://nas/", "http://x.internal/"]
)
async def test_private_name_is_refused_before_the_proxy_hears_of_it(url: str) -> None:
    async with way() as found:
        with pytest.raises(ToolError):
            await found.page(url)

    assert found.upstream.asked == []


async def test_closed_host_is_refused_before_the_proxy_hears_of_it() -> None:
    async with way() as found:
        found.web = without_closed_hosts(found.web, lambda host: "a rule" if host == "example.org" else None)
        with pytest.raises(ToolError, match=r"example\.org is closed by a rule"):
            await found.page()

    assert found.upstream.asked == []


async def test_own_address_on_this_machine_goes_past_the_proxy() -> None:
    async with way() as found, serving(Server().serve) as port:
        found.network.ports = {("127.0.0.1", port): port}
        assert await found.page(f"http://127.0.0.1:{port}/", f"http://127.0.0.1:{port}") == b"hello"
        assert found.upstream.asked == []

        assert await found.page("http://example.org/", "http://example.org") == b"hello"
        assert len(found.upstream.asked) == 1


# hosts of the user's own


PRIVATE = ("files.lab.example", "*.corp.example", "10.2.0.0/16", "nas")


@pytest.mark.parametrize("host", ["files.lab.example", "a.corp.example", "10.2.3.4", "nas"])
async def test_private_host_is_dialled_if_listed(host: str) -> None:
    async with way(private=PRIVATE) as found, serving(Server().serve) as port:
        found.network.names = {name: ["10.9.9.9"] for name in ("files.lab.example", "a.corp.example", "nas")}
        found.network.ports = {("10.9.9.9", 80): port, ("10.2.3.4", 80): port}

        assert await found.page(f"http://{host}/") == b"hello"

    assert found.upstream.asked == []


@pytest.mark.parametrize("host", ["10.3.0.1", "printer", "files.lab.example.org", "rebound.org"])
async def test_host_that_is_not_listed_stays_closed(host: str) -> None:
    network = Network(names={"rebound.org": ["10.2.0.1"], "files.lab.example.org": ["10.2.0.1"]})
    web = network.web.as_set_up(PRIVATE, None)

    with pytest.raises(ToolError, match="private_hosts"):
        await Way(Upstream({}), Server(), network, web).page(f"http://{host}/")
    assert network.dialled == []


async def test_host_is_judged_before_certificates_are_read() -> None:
    network = Network(names={"inside.org": ["10.0.0.1"]})  # which has no certificates

    with pytest.raises(ToolError, match="not a public address"):
        await Way(Upstream({}), Server(), network, network.web).page("https://inside.org/")


@pytest.mark.parametrize("is_proxied", [True, False])
@pytest.mark.parametrize("target", ["files.lab.example", "10.2.0.1", "nas"])
async def test_redirect_of_strangers_leads_to_no_private_host(target: str, is_proxied: bool) -> None:
    away = Server(f"HTTP/1.1 302 Found\r\nLocation: http://{target}/\r\nContent-Length: 0\r\n\r\n".encode())
    async with way(private=PRIVATE, server=away) as found:
        found.network.names = {"files.lab.example": ["10.9.9.9"], "nas": ["10.9.9.9"], "example.org": ["8.8.8.8"]}
        found.network.ports = {("8.8.8.8", 80): found.upstream.ports["example.org:80"]}
        found.web = found.web if is_proxied else replace(found.web, proxy=None)
        with pytest.raises(ToolError):
            await found.page()

    assert {address for address, _ in found.network.dialled} <= {"8.8.8.8"}
    assert len(found.upstream.asked) == is_proxied


# the browser's way out


async def tunnel(proxy: FilterProxy, place: str) -> bytes:
    async with await anyio.connect_tcp("127.0.0.1", proxy.port) as stream:
        await stream.send(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\nGET / HTTP/1.1\r\n\r\n".encode())
        return await rest_of(stream)


async def request(proxy: FilterProxy, host: str) -> bytes:
    return await said_to(proxy.port, f"GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())


@pytest.mark.parametrize("scheme", ["http", "socks5"])
async def test_browser_goes_through_the_proxy(scheme: str) -> None:
    async with way(scheme) as found, FilterProxy(found.web) as proxy:
        answers = [await tunnel(proxy, "example.org:443"), await request(proxy, "example.org")]

    assert all(answer.endswith(b"hello") for answer in answers)
    assert found.network.dialled == []
    assert len(found.upstream.asked) == 2


@pytest.mark.parametrize("is_proxied", [True, False])
async def test_page_of_others_loads_nothing_from_private_hosts(is_proxied: bool) -> None:
    async with way(private=PRIVATE) as found:
        found.network.names = {"files.lab.example": ["10.9.9.9"]}
        web = found.web if is_proxied else replace(found.web, proxy=None)
        page = GuardedClient(web, user_agent="x").plain("http://example.org/")
        async with FilterProxy(web.for_page(page)) as proxy:
            answers = [await request(proxy, host) for host in ("files.lab.example", "10.2.0.1", "nas")]

    assert (b"may not load from; ask for it alone" in answers[0]) is is_proxied
    assert not any(answer.startswith(b"HTTP/1.1 200") for answer in answers)
    assert (found.upstream.asked, found.network.dialled) == ([], [])


async def test_page_on_a_private_host_loads_from_it() -> None:
    async with way(private=PRIVATE) as found, serving(Server().serve) as port:
        found.network.names, found.network.ports = {"nas": ["10.9.9.9"]}, {("10.9.9.9", 80): port}
        page = GuardedClient(found.web, user_agent="x").plain("http://nas/")
        async with FilterProxy(found.web.for_page(page)) as proxy:
            assert (await request(proxy, "nas")).endswith(b"hello")

    assert found.upstream.asked == []
