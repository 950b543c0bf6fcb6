"""The client against servers on the loopback that stand for public ones; sockets, HTTP and TLS are real."""

import gzip
import ssl
import zlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import ByteStream
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.errors import ToolError
from panpan.system.web.exchange import FREE_BYTES, MAX_RATIO, PIECE_BYTES
from panpan.system.web.network import MAX_CONNECTIONS, GuardedClient
from panpan.system.web.url_guard import PlainUrl, is_public
from tests.fakes.outside import OTHER, PUBLIC, Network, Server, head_of, made_certificate, serving
from tests.system.backends import on_both_backends, run_on

HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
MAX = 1_000_000


def packed(content: bytes, level: int = 9) -> bytes:
    """The same bytes at any time, so that tests are called the same in each process."""
    return gzip.compress(content, level, mtime=0)


def redirect(location: str, status: int = 302) -> bytes:
    return f"HTTP/1.1 {status} Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()


def body(content: bytes, *headers: str) -> bytes:
    lines = "".join(f"{header}\r\n" for header in headers)
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(content)}\r\n{lines}\r\n".encode() + content


@dataclass
class Site:
    """A server that has an answer for each path."""

    answers: Mapping[str, bytes]
    asked: list[bytes] = field(default_factory=list)
    """Head and body of each request."""

    @property
    def paths(self) -> list[str]:
        return [request.split(b" ")[1].decode() for request in self.asked]

    async def serve(self, stream: ByteStream) -> None:
        request = await stream.receive()
        while b"\r\n\r\n" not in request:
            request += await stream.receive()
        head, _, content = request.partition(b"\r\n\r\n")
        length = int(dict(head_of(request)[1]).get(b"content-length", b"0"))
        while len(content) < length:
            content += await stream.receive()
        self.asked.append(head + b"\r\n\r\n" + content)
        await stream.send(self.answers[self.paths[-1]])


@asynccontextmanager
async def outside(
    sites: Mapping[tuple[str, int], Site], *, names: Mapping[str, Sequence[str]] | None = None
) -> AsyncGenerator[Network, None]:
    """Have each site stand for an address and a port."""
    network = Network(names=dict(names or {"example.org": [PUBLIC], "other.org": [OTHER]}))
    async with AsyncExitStack() as stack:
        for place, site in sites.items():
            network.ports[place] = await stack.enter_async_context(serving(site.serve))
        yield network


def client_of(network: Network, *own: str) -> GuardedClient:
    return GuardedClient(network.web, user_agent="tests/1", own=own)


async def got(network: Network, url: str, **asked: object) -> bytes:
    async with client_of(network) as client, client.stream("GET", url, **asked) as response:  # type: ignore[arg-type]
        return await response.read(MAX)


async def answered(answer: bytes, url: str = "http://example.org/", **asked: object) -> bytes:
    """Return the body of an answer that example.org gives in these bytes."""
    async with serving(Server(answer).serve) as port:
        return await got(Network(ports={(PUBLIC, 80): port}), url, **asked)


@on_both_backends
def test_answer_has_its_status_headers_and_body(backend: str) -> None:
    async def main() -> None:
        site = Site({"/a?b=c": body(b"hello", "X-One: 1", "x-one: 2")})
        async with outside({(PUBLIC, 80): site}) as network, client_of(network) as client:
            async with client.stream("GET", "http://EXAMPLE.org/a?b=c#d") as response:
                text = await response.read(MAX)

        assert (response.status, text) == (200, b"hello")
        assert (response.url, response.history) == ("http://example.org/a?b=c", ())
        assert (response.headers["X-ONE"], "nothing" in response.headers) == ("1, 2", False)
        line, headers = head_of(site.asked[0])
        assert line == b"GET /a?b=c HTTP/1.1"
        assert headers[b"host"] == b"example.org"
        assert headers[b"user-agent"] == b"tests/1"

    run_on(backend, main)


