import anyio
import pytest
from anyio.abc import SocketStream
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.system.sandbox.domain_proxy import NotGrantedError
from panpan.system.web.proxy_connection import MAX_HEAD_BYTES, ProxyTimeouts
from tests.fakes.outside import OTHER, PUBLIC, Network, Server, head_of, rest_of, said_to, serving
from tests.system.backends import on_both_backends, run_on
from tests.system.sandbox.proxies import proxying

GET = b"GET http://example.org/a?b=c HTTP/1.1\r\nHost: example.org\r\n\r\n"
CONNECT = b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n"
POST = b"POST http://example.org/ HTTP/1.1\r\nHost: example.org\r\n"
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


async def asked(
    request: bytes, server: Server | None = None, *, port: int = 80, domains: tuple[str, ...] = ("example.org",)
) -> bytes:
    """Return what the proxy answers to `request`, with `server` in the place of example.org."""
    server = server or Server()
    async with serving(server.serve) as server_port:
        async with proxying(Network(ports={(PUBLIC, port): server_port}), domains) as (proxy, _):
            return await said_to(proxy, request)


async def refused(request: bytes) -> bytes:
    """Return the answer to a request that must not reach any server."""
    network = Network(names={"example.org": [PUBLIC], "granted-too.org": [OTHER], "rebinding.org": ["127.0.0.1"]})
    domains = ("example.org", "granted-too.org", "rebinding.org", "*.wild.org")
    async with proxying(network, domains) as (proxy, refusals):
        answer = await said_to(proxy, request)
    assert network.dialled == []
    assert not answer or b"\r\nConnection: close\r\n" in answer
    for refusal in refusals:
        assert str(refusal).encode() in answer
    return answer


@on_both_backends
def test_request_reaches_only_the_granted_server(backend: str) -> None:
    async def main() -> None:
        server, network = Server(), Network()
        async with serving(server.serve) as network.ports[PUBLIC, 80], proxying(network) as (proxy, refusals):
            answer = await said_to(proxy, GET)

        assert answer == b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
        assert server.received == [b"GET /a?b=c HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n"]
        assert (network.asked, network.dialled, refusals) == (["example.org"], [(PUBLIC, 80)], [])

    run_on(backend, main)


@on_both_backends
def test_tunnel_carries_bytes_both_ways_until_both_sides_end(backend: str) -> None:
    async def echo(stream: SocketStream) -> None:
        received = await rest_of(stream)
        await stream.send(received[::-1])

    async def main() -> None:
        network, sent = Network(), bytes(range(256)) * 4_000
        async with serving(echo) as network.ports[PUBLIC, 443], proxying(network) as (proxy, refusals):
            async with await anyio.connect_tcp("127.0.0.1", proxy) as client:
                await client.send(CONNECT + sent[:10])  # a client need not wait for the answer
                assert await client.receive(len(ESTABLISHED)) == ESTABLISHED
                await client.send(sent[10:])
                await client.send_eof()
                assert await rest_of(client) == sent[::-1]

        assert (network.dialled, refusals) == ([(PUBLIC, 443)], [])

    run_on(backend, main)


@on_both_backends
def test_ungranted_host_is_refused_in_one_line_with_the_setting(backend: str) -> None:
    async def main() -> None:
        async with proxying(Network()) as (proxy, refusals):
            answers = [
                await said_to(proxy, b"CONNECT evil.org:443 HTTP/1.1\r\nHost: evil.org:443\r\n\r\n"),
                await said_to(proxy, b"GET http://evil.org:8080/ HTTP/1.1\r\nHost: evil.org:8080\r\n\r\n"),
                await said_to(proxy, b"HEAD http://evil.org/ HTTP/1.1\r\nHost: evil.org\r\n\r\n"),
            ]

        how = b'"evil.org" in sandbox.domains would grant it, or --allow-network=evil.org'
        line = b"panpan: evil.org is not among the granted domains; " + how
        first, _, body = answers[0].partition(b"\r\n\r\n")
        assert (first.split(b"\r\n")[0], body) == (b"HTTP/1.1 403 " + line, line + b"\n")
        assert b'"evil.org:8080" in sandbox.domains' in answers[1]
        assert answers[2].endswith(b"\r\n\r\n")
        assert all(isinstance(refusal, NotGrantedError) for refusal in refusals)
        grants = ('"evil.org" in', '"evil.org:8080" in', '"evil.org" in')
        assert all(grant in str(refusal) for grant, refusal in zip(grants, refusals, strict=True))

    run_on(backend, main)


