"""Clients whose connection breaks, or whose server is killed, go on without a gap and without a double."""

import signal
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from itertools import islice
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import anyio
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.server.event_stream import EventLines, event_stream, stream_of_all
from panpan.hub.events import HubEvent, TurnClosed, delta_size
from panpan.hub.feed import Feed, Reader
from panpan.hub.hub import Hub
from panpan.hub.open_sessions import OpenSessions
from panpan.hub.operations.table import Caller
from panpan.hub.questions import Questions
from panpan.types.content import TextBlock
from panpan.types.events import BlockFinished, BlockStarted, ReplyStarted, RoundEnded, TextDelta
from panpan.types.messages import Usage
from tests.capabilities.mcp.place import Place, Use
from tests.e2e.conftest import KEY
from tests.faces.mcp_server.processes import a_day, running, until
from tests.faces.server.served import Events, client_of, server_process
from tests.model_server import Hold, ModelServer, say, serving

EPOCH = "epoch"


class Client:
    """Reads a stream of events, and comes back where it was after its connection broke."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.names: list[str] = []
        self.text = ""
        self.unread = b""

    @property
    def after(self) -> int:
        return self.ids[-1] if self.ids else 0

    def take(self, piece: bytes) -> None:
        """Take bytes, which may end anywhere in an event."""
        *events, self.unread = (self.unread + piece).split(b"\r\n\r\n")
        for event in events:
            fields = dict(line.split(": ", 1) for line in event.decode().split("\r\n"))
            epoch, _, number = fields["id"].partition(":")
            assert epoch == EPOCH
            self.ids.append(int(number))
            self.names.append(fields["event"])

    def breaks(self) -> None:
        self.unread = b""


def hub_with(feed: Feed) -> Hub:
    """Return what a stream needs of a hub."""
    return cast(
        "Hub",
        SimpleNamespace(feed=feed, epoch=EPOCH, questions=Questions(feed), read=lambda after=None: Reader(feed, after)),
    )


def events_of(number: int) -> Sequence[HubEvent]:
    """Return events, of which some are deltas."""
    return [
        ReplyStarted(f"msg_{number}", "m"),
        BlockStarted(0, "text"),
        TextDelta(0, "words "),
        TextDelta(0, "of it"),
        BlockFinished(0, TextBlock(text="words of it")),
        RoundEnded(number, Usage()),
        TurnClosed(),
    ]


@given(
    replies=st.integers(0, 12),
    pace=st.lists(st.tuples(st.integers(1, 9), st.booleans(), st.integers(0, 400)), max_size=20),
    room=st.sampled_from([400, 2_000, 1_000_000]),
)
def test_client_catches_up_without_a_gap_or_a_double(
    replies: int, pace: list[tuple[int, bool, int]], room: int
) -> None:
    events = [event for number in range(replies) for event in events_of(number)]
    feed = Feed(max_delta_bytes=room)
    hub, client = hub_with(feed), Client()
    lines = EventLines(EPOCH)
    left = iter(events)

    async def read(cut: int | None) -> None:
        """Read what is there over a new connection; it breaks after so many bytes of the last piece."""
        stream = event_stream(hub, lines, Caller("c"), epoch=EPOCH, after=client.after)
        async with aclosing(cast("AsyncGenerator[bytes, None]", stream.body_iterator)) as pieces:
            with anyio.move_on_after(0 if client.after >= feed.last else None):
                async for piece in pieces:
                    client.take(piece if cut is None else piece[:cut])
                    break
        client.breaks()

    async def story() -> None:
        for publish, reads, cut in pace:
            for event in islice(left, publish):
                feed.publish(event)
            if reads:
                await read(cut)
        for event in left:
            feed.publish(event)
        while client.after < feed.last:
            await read(None)

    anyio.run(story)

    whole = [number for number, event in enumerate(events, 1) if not delta_size(event)]
    seen = [
        number for number, name in zip(client.ids, client.names, strict=True) if name not in ("resync", "text_delta")
    ]
    deltas = [number for number, name in zip(client.ids, client.names, strict=True) if name == "text_delta"]
    assert seen == whole
    assert len(set(deltas)) == len(deltas)
    assert client.ids == sorted(client.ids)
    if room == 1_000_000:
        assert client.ids == list(range(1, len(events) + 1))


async def test_client_that_missed_too_much_is_told_that_alone() -> None:
    feed = Feed(max_event_bytes=4_000)
    hub = hub_with(feed)
    for number in range(200):
        feed.publish(RoundEnded(number, Usage()))

    stream = event_stream(hub, EventLines(EPOCH), Caller("c"), epoch=EPOCH, after=0)
    async with aclosing(cast("AsyncGenerator[bytes, None]", stream.body_iterator)) as pieces:
        first = await anext(pieces)

    assert first == b'id: epoch:200\r\nevent: resync\r\ndata: {"blocks":[],"is_whole":false}\r\n\r\n'


async def test_session_that_was_opened_again_meanwhile_is_followed() -> None:
    first, second = hub_with(Feed()), hub_with(Feed())
    sessions = SimpleNamespace(hubs={"s1": first}, next_change=anyio.Event())
    stream = stream_of_all(cast("OpenSessions", sessions))
    assert stream.data_sender_callable is not None
    told = list[str]()
    pieces = cast("AsyncGenerator[bytes, None]", stream.body_iterator)
    async with anyio.create_task_group() as tasks, aclosing(pieces):
        tasks.start_soon(stream.data_sender_callable)
        await anyio.wait_all_tasks_blocked()  # it waits for the client to take the first event
        first.feed.publish(TurnClosed())
        first.feed.close()
        sessions.hubs = {"s1": second}
        sessions.next_change.set()
        sessions.next_change = anyio.Event()
        told += [(await anext(pieces)).decode().split("\r\n")[0] for _ in range(4)]
        await anyio.wait_all_tasks_blocked()
        second.feed.publish(TurnClosed())
        told.append((await anext(pieces)).decode().split("\r\n")[0])
        tasks.cancel_scope.cancel()

    of_first = ["session_opened", "turn_closed", "session_closed"]
    assert told == [f"event: {name}" for name in (*of_first, "session_opened", "turn_closed")]


async def read_to_the_end(it: httpx2.AsyncClient, session: str, **query: Any) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the events of a session up to the end of a turn."""
    async with it.stream("GET", f"/v1/sessions/{session}/events", params=query) as response:
        return await Events(response).until("turn_closed")