@on_both_backends
def test_tls_uses_the_hosts_name_and_the_checked_address(backend: str, tmp_path: Path) -> None:
    certificate = made_certificate(tmp_path, "example.org")

    async def main() -> None:
        async with serving(Server(HELLO).serve, certificate=certificate) as port:
            network = Network(ports={(PUBLIC, 443): port}, trusted=certificate)

            assert await got(network, "https://example.org/") == b"hello"
            assert network.dialled == [(PUBLIC, 443)]

    run_on(backend, main)


@pytest.mark.parametrize("host", ["other.org", PUBLIC])
async def test_certificate_of_another_host_is_refused(host: str, tmp_path: Path) -> None:
    certificate, server = made_certificate(tmp_path, "example.org"), Server(HELLO)
    async with serving(server.serve, certificate=certificate) as port:
        network = Network(names={"other.org": [PUBLIC]}, ports={(PUBLIC, 443): port}, trusted=certificate)

        with pytest.raises(ToolError, match=f"no safe connection to {host}"):
            await got(network, f"https://{host}/")

    assert server.received == []


async def test_server_without_tls_is_no_https(tmp_path: Path) -> None:
    certificate = made_certificate(tmp_path, "example.org")

    async def chatter(stream: ByteStream) -> None:
        await stream.send(b"220 hello\r\n")

    async with serving(chatter) as port:
        network = Network(ports={(PUBLIC, 443): port}, trusted=certificate)

        with pytest.raises(ToolError, match=r"no safe connection to example\.org"):
            await got(network, "https://example.org/")


async def test_unreadable_certificates_are_reported(tmp_path: Path) -> None:
    network = Network(trusted=tmp_path / "nowhere.pem")

    with pytest.raises(ToolError, match=r"no certificates to trust \(No such file"):
        await got(network, "https://example.org/")

    assert network.dialled == []


FORBIDDEN = [
    "http://127.0.0.1/",
    "http://10.0.0.1/",
    "http://169.254.169.254/latest/meta-data",
    "http://[::1]/",
    "http://[fd00::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://0x7f.1/",
    "http://2130706433/",
    "http://localhost/",
    "http://sub.localhost/",
    "http://printer.local/",
    "http://router/",
    "http://inside.org/",
    "http://mixed.org/",
    "http://mapped.org/",
    "http://user:pass@example.org/",
    "http://example.org:22/",
    "http://example.org\\@127.0.0.1/",
    "file:///etc/passwd",
    "ftp://example.org/",
    "gopher://example.org/",
    "data:text/plain,hello",
    "javascript:alert(1)",
]
NAMES = {
    "example.org": [PUBLIC],
    "inside.org": ["192.168.1.1"],
    "mixed.org": [PUBLIC, "10.0.0.1"],
    "mapped.org": ["::ffff:10.0.0.1"],
}


@pytest.mark.parametrize("url", FORBIDDEN)
async def test_private_address_is_never_dialled(url: str) -> None:
    network = Network(names=NAMES)

    with pytest.raises(ToolError):
        await got(network, url)

    assert network.dialled == []


@pytest.mark.parametrize("url", FORBIDDEN)
async def test_redirect_to_a_private_address_is_not_followed(url: str) -> None:
    site = Site({"/": redirect(url)})
    async with outside({(PUBLIC, 80): site}, names=NAMES) as network:
        with pytest.raises(ToolError):
            await got(network, "http://example.org/")

    assert network.dialled == [(PUBLIC, 80)]


@on_both_backends
def test_checked_address_is_dialled_despite_rebinding(backend: str) -> None:
    async def main() -> None:
        answers = [[PUBLIC], ["127.0.0.1"]]

        class Rebinding(Network):
            async def resolve(self, host: str, port: int) -> Sequence[str]:
                return answers.pop(0)

        async with serving(Server(HELLO).serve) as port:
            network = Rebinding(ports={(PUBLIC, 80): port, ("127.0.0.1", 80): port})

            assert await got(network, "http://example.org/") == b"hello"
            with pytest.raises(ToolError, match="not a public address"):
                await got(network, "http://example.org/")

        assert network.dialled == [(PUBLIC, 80)]

    run_on(backend, main)