@pytest.mark.parametrize(
    "target",
    ["evil.org", "example.org.evil.org", "wild.org", "93.184.216.34", "127.0.0.1", "[::1]", "localhost", "",
     "rebinding.org", "169.254.169.254", "example.org:22", "example.org:8080", "2130706433", "0x7f.1", "127.1",
     "0177.0.0.1", "[::ffff:127.0.0.1]", "example.org@evil.org", "user:secret@example.org", ":80",
     "example.org%00.evil.org", "example.org\\.evil.org", "exam%70le.org", "example.org:80:80", "example.org:080",
     "example.org:", "[example.org]", "ex\u00e4mple.org", "*.wild.org", "evil.wild.org.", "a.wild.org:22"],
)  # fmt: skip
@pytest.mark.parametrize(
    "form", ["GET http://{}/ HTTP/1.1\r\nHost: {}\r\n\r\n", "CONNECT {} HTTP/1.1\r\nHost: {}\r\n\r\n"]
)
async def test_ungranted_hosts_are_never_dialled(target: str, form: str) -> None:
    if form.startswith("CONNECT") and not target.endswith(("22", "80", ":")):
        target = f"{target}:443"

    answer = await refused(form.format(target, target).encode())

    assert answer.startswith((b"HTTP/1.1 403 ", b"HTTP/1.1 400 ", b"HTTP/1.1 502 panpan: evil.wild.org has no address"))


@pytest.mark.parametrize(
    "request_",
    [
        # two hosts
        b"GET http://example.org/ HTTP/1.1\r\nHost: granted-too.org\r\n\r\n",
        b"GET http://example.org/ HTTP/1.1\r\nHost: example.org:8080\r\n\r\n",
        b"GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\nHost: granted-too.org\r\n\r\n",
        b"GET http://example.org/ HTTP/1.1\r\nHost : granted-too.org\r\nHost: example.org\r\n\r\n",
        b"GET http://example.org/ HTTP/1.1\r\nHost:\r\n\r\n",
        b"GET http://example.org/ HTTP/1.1\r\nHost: example.org, granted-too.org\r\n\r\n",
        b"GET http://example.org/ HTTP/1.1\r\n\r\n",
        b"CONNECT example.org:443 HTTP/1.1\r\nHost: granted-too.org:443\r\n\r\n",
        b"CONNECT example.org HTTP/1.1\r\nHost: example.org\r\n\r\n",
        # forms that are for no proxy
        b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
        b"GET //example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
        b"GET https://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
        b"GET ftp://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
        b"GET http:example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
        b"GET http://example.org/#a HTTP/1.1\r\nHost: example.org\r\n\r\n",
        b"CONNECT http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
        b"CONNECT example.org:443/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: example.org\r\n\r\n",
        # lengths that can be read in two ways
        POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        POST + b"Content-Length: 3, 4\r\n\r\nabcd",
        POST + b"Content-Length: +3\r\n\r\nabc",
        POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n",
        POST + b"Transfer-Encoding\x0b: chunked\r\n\r\n0\r\n\r\n",
        b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\nContent-Length: 3\r\n\r\nabc",
        # no requests of HTTP/1
        b"GET http://example.org/ HTTP/2.0\r\nHost: example.org\r\n\r\n",
        b"GET http://example.org/\r\n\r\n",
        b"GET  http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
        b"GET http://example.org/ x HTTP/1.1\r\nHost: example.org\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"\x05\x01\x00",
        b"GET http://exam\0ple.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
        b"GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\nX: a\0b\r\n\r\n",
    ],
)  # fmt: skip
async def test_ambiguous_requests_reach_nobody(request_: bytes) -> None:
    answer = await refused(request_)

    assert answer == b"" or answer.startswith((b"HTTP/1.1 400 panpan: ", b"HTTP/1.1 501 panpan: "))


