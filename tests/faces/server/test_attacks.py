"""Requests of attackers: each is refused, and costs others nothing."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.capabilities.mcp.place import Place
from tests.faces.server.served import TOKEN, Server, client_of, refusal_in, served_in

AUTH = f"Authorization: Bearer {TOKEN}\r\n"
HEALTH = "/v1/health"


MALFORMED = [
    "POST /v1/sessions HTTP/1.1\r\nHOSTJSONContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
    "0\r\n\r\nGET /x HTTP/1.1\r\n\r\n",
    "POST /v1/sessions HTTP/1.1\r\nHOSTJSONContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "POST /v1/sessions HTTP/1.1\r\nHOSTJSONContent-Length: +2\r\n\r\n{}",
    "POST /v1/sessions HTTP/1.1\r\nHOSTJSONContent-Length: -1\r\n\r\n{}",
    "POST /v1/sessions HTTP/1.1\r\nHOSTJSONTransfer-Encoding: xchunked\r\n\r\n{}",
    "POST /v1/sessions HTTP/1.1\r\nHOSTJSONTransfer-Encoding: chunked, identity\r\n\r\n{}",
    "POST /v1/sessions HTTP/1.1\r\nHOSTJSONTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "POST /v1/sessions HTTP/1.1\r\nHOSTJSONTransfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n0\r\n\r\n",
    "GET /v1/health HTTP/1.1\r\nHOSTX-A: a\x00b\r\n\r\n",
    "GET /v1/health HTTP/1.1\r\nHOSTX-A\r\n\r\n",
    "GET /v1/he alth HTTP/1.1\r\nHOST\r\n\r\n",
    "GET /v1/health?LONG HTTP/1.1\r\nHOST\r\n\r\n",
    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
]
"""Requests that are none; HOST stands for what every request has."""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


def status_in(received: bytes) -> int:
    """Return the status of a response."""
    return int(received.split(b" ", 2)[1])


async def status_of(it: Server, head: str, line: str = f"GET {HEALTH} HTTP/1.1") -> int:
    """Return the status of a request with a head of its own."""
    return status_in(await it.raw(f"{line}\r\n{head.replace('PORT', str(it.port))}Connection: close\r\n\r\n".encode()))


async def test_only_own_names_are_answered(place: Place) -> None:
    own = ("127.0.0.1:PORT", "localhost:PORT", "[::1]:PORT", "LocalHost:PORT")
    foreign = (
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1:PORT.",
        "localhost.:PORT",
        "localhost:PORT@evil.example",
        "evil.example",
        "evil.example:PORT",
        "127.0.0.1.evil.example:PORT",
        "127.1:PORT",
        "0.0.0.0:PORT",
        "2130706433:PORT",
        "",
    )
    async with served_in(place) as it:
        statuses = {name: await status_of(it, f"Host: {name}\r\n{AUTH}") for name in (*own, *foreign)}
        none = await status_of(it, AUTH)
        two = await status_of(it, f"Host: 127.0.0.1:PORT\r\nHost: evil.example\r\n{AUTH}")
        old = await status_of(it, AUTH, f"GET {HEALTH} HTTP/1.0")
        page = await status_of(it, "Host: evil.example\r\n", "GET / HTTP/1.1")

    assert {statuses[name] for name in own} == {200}
    assert {statuses[name] for name in foreign} == {421}
    assert (none, two, old, page) == (400, 400, 421, 421)


async def test_other_origins_are_refused_and_get_no_permission(place: Place) -> None:
    async with served_in(place) as it:
        own = await it.http.get(HEALTH, headers={"Origin": it.url})
        foreign = [
            await it.http.request(verb, HEALTH, headers={"Origin": origin})
            for verb in ("GET", "POST", "OPTIONS")
            for origin in ("http://evil.example", "null", "file://", f"{it.url}.evil.example", f"https{it.url[4:]}", "")
        ]
        twice = await it.http.get(HEALTH, headers=[("Origin", "http://evil.example"), ("Origin", it.url)])
        preflight = await it.http.options(
            "/v1/sessions", headers={"Origin": it.url, "Access-Control-Request-Method": "POST"}
        )

    assert own.status_code == 200
    assert {one.status_code for one in (*foreign, twice)} == {403}
    assert preflight.status_code == 405
    assert not [name for one in (own, *foreign, preflight) for name in one.headers if name.startswith("access-control")]


async def test_bodies_that_forms_send_are_refused(place: Place) -> None:
    kinds = (
        None,
        "text/plain",
        "text/plain; application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=a",
        "application/jsonx",
        "application/json, text/plain",
    )
    async with served_in(place) as it:
        headers = [{} if kind is None else {"Content-Type": kind} for kind in kinds]
        statuses = [(await it.http.post("/v1/sessions", content=b"{}", headers=one)).status_code for one in headers]
        chunked = await it.http.post(
            "/v1/sessions", content=_pieces(b"{", b"}"), headers={"Content-Type": "text/plain"}
        )
        count = (await it.call("GET", "health"))["open_sessions"]

    assert statuses == [415] * len(kinds)
    assert chunked.status_code == 415
    assert count == 0


async def _pieces(*pieces: bytes) -> AsyncGenerator[bytes, None]:
    for piece in pieces:
        yield piece


async def test_token_counts_in_its_header_alone(place: Place) -> None:
    async with served_in(place) as it, client_of(it.url, None) as nobody:
        answers = [
            await nobody.get(HEALTH),
            await nobody.get(HEALTH, params={"token": TOKEN, "access_token": TOKEN}),
            await nobody.get(HEALTH, headers={"Cookie": f"token={TOKEN}; Authorization=Bearer {TOKEN}"}),
            await nobody.get(HEALTH, headers={"X-Token": TOKEN}),
            await nobody.get(f"/v1/sessions/{TOKEN}"),
            *[
                await nobody.get(HEALTH, headers={"Authorization": given})
                for given in (
                    "",
                    "Bearer",
                    f"Basic {TOKEN}",
                    TOKEN,
                    f"Bearer {TOKEN}x",
                    f"Bearer {TOKEN[:-1]}",
                )
            ],
            await nobody.get(HEALTH, headers={b"Authorization": "Bearer é".encode()}),
            await nobody.get(HEALTH, headers=[("Authorization", "Bearer x"), ("Authorization", f"Bearer {TOKEN}")]),
            await nobody.post("/v1/sessions", content=b"x" * 200_000),
        ]
        right = [
            await nobody.get(HEALTH, headers={"Authorization": f"{word} {TOKEN}"}) for word in ("bearer", "BEARER")
        ]
        log = it.log

    assert [refusal_in(one)[0] for one in answers] == [401] * len(answers)
    assert {one.headers["www-authenticate"] for one in answers} == {"Bearer"}
    assert not [one for one in answers if TOKEN in one.text]
    assert [one.status_code for one in right] == [200, 200]
    assert len(log) == len(answers) + len(right)
    assert sum(TOKEN in line for line in log) == 1, "where it is the path, it is what the client asked for"


async def test_log_of_requests_is_of_plain_lines(place: Place) -> None:
    async with served_in(place) as it:
        await it.http.get("/v1/a%0a%1b[2Jb")
        await it.http.get("/" + "x" * 5_000)

    assert it.log[0] == "GET /v1/a b 404"
    assert len(it.log) == 2
    assert len(it.log[1]) < 400


async def test_paths_lead_nowhere_else(place: Place) -> None:
    paths = (
        "/v1/sessions/../../x",
        "/v1/sessions/..%2f..%2fx",
        "/v1/sessions/%2e%2e/%2e%2e/x",
        "/v1/sessions/..%5c..%5cx",
        "/v1/sessions/%00",
        "/v1/sessions/..",
        "/v1/sessions/x/files/../../../etc/passwd",
        "/v1/sessions/x%2fstatus",
        "//v1/health",
        "/v1/health/",
        "/v1/./health",
        "/V1/health",
        "/page/../v1/health",
        "/page/..%2fv1%2fhealth",
        "/%ff",
        "/v1/sessions/01890000-0000-7000-8000-000000000000",
        "/v1/sessions/01890000000070008000000000000000/events",
        "http://evil.example/v1/health",
        "*",
    )
    async with served_in(place) as it:
        head = f"Host: 127.0.0.1:PORT\r\n{AUTH}"
        statuses = {path: await status_of(it, head, f"GET {path} HTTP/1.1") for path in paths}
        without = {path: await status_of(it, "Host: 127.0.0.1:PORT\r\n", f"GET {path} HTTP/1.1") for path in paths}

    assert statuses == dict.fromkeys(paths, 404)
    assert set(without.values()) == {401, 404}
    assert {path for path, status in without.items() if status == 404} == {
        path for path in paths if "/page/" in path[:6]
    }


async def test_other_verbs_are_refused_with_those_that_count(place: Place) -> None:
    async with served_in(place) as it:
        verbs = ("HEAD", "OPTIONS", "PUT", "TRACE", "NONSENSE")
        paths = ("/v1/sessions", "/v1/events", "/v1/sessions/x/events", "/doc")
        answers = {(verb, path): await it.http.request(verb, path) for verb in verbs for path in paths}

    assert {key: one.status_code for key, one in answers.items()} == dict.fromkeys(answers, 405)
    assert answers["PUT", "/v1/sessions"].headers["allow"] == "GET, POST"


async def test_request_that_is_no_http_is_refused(place: Place) -> None:
    async with served_in(place) as it:
        head = f"Host: 127.0.0.1:{it.port}\r\n{AUTH}"
        received = {}
        for one in MALFORMED:
            sent = (
                one.replace("HOST", head)
                .replace("JSON", "Content-Type: application/json\r\n")
                .replace("LONG", "x" * 70_000)
            )
            received[one] = await it.raw(sent.encode("latin-1"))
        count = (await it.call("GET", "health"))["open_sessions"]

    assert {one: status_in(answer) for one, answer in received.items()} == dict.fromkeys(received, 400)
    assert not [one for one, answer in received.items() if b" 200 " in answer or b" 404 " in answer]
    assert count == 0


async def test_upgrade_to_another_protocol_is_none(place: Place) -> None:
    upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n"
    async with served_in(place) as it:
        host = f"Host: 127.0.0.1:PORT\r\n{upgrade}"
        statuses = [
            await status_of(it, host),
            await status_of(it, host, "GET /v1/events HTTP/1.1"),
            await status_of(it, f"{host}Origin: http://evil.example\r\n"),
            await status_of(it, f"Host: evil.example\r\n{upgrade}"),
            await status_of(it, f"{host}{AUTH}"),
        ]

    assert statuses == [401, 401, 403, 421, 200]


async def test_name_of_a_client_is_one_clean_short_line(place: Place) -> None:
    name = b"a\x80\xe2\x80\xaeb" + b"c" * 1_000
    async with served_in(place, "hello") as it:
        session = await it.open()
        it.http.headers.update([(b"X-Panpan-Client", name)])
        async with it.events(session, after=0) as events:
            await it.send(session)
            began = await events.until("turn_began")

    client = began[-1][2]["client"]
    assert client.isprintable()
    assert len(client) <= 100


async def test_place_of_the_future_or_of_nonsense_is_told(place: Place) -> None:
    async with served_in(place) as it:
        session = await it.open()
        epoch = (await it.call("GET", f"sessions/{session}"))["epoch"]
        first = []
        for query in (
            {"after": 10**12},
            {"after": 10**12, "epoch": epoch},
            {"after": 0, "epoch": "other"},
            {"last": f"{epoch}:{10**12}"},
            {"last": "other:1"},
            {"last": "nonsense"},
        ):
            if query.get("last") == "nonsense":
                refused = await it.http.get(f"/v1/sessions/{session}/events", headers={"Last-Event-ID": "nonsense"})
                continue
            async with it.events(session, **query) as events:
                first.append((await events.next())[1:])

    assert first == [("resync", {"blocks": [], "is_whole": False})] * 5
    assert refusal_in(refused)[0] == 400


async def test_client_takes_no_name_of_a_socket(place: Place) -> None:
    async with served_in(place, "hello") as it:
        session = await it.open()
        async with it.events(session, after=0) as events:
            body = {"parts": [{"type": "text", "text": "go"}]}
            headers = {"X-Panpan-Client": "program socket 1"}
            await it.http.post(f"/v1/sessions/{session}/prompts", json=body, headers=headers)
            began = (await events.until("turn_began"))[-1]

    assert began[2]["client"] == "program socket 1 http"