async def test_addresses_of_a_host_are_all_tried() -> None:
    network = Network(names={"example.org": ["2606:4700::1", PUBLIC]})
    async with serving(Server(HELLO).serve) as port:
        network.ports[PUBLIC, 80] = port

        assert await got(network, "http://example.org/") == b"hello"

    assert network.dialled == [("2606:4700::1", 80), (PUBLIC, 80)]


async def test_redirects_are_followed_and_remembered() -> None:
    sites = {
        (PUBLIC, 80): Site({"/a/b": redirect("../c?d"), "/c?d": redirect("//other.org/e f")}),
        (OTHER, 80): Site({"/e%20f": HELLO}),
    }
    async with outside(sites) as network, client_of(network) as client:
        async with client.stream("GET", "http://example.org/a/b") as response:
            text = await response.read(MAX)

    assert text == b"hello"
    assert response.url == "http://other.org/e%20f"
    assert response.history == ("http://example.org/a/b", "http://example.org/c?d")


async def test_circular_redirects_end() -> None:
    site = Site({"/a": redirect("/b"), "/b": redirect("/a")})
    async with outside({(PUBLIC, 80): site}) as network:
        with pytest.raises(ToolError, match="in a circle"):
            await got(network, "http://example.org/a")

    assert site.paths == ["/a", "/b"]


async def test_redirects_are_bounded() -> None:
    site = Site({f"/{number}": redirect(f"/{number + 1}") for number in range(9)})
    async with outside({(PUBLIC, 80): site}) as network:
        with pytest.raises(ToolError, match="after 3 redirects"):
            await got(network, "http://example.org/0", max_redirects=3)

    assert site.paths == ["/0", "/1", "/2", "/3"]


async def test_https_does_not_lead_to_http(tmp_path: Path) -> None:
    certificate = made_certificate(tmp_path, "example.org")
    async with serving(Server(redirect("http://example.org/b")).serve, certificate=certificate) as port:
        network = Network(ports={(PUBLIC, 443): port}, trusted=certificate)

        with pytest.raises(ToolError, match="from https to http"):
            await got(network, "https://example.org/a")

    assert network.dialled == [(PUBLIC, 443)]


@pytest.mark.parametrize("location", ["http://other.org/", "http://example.org:8080/"])
async def test_private_headers_go_to_no_other_origin(location: str) -> None:
    first, second = Site({"/": redirect(location)}), Site({"/": HELLO})
    private = {"Authorization": "Bearer k", "Cookie": "a=b", "X-Subscription-Token": "k"}
    async with outside({(PUBLIC, 80): first, (OTHER, 80): second, (PUBLIC, 8080): second}) as network:
        await got(network, "http://example.org/", headers=private | {"Accept-Language": "en"})

    assert set(head_of(first.asked[0])[1]) >= {b"authorization", b"cookie", b"x-subscription-token"}
    assert set(head_of(second.asked[0])[1]) == {
        b"host", b"user-agent", b"accept", b"accept-encoding", b"accept-language", b"connection",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("status", "method", "then"),
    [(301, "POST", "GET"), (302, "POST", "GET"), (303, "PUT", "GET"), (303, "HEAD", "HEAD"), (307, "POST", "POST"),
     (308, "POST", "POST"), (302, "PUT", "PUT")],
)  # fmt: skip
async def test_method_and_body_follow_the_kind_of_redirect(status: int, method: str, then: str) -> None:
    site = Site({"/": redirect("/b", status), "/b": b"HTTP/1.1 204 None\r\n\r\n"})
    content = None if method == "HEAD" else b"body"
    async with outside({(PUBLIC, 80): site}) as network, client_of(network) as client:
        asked = client.stream(method, "http://example.org/", content=content, headers={"Content-Type": "text/plain"})
        async with asked as response:
            assert await response.read(MAX) == b""

    line, headers = head_of(site.asked[1])
    assert line.decode() == f"{then} /b HTTP/1.1"
    assert (site.asked[1].endswith(b"body"), b"content-type" in headers) == (
        then == method != "HEAD",
        then == method,
    )