async def test_endless_head_is_refused() -> None:
    for request in (b"GET http://example.org/" + b"a" * 10 * MAX_HEAD_BYTES, GET[:-2] + b"X: x\r\n" * MAX_HEAD_BYTES):
        assert (await refused(request))[:13] in (b"HTTP/1.1 431 ", b"")  # reset, while it is still sent


async def test_slow_client_is_answered_with_a_timeout() -> None:
    async with proxying(Network(), timeouts=ProxyTimeouts(head_s=0.05)) as (proxy, _):
        async with await anyio.connect_tcp("127.0.0.1", proxy) as client:
            await client.send(GET[:-4])

            assert (await rest_of(client)).startswith(b"HTTP/1.1 408 panpan: ")


@pytest.mark.parametrize("request_", [GET, CONNECT])
async def test_silent_server_is_answered_with_a_timeout(request_: bytes) -> None:
    async def silent(stream: SocketStream) -> None:
        await rest_of(stream)

    network = Network()
    async with serving(silent) as port, proxying(network, timeouts=ProxyTimeouts(idle_s=0.05)) as (proxy, _):
        network.ports |= {(PUBLIC, 80): port, (PUBLIC, 443): port}

        answer = await said_to(proxy, request_)

    assert answer == ESTABLISHED if request_ == CONNECT else answer.startswith(b"HTTP/1.1 504 panpan: example.org said")


async def test_proxy_headers_are_dropped_and_others_are_passed_on() -> None:
    server = Server()

    await asked(
        b"GET http://Example.ORG:80?q HTTP/1.1\r\nhost: EXAMPLE.org\r\nProxy-Connection: keep-alive\r\nX-Own: 1 2\r\n"
        b"Proxy-Authorization: Basic eDp5\r\nConnection: keep-alive, X-Hop, Host\r\nKeep-Alive: 5\r\nX-Hop: 1\r\n"
        b"Upgrade: websocket\r\nTE: trailers\r\nAuthorization: Bearer own\r\n\r\n",
        server,
    )

    line, headers = head_of(server.received[0])
    assert line == b"GET /?q HTTP/1.1"
    assert headers == {
        b"host": b"example.org:80",
        b"x-own": b"1 2",
        b"authorization": b"Bearer own",
        b"connection": b"close",
    }


async def test_connection_header_cannot_remove_the_body_length() -> None:
    server = Server(until=b"abc")

    await asked(
        POST + b"Connection: Content-Length\r\nContent-Length: 3\r\n\r\nabc",
        server,
    )

    assert server.received[0].endswith(b"Content-Length: 3\r\nConnection: close\r\n\r\nabc")


SMUGGLED = b"GET http://granted-too.org/secret HTTP/1.1\r\nHost: granted-too.org\r\n\r\n"