def model_env(server: ModelServer) -> dict[str, str]:
    """Return the environment of a panpan that asks a model server."""
    return {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": server.url, "PANPAN_SESSIONS_TITLE": "first-words"}


def prompt(text: str) -> dict[str, Any]:
    return {"parts": [{"type": "text", "text": text}]}


async def test_session_goes_on_after_a_kill_in_a_reply(tmp_path: Path) -> None:
    place, held = Place(tmp_path), Event()
    script = [say("half of a reply, and the rest", faults=(Hold("text", held),)), say("the other half")]
    with serving(script) as model, server_process(place, **model_env(model)) as (process, url):
        async with client_of(url) as http:
            session = (await http.post("/v1/sessions", json={})).json()["session"]["id"]
            await http.post(f"/v1/sessions/{session}/prompts", json=prompt("first"))
            async with http.stream("GET", f"/v1/sessions/{session}/events", params={"after": 0}) as response:
                before = await Events(response).until("text_delta")
        process.kill()
        process.wait()
        held.set()
        epoch, _, number = before[-1][0].partition(":")
        port = url.rpartition(":")[2]
        with server_process(place, "--port", port, **model_env(model)) as (_, same_url):
            async with client_of(same_url) as http:
                path = f"/v1/sessions/{session}/events"
                async with http.stream("GET", path, params={"epoch": epoch, "after": number}) as response:
                    events = Events(response)
                    resync = await events.next()
                    state = (await http.get(f"/v1/sessions/{session}")).json()
                    await http.post(f"/v1/sessions/{session}/prompts", json=prompt("more"))
                    after = await events.until("turn_closed")
                whole = await read_to_the_end(http, session, epoch=state["epoch"], after=state["number"])
                messages = (await http.get(f"/v1/sessions/{session}/messages")).json()

    assert same_url == url
    assert resync[1:] == ("resync", {"blocks": [], "is_whole": False})
    assert [one["content"][0]["text"] for one in state["messages"] if one["type"] == "user"] == ["first"]
    assert "".join(data["text"] for _, name, data in after if name == "text_delta") == "the other half"
    assert [one for one in whole if one[1] != "resync"] == [one for one in after if one in whole]
    assert [one["content"][0]["text"] for one in messages if one["type"] == "user"] == ["first", "more"]


async def test_session_goes_on_after_a_kill_in_a_command(tmp_path: Path) -> None:
    place, seconds = Place(tmp_path), a_day()
    use: Use = ("Bash", {"command": f"sleep {seconds}", "description": "Wait"})
    options = ("--allowedTools", "Bash(sleep *)")
    with server_process(place, uses=[use], options=options) as (process, url):
        async with client_of(url) as http:
            session = (await http.post("/v1/sessions", json={})).json()["session"]["id"]
            await http.post(f"/v1/sessions/{session}/prompts", json=prompt("first"))
            await until(lambda: bool(running(f"sleep {seconds}")))
        process.kill()
        process.wait()
    await until(lambda: not running(f"sleep {seconds}"))
    with server_process(place, uses=["done"], options=options) as (_, url):
        async with client_of(url) as http:
            path = f"/v1/sessions/{session}"
            state = (await http.get(path)).json()
            await http.post(f"{path}/prompts", json=prompt("more"))
            async with http.stream("GET", f"{path}/events", params={"after": 0}) as response:
                asked = (await Events(response).until("question_asked"))[-1][2]
            (question,) = asked["question"]["question"]
            answer = {"kind": "user", "answer": [{"chosen": [question["choices"][0]["label"]]}]}
            await http.post(f"{path}/questions/{asked['id']}", json={"answer": answer})
            status = (await http.get(f"{path}/wait")).json()
            messages = (await http.get(f"{path}/messages")).json()

    assert state["status"]["activity"] == "idle"
    assert f"sleep {seconds}" in str(question)
    assert status["activity"] == "idle"
    assert [one["type"] for one in messages if one["type"] in ("user", "tool_result")] == [
        "user",
        "tool_result",
        "user",
    ]
    assert messages[-1]["type"] == "assistant"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signal_ends_streams_commands_and_server_at_once(tmp_path: Path, number: signal.Signals) -> None:
    place, seconds = Place(tmp_path), a_day()
    use: Use = ("Bash", {"command": f"sleep {seconds}", "description": "Wait"})
    with server_process(place, uses=[use], options=("--allowedTools", "Bash(sleep *)")) as (process, url):
        async with client_of(url) as http:
            session = (await http.post("/v1/sessions", json={})).json()["session"]["id"]
            await http.post(f"/v1/sessions/{session}/prompts", json=prompt("first"))
            await until(lambda: bool(running(f"sleep {seconds}")))
            async with (
                http.stream("GET", f"/v1/sessions/{session}/events", params={"after": 0}) as own,
                http.stream("GET", "/v1/events") as every,
            ):
                assert (own.status_code, every.status_code) == (200, 200)
                process.send_signal(number)
                await anyio.to_thread.run_sync(process.wait, 60)
        assert process.stderr is not None
        errors = process.stderr.read()

    assert (process.returncode, errors) == (0, "")
    assert not running(f"sleep {seconds}")