async def test_body_goes_to_no_other_origin() -> None:
    other = Site({"/": HELLO})
    async with outside({(PUBLIC, 80): Site({"/": redirect("http://other.org/", 307)}), (OTHER, 80): other}) as network:
        async with client_of(network) as client:
            with pytest.raises(ToolError, match="not meant to go"):
                async with client.stream("POST", "http://example.org/", content=b"key"):
                    pass

    assert other.asked == []


async def test_caller_may_refuse_a_redirect() -> None:
    other, asked = Site({"/": HELLO}), []

    async def allow(plain: PlainUrl) -> None:
        asked.append(plain.host)
        if plain.host != "example.org":
            raise ToolError("another host than was allowed")

    async with outside({(PUBLIC, 80): Site({"/": redirect("http://other.org/")}), (OTHER, 80): other}) as network:
        with pytest.raises(ToolError, match="another host"):
            await got(network, "http://example.org/", allow=allow)

    assert (asked, other.asked, network.asked) == (["example.org", "other.org"], [], ["example.org"])


@on_both_backends
@pytest.mark.parametrize(
    ("answer", "content"),
    [
        (HELLO, b"hello"),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", b"until the end"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nX: y\r\n\r\n",
            b"abcde",
        ),
        (b"HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n" + HELLO, b"hello"),
        (b"HTTP/1.1 204 None\r\n\r\n", b""),
        (body(packed(b"hello" * 9), "Content-Encoding: gzip"), b"hello" * 9),
        (body(packed(b"a") + packed(b"b"), "Content-Encoding: x-gzip"), b"ab"),
        (body(packed(b"hello") + b"\0\0", "Content-Encoding: gzip"), b"hello"),
        (body(zlib.compress(b"hello"), "Content-Encoding: deflate"), b"hello"),
        (body(zlib.compress(b"hello", wbits=-15), "Content-Encoding: deflate"), b"hello"),
        (body(b"", "Content-Encoding: gzip"), b""),
    ],
)
def test_bodies_are_decoded(backend: str, answer: bytes, content: bytes) -> None:
    async def main() -> None:
        assert await answered(answer) == content

    run_on(backend, main)


@on_both_backends
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", "without an answer"),
        (b"HTTP/1.1 200 OK\r\nContent-", "without an answer|an invalid HTTP answer"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "an invalid HTTP answer"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200_000 + b"\r\n\r\n", "far too long head"),
        (b"HTTP/1.1 103 Early\r\n\r\n" * 3, "without an answer"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "before it was whole"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", "an invalid HTTP answer"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "before it was whole"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nabc\r\n0\r\n\r\n", "before it was whole"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "an invalid HTTP answer"),
        (body(packed(b"hello")[:-4], "Content-Encoding: gzip"), "before it was whole"),
        (body(b"hello", "Content-Encoding: gzip"), "is not gzip"),
        (body(b"hello", "Content-Encoding: br"), "was not asked for"),
        (body(packed(packed(b"a")), "Content-Encoding: gzip, gzip"), "was not asked for"),
    ],
)
def test_incomplete_answer_is_an_error(backend: str, answer: bytes, error: str) -> None:
    async def main() -> None:
        async with serving(Server(answer).serve) as port:
            with pytest.raises(ToolError, match=error):
                await got(Network(ports={(PUBLIC, 80): port}), "http://example.org/")

    run_on(backend, main)


async def test_body_may_be_taken_undecoded() -> None:
    content = packed(b"hello")
    answer = body(content, "Content-Encoding: gzip")

    assert await answered(answer, headers={"accept-encoding": "identity"}) == content
    assert await answered(answer, headers={"range": "bytes=0-"}) == content


async def test_body_that_grows_out_of_proportion_is_abandoned() -> None:
    bomb = packed(bytes(30_000_000), 9)
    server = Server(body(bomb, "Content-Encoding: gzip"))
    taken = 0
    async with serving(server.serve) as port:
        async with client_of(Network(ports={(PUBLIC, 80): port})) as client:
            with pytest.raises(ToolError, match="bomb"):
                async with client.stream("GET", "http://example.org/") as response:
                    async with aclosing(response.chunks()) as chunks:
                        async for chunk in chunks:
                            assert len(chunk) <= PIECE_BYTES
                            taken += len(chunk)

    assert taken < len(bomb) * MAX_RATIO + FREE_BYTES