@pytest.mark.parametrize(
    ("request_", "body"),
    [
        (GET, b""),
        (POST + b"Content-Length: 3\r\n\r\nabc", b"abc"),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n3;ext=1\r\nabc\r\n0\r\n\r\n", b"3\r\nabc\r\n0\r\n\r\n"),
        (POST + b"Transfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", b"3\r\nabc\r\n0\r\n\r\n"),
    ],
)
async def test_bytes_after_the_request_reach_no_server(request_: bytes, body: bytes) -> None:
    server = Server(until=b"\r\n\r\n" + body)

    answer = await asked(request_ + SMUGGLED, server)

    assert len(server.received) == 1
    assert server.received[0].endswith(b"Connection: close\r\n\r\n" + body)
    assert answer.count(b"HTTP/1.1 ") == 1


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [b"Content-Length: 4", b"Content-Length: 0", b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity",
             b" continued", b"Connection: Transfer-Encoding", b"X: \xff", b"Content-Length : 4", b"\tx"],
        ),
        max_size=3,
    ),
    st.sampled_from([b"\r\n", b"\n"]),
    st.sampled_from([b"", b"0\r\n\r\n", b"4\r\nGET \r\n0\r\n\r\n", b"abcd"]),
)  # fmt: skip
def test_server_never_gets_two_requests_out_of_one(headers: list[bytes], newline: bytes, body: bytes) -> None:
    server = Server(until=b"\r\n\r\n")
    request = newline.join([b"POST http://example.org/ HTTP/1.1", b"Host: example.org", *headers, b"", b""])

    async def main() -> None:
        with anyio.fail_after(20):
            await asked(request + body + SMUGGLED, server)

    anyio.run(main)

    assert b"secret" not in b"".join(server.received)
    assert len(server.received) <= 1


@pytest.mark.parametrize(
    ("sent", "got"),
    [
        (b"HTTP/1.1 204 No Content\r\nKeep-Alive: x\r\n\r\n", b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"),
        (
            b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        ),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\na",
        ),
        (
            b"HTTP/1.0 200 OK\r\n\r\nto the end",
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\na\r\nto the end\r\n0\r\n\r\n",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        ),
    ],
)
async def test_answer_is_passed_on_once_and_ends_the_connection(sent: bytes, got: bytes) -> None:
    assert await asked(GET, Server(answer=sent)) == got


@pytest.mark.parametrize(
    "sent", [b"", b"HTTP/1.1 20", b"nonsense\r\n\r\n", b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"]
)
async def test_incomplete_answer_of_a_server_is_reported(sent: bytes) -> None:
    assert (await asked(GET, Server(answer=sent))).startswith(b"HTTP/1.1 502 panpan: the server ended the connection")


async def test_broken_answer_is_not_completed() -> None:
    answer = await asked(GET, Server(answer=b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"))

    assert answer == b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\nhello"


async def test_server_may_answer_before_it_has_the_whole_body() -> None:
    sent = b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!"
    async with serving(Server(answer=sent).serve) as port, proxying(Network(ports={(PUBLIC, 80): port})) as (proxy, _):
        async with await anyio.connect_tcp("127.0.0.1", proxy) as client:
            await client.send(POST + b"Content-Length: 1000000\r\n\r\n" + b"x" * 1_000)

            assert (await rest_of(client)).endswith(b"\r\n\r\nno!")


async def test_client_leaving_closes_the_server_connection() -> None:
    left = anyio.Event()

    async def patient(stream: SocketStream) -> None:
        await rest_of(stream)
        left.set()

    async with serving(patient) as port, proxying(Network(ports={(PUBLIC, 80): port})) as (proxy, _):
        async with await anyio.connect_tcp("127.0.0.1", proxy) as client:
            await client.send(GET)

        with anyio.fail_after(30):
            await left.wait()


async def test_next_address_is_tried_if_one_does_not_answer() -> None:
    network = Network(names={"example.org": [OTHER, PUBLIC]})
    async with serving(Server().serve) as network.ports[PUBLIC, 80], proxying(network) as (proxy, _):
        answer = await said_to(proxy, GET)

    assert answer.endswith(b"hello")
    assert network.dialled == [(OTHER, 80), (PUBLIC, 80)]


async def test_unreachable_server_is_no_refusal() -> None:
    async with proxying(Network()) as (proxy, refusals):
        answer = await said_to(proxy, GET)

    assert answer.startswith(b"HTTP/1.1 502 panpan: example.org does not answer at port 80\r\n")
    assert refusals == []