async def test_body_is_read_no_further_than_wanted() -> None:
    async def endless(stream: ByteStream) -> None:
        await stream.receive()
        await stream.send(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            await stream.send(bytes(65536))

    async with serving(endless) as port:
        with pytest.raises(ToolError, match="more than the 1,000,000 bytes"):
            await got(Network(ports={(PUBLIC, 80): port}), "http://example.org/")


@on_both_backends
def test_silent_server_is_abandoned(backend: str) -> None:
    async def silent(stream: ByteStream) -> None:
        await stream.receive()
        await anyio.sleep_forever()

    async def main() -> None:
        async with serving(silent) as port:
            with pytest.raises(ToolError, match=r"within 0\.05 s"):
                await got(Network(ports={(PUBLIC, 80): port}), "http://example.org/", timeout_s=0.05)

    run_on(backend, main)


@on_both_backends
@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_dripping_server_is_abandoned(backend: str, head: bytes) -> None:
    async def drip(stream: ByteStream) -> None:
        await stream.receive()
        await stream.send(head or b"HTTP/1.1 200 OK\r\nX: ")
        while True:
            await stream.send(b"a")
            await anyio.sleep(0.005)

    async def main() -> None:
        async with serving(drip) as port, client_of(Network(ports={(PUBLIC, 80): port})) as client:
            with pytest.raises(ToolError, match=r"within 0\.05 s"):
                async with client.stream("GET", "http://example.org/", timeout_s=20 if head else 0.05) as response:
                    await response.read(MAX, within_s=0.05)

    run_on(backend, main)


async def test_stalled_body_is_abandoned() -> None:
    async def stops(stream: ByteStream) -> None:
        await stream.receive()
        await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello")
        await anyio.sleep_forever()

    async with serving(stops) as port:
        with pytest.raises(ToolError, match="stopped in the middle"):
            await got(Network(ports={(PUBLIC, 80): port}), "http://example.org/", timeout_s=2)  # the head must come


async def test_address_without_a_server_is_reported() -> None:
    with pytest.raises(ToolError, match=r"example\.org does not answer at port 8080"):
        await got(Network(), "http://example.org:8080/")


async def test_endless_dial_is_given_up() -> None:
    class Black(Network):
        async def dial(self, address: str, port: int) -> ByteStream:
            await anyio.sleep_forever()
            raise AssertionError

    with pytest.raises(ToolError, match="could not be reached within"):
        await got(Black(), "http://example.org/", timeout_s=0.05)


async def test_server_may_answer_before_it_has_the_whole_request() -> None:
    async def hasty(stream: ByteStream) -> None:
        await stream.receive()
        await stream.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")

    async with serving(hasty) as port, client_of(Network(ports={(PUBLIC, 80): port})) as client:
        async with client.stream("POST", "http://example.org/", content=bytes(200_000)) as response:
            assert response.status == 413


@on_both_backends
def test_leaving_early_leaves_no_connection(backend: str) -> None:
    async def main() -> None:
        ended = anyio.Event()

        async def endless(stream: ByteStream) -> None:
            await stream.receive()
            try:
                await stream.send(b"HTTP/1.1 200 OK\r\n\r\nhello")
                await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                ended.set()

        async with serving(endless) as port, client_of(Network(ports={(PUBLIC, 80): port})) as client:
            async with client.stream("GET", "http://example.org/") as response:
                assert response.status == 200
            await ended.wait()

    run_on(backend, main)


async def test_key_error_of_the_reader_is_unchanged() -> None:
    async with serving(Server(HELLO).serve) as port, client_of(Network(ports={(PUBLIC, 80): port})) as client:
        with pytest.raises(KeyError):
            async with client.stream("GET", "http://example.org/"):
                raise KeyError


async def test_open_connections_are_bounded() -> None:
    open_now, most = 0, 0

    async def slow(stream: ByteStream) -> None:
        nonlocal open_now, most
        await stream.receive()
        open_now += 1
        most = max(most, open_now)
        await anyio.lowlevel.checkpoint()
        open_now -= 1
        await stream.send(HELLO)

    async with serving(slow) as port, client_of(Network(ports={(PUBLIC, 80): port})) as client:

        async def ask() -> None:
            async with client.stream("GET", "http://example.org/") as response:
                await response.read(MAX)

        async with anyio.create_task_group() as group:
            for _ in range(3 * MAX_CONNECTIONS):
                group.start_soon(ask)

    assert 1 <= most <= MAX_CONNECTIONS


async def test_closed_client_sends_nothing() -> None:
    network = Network()
    async with client_of(network) as client:
        pass

    with pytest.raises(ToolError, match="about to end"):
        async with client.stream("GET", "http://example.org/"):
            pass
    assert network.asked == []


OWN = "http://127.0.0.1:8888"


@pytest.mark.parametrize("own", [OWN, "http://searx.lan:8888", "http://localhost:8888"])
async def test_host_named_by_the_user_may_be_private(own: str) -> None:
    async with serving(Server(HELLO).serve) as port:
        network = Network(names={"searx.lan": ["127.0.0.1"]}, ports={("127.0.0.1", 8888): port})

        async with client_of(network, own) as client, client.stream("GET", f"{own}/search") as response:
            assert await response.read(MAX) == b"hello"


@pytest.mark.parametrize("other", ["http://127.0.0.1:8889/", "http://127.0.0.2:8888/", "https://127.0.0.1:8888/"])
async def test_host_named_by_the_user_opens_nothing_beside_it(other: str) -> None:
    site = Site({"/": redirect(other)})
    async with outside({("127.0.0.1", 8888): site}) as network, client_of(network, OWN) as client:
        for url in (other, OWN):
            with pytest.raises(ToolError):
                async with client.stream("GET", url):
                    pass

    assert set(network.dialled) == {("127.0.0.1", 8888)}


@pytest.mark.parametrize("own", [OWN, "http://hub.example.com:8888", "http://localhost:8888"])
@pytest.mark.parametrize("start", ["http://example.org/", "http://example.org/twice"])
async def test_foreign_redirect_does_not_reach_the_users_host(own: str, start: str) -> None:
    site = Site({"/": redirect(f"{own}/delete"), "/twice": redirect("http://other.org/")})
    names = {"example.org": [PUBLIC], "other.org": [OTHER], "hub.example.com": ["127.0.0.1"]}
    places = {(PUBLIC, 80): site, (OTHER, 80): site, ("127.0.0.1", 8888): Site({})}
    async with outside(places, names=names) as network, client_of(network, own) as client:
        with pytest.raises(ToolError, match=r"not a public address|a host in this machine"):
            async with client.stream("GET", start):
                pass

    assert ("127.0.0.1", 8888) not in network.dialled


async def test_host_named_by_the_user_may_redirect_to_itself() -> None:
    site = Site({"/": redirect("/there"), "/there": HELLO})
    async with outside({("127.0.0.1", 8888): site}) as network, client_of(network, OWN) as client:
        async with client.stream("GET", OWN) as response:
            assert await response.read(MAX) == b"hello"


@pytest.mark.parametrize("name", ["Host", "content-length", "Transfer-Encoding", "Connection"])
async def test_callers_cannot_set_framing_headers(name: str) -> None:
    with pytest.raises(ValueError, match=name.lower()):
        await got(Network(), "http://example.org/", headers={name: "1"})


@pytest.mark.parametrize("value", ["a\r\nHost: b", "ü", "\x00"])
async def test_ambiguous_header_is_not_sent(value: str) -> None:
    server = Server(HELLO)
    async with serving(server.serve) as port:
        with pytest.raises(ToolError, match="cannot be asked"):
            await got(Network(ports={(PUBLIC, 80): port}), "http://example.org/", headers={"x": value})

    assert server.received in ([], [b""])


async def test_path_characters_are_encoded() -> None:
    site = Site({"/%C3%BC?q=%E2%82%AC": HELLO})
    async with outside({(PUBLIC, 80): site}) as network:
        assert await got(network, "http://example.org/ü?q=€") == b"hello"


_LOCATIONS = st.one_of(
    st.sampled_from([*FORBIDDEN, "/", "//other.org/", "https://other.org/", "http://other.org", "?", "#", "", "http:",
                     "http:///a", "http://[", "http://other.org:0/", "HTTP://EXAMPLE.ORG/", "\\\\127.0.0.1\\"]),
    st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF), max_size=40),
    st.ip_addresses().map(lambda address: f"http://{f'[{address}]' if address.version == 6 else address}/"),
)  # fmt: skip
_STATUS = st.sampled_from([200, 301, 302, 303, 307, 308, 300, 304, 401])


@given(
    hops=st.lists(st.tuples(_STATUS, _LOCATIONS), min_size=1, max_size=4),
    resolved=st.lists(st.ip_addresses().map(str), min_size=1, max_size=3),
    raw=st.binary(max_size=60),
)
@settings(max_examples=60, deadline=None)
def test_client_dials_only_public_addresses_for_any_answers(
    hops: list[tuple[int, str]], resolved: list[str], raw: bytes
) -> None:
    async def main() -> None:
        answers = [
            f"HTTP/1.1 {status} X\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode("latin-1", "replace")
            for status, location in hops
        ]

        async def serve(stream: ByteStream) -> None:
            await stream.receive()
            await stream.send(answers.pop(0) if answers else raw)

        async with serving(serve) as port:

            class Anywhere(Network):
                async def resolve(self, host: str, port: int) -> Sequence[str]:
                    return [PUBLIC] if host == "example.org" else resolved

                async def dial(self, address: str, port_: int) -> ByteStream:
                    self.dialled.append((address, port_))
                    return await anyio.connect_tcp("127.0.0.1", port)

                def certificates(self) -> ssl.SSLContext:
                    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts none: a redirect may lead to TLS

            network = Anywhere()
            with suppress(ToolError):
                await got(network, "http://example.org/", timeout_s=20)

        assert network.dialled[0] == (PUBLIC, 80)
        assert all(is_public(ip_address(address)) for address, _ in network.dialled)

    anyio.run(main)


@pytest.mark.parametrize("key", ["s3cret\n", "s3cret\r\nHost: evil.org", "s3cret\u00fc", "\0s3cret"])
async def test_key_that_cannot_be_sent_is_in_no_error(key: str) -> None:
    server = Server(HELLO)
    async with serving(server.serve) as port:
        network = Network(ports={(PUBLIC, 80): port})
        with pytest.raises(ToolError, match="cannot be asked") as caught:
            await got(network, "http://example.org/", headers={"authorization": f"Bearer {key}"})

    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert server.received in ([], [b""])


@pytest.mark.parametrize("location", ["http://[do as this server says/", "do-as-this-server-says-" * 9 + "://a.org/"])
async def test_redirect_error_omits_the_servers_words(location: str) -> None:
    async with serving(Server(redirect(location)).serve) as port:
        with pytest.raises(ToolError) as caught:
            await got(Network(ports={(PUBLIC, 80): port}), "http://example.org/")

    assert "server says" not in str(caught.value)
    assert str(caught.value).count("server-says") <= 1


@on_both_backends
@pytest.mark.parametrize("is_body", [True, False])
def test_trickling_server_leaves_others_their_turns(backend: str, is_body: bool) -> None:
    chunks = b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 5_000 + b"0\r\n\r\n"
    before = b"HTTP/1.1 103 Early Hints\r\n\r\n" * 3_000
    answer = b"HTTP/1.1 200 OK\r\n" + chunks if is_body else before + HELLO
    turns = 0

    async def main() -> None:
        nonlocal turns

        async def take_turns() -> None:
            nonlocal turns
            while True:
                await anyio.lowlevel.checkpoint()
                turns += 1

        async with serving(Server(answer).serve) as port, anyio.create_task_group() as others:
            others.start_soon(take_turns)
            await got(Network(ports={(PUBLIC, 80): port}), "http://example.org/")
            others.cancel_scope.cancel()

        assert turns >= 3_000

    run_on(backend, main)
