"""Other processes of the user join a session over its socket; whatever they send, the session stays whole."""

import json
import os
import resource
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream

from panpan.errors import ConfigError, PanpanError
from panpan.hub.client_lines import MAX_LARGE_LINES, SMALL_LINE_BYTES, ClientLines, LineMemory
from panpan.hub.connection import Connection
from panpan.hub.events import (
    ClientChanged,
    PromptsReturned,
    QuestionAsked,
    QuestionClosed,
    Resync,
    TurnBegan,
    TurnClosed,
)
from panpan.hub.hub import Hub
from panpan.hub.operations.table import Caller
from panpan.hub.remote import RemoteSession, SessionLeftError, is_shared, joined
from panpan.hub.sharing import MAX_CLIENTS, shared, socket_of
from panpan.system.processes.private_socket import connect_privately
from panpan.types.events import BlockFinished, TextDelta, TurnEnded
from panpan.types.messages import AssistantMessage, UserMessage
from panpan.types.permission import PermissionAnswer, PermissionQuestion
from tests.faces.terminal.work_fixtures import HeldLLM, until
from tests.fakes.hub import hub_of
from tests.fakes.scripted_llm import say
from tests.fakes.session import session_in

BASH = PermissionQuestion("call_1", "Bash", {"command": "make"}, "make", "it runs a command")


@dataclass
class Host:
    hub: Hub
    llm: HeldLLM
    folder: Path
    warnings: list[str] = field(default_factory=list)

    async def finish(self, requests: int = 1) -> None:
        self.llm.let_go(requests)
        with anyio.fail_after(20):
            await self.hub.idle()


@asynccontextmanager
async def host(tmp_path: Path, *replies: Any, **limits: int) -> AsyncGenerator[Host, None]:
    llm, folder, warnings = HeldLLM(*replies), tmp_path / "home" / "run", list[str]()
    (tmp_path / "work").mkdir()
    async with (
        hub_of(session_in(tmp_path / "work", llm, warn=warnings.append)) as hub,
        shared(hub, folder, warnings.append, **limits),
    ):
        yield Host(hub, llm, folder, warnings)


async def events_until(remote: RemoteSession, last: type) -> list[Any]:
    events: list[Any] = []
    with anyio.fail_after(20):
        while not any(isinstance(event, last) for event in events):
            events += [one.event for one in await remote.take()]
    return events


async def test_client_sends_a_prompt_and_reads_the_turn(tmp_path: Path) -> None:
    async with host(tmp_path, say("hello")) as it, joined(it.folder, "s1") as remote:
        session = await remote.join("window", answers=True)
        await remote.send("go", "queue")
        await it.finish()
        events = await events_until(remote, TurnClosed)

    assert (session.info.id, session.status.activity, session.messages) == ("s1", "idle", [])
    began = next(event for event in events if isinstance(event, TurnBegan))
    assert began.prompt is not None
    assert (began.prompt.text, began.client) == ("go", session.client)
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["hello"]
    assert any(isinstance(event, TurnEnded) for event in events)
    assert it.llm.asked == [["go"]]


async def test_client_that_joins_in_a_turn_sees_it_from_its_beginning(tmp_path: Path) -> None:
    async with host(tmp_path) as it:
        await it.hub.submit("first")
        await it.finish()
        await it.hub.submit("second")
        await until(lambda: len(it.llm.requests) == 2)
        async with joined(it.folder, "s1") as remote:
            session = await remote.join("window", answers=False)
            await it.finish()
            events = await events_until(remote, TurnClosed)

    assert [type(message) for message in session.messages] == [UserMessage, AssistantMessage]
    assert [message.text for message in session.messages if isinstance(message, AssistantMessage)] == ["answer 0"]
    assert isinstance(events[0], TurnBegan)
    assert [event.text for event in events if isinstance(event, AssistantMessage)] == ["answer 1"]


async def test_others_are_told_who_joins_and_leaves(tmp_path: Path) -> None:
    async with host(tmp_path) as it:
        reader = it.hub.read()
        async with joined(it.folder, "s1") as remote:
            session = await remote.join("window", answers=True)
        await until(lambda: it.hub.feed.last > reader.after + 1)
        told = [one.event for one in reader.take_now() if isinstance(one.event, ClientChanged)]

    assert told == [ClientChanged(session.client, is_here=True), ClientChanged(session.client, is_here=False)]


async def test_first_of_two_answers_counts(tmp_path: Path) -> None:
    answers = list[PermissionAnswer]()
    async with host(tmp_path) as it, joined(it.folder, "s1") as one, joined(it.folder, "s1") as other:
        first = await one.join("window", answers=True)
        await other.join("window", answers=True)
        ask = it.hub.questions.askers.permission
        assert ask is not None

        async def put() -> None:
            answers.append(await ask(BASH))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(put)
            asked = next(
                event for event in await events_until(other, QuestionAsked) if isinstance(event, QuestionAsked)
            )
            assert asked.question == BASH
            assert await one.answer(asked.id, PermissionAnswer(is_allowed=True, feedback="do it"))
            assert not await other.answer(asked.id, PermissionAnswer(is_allowed=False))
        closed = next(event for event in await events_until(other, QuestionClosed) if isinstance(event, QuestionClosed))

    assert answers == [PermissionAnswer(is_allowed=True, feedback="do it")]
    assert closed.client == first.client


async def test_client_that_dies_in_a_question_leaves_a_refusal(tmp_path: Path) -> None:
    answers = list[PermissionAnswer]()
    async with host(tmp_path) as it, anyio.create_task_group() as tasks:
        ask = it.hub.questions.askers.permission
        assert ask is not None

        async def put() -> None:
            answers.append(await ask(BASH))

        async with joined(it.folder, "s1") as remote:
            await remote.join("window", answers=True)
            tasks.start_soon(put)
            await events_until(remote, QuestionAsked)
            assert answers == []
        await until(lambda: answers)

    assert answers == [PermissionAnswer(is_allowed=False)]


async def test_client_steers_takes_back_interrupts_and_changes(tmp_path: Path) -> None:
    async with host(tmp_path) as it, joined(it.folder, "s1") as remote:
        await remote.join("window", answers=True)
        await remote.send("go", "queue")
        await until(lambda: it.llm.requests)
        await remote.send("later", "queue")
        assert await remote.take_back() == "later"
        assert await remote.take_back() is None
        assert (await remote.change(mode="plan", title="a title")).mode == "plan"
        with pytest.raises(PanpanError, match="while a turn runs"):
            await remote.change(model="other")
        assert await remote.interrupt()
        await it.finish()
        assert not await remote.interrupt()

    assert it.hub.session.title == "a title"
    assert it.llm.asked == [["go"]]


async def test_host_that_leaves_ends_the_client(tmp_path: Path) -> None:
    async with anyio.create_task_group() as tasks:
        leave, left = anyio.Event(), anyio.Event()

        async def serve() -> None:
            async with host(tmp_path):
                ready.set()
                await leave.wait()
            left.set()

        ready = anyio.Event()
        tasks.start_soon(serve)
        await ready.wait()
        async with joined(tmp_path / "home" / "run", "s1") as remote:
            await remote.join("window", answers=True)
            leave.set()
            await left.wait()
            with anyio.fail_after(20):
                while await remote.take():
                    pass
            with pytest.raises(SessionLeftError, match="not open any more"):
                await remote.send("go", "queue")

    assert not socket_of(tmp_path / "home" / "run", "s1").exists()


async def test_session_is_shared_while_it_is_open(tmp_path: Path) -> None:
    async with host(tmp_path) as it:
        assert is_shared(it.folder, "s1")
        assert not is_shared(it.folder, "s2")
    assert not is_shared(it.folder, "s1")


async def test_socket_is_private_and_its_folder_too(tmp_path: Path) -> None:
    async with host(tmp_path) as it:
        path = socket_of(it.folder, "s1")
        modes = [oct(place.stat().st_mode & 0o777) for place in (path, it.folder)]
        it.folder.chmod(0o755)
        with pytest.raises(ConfigError, match="may be another user's"):
            connect_privately(path)

    assert modes == ["0o600", "0o700"]


async def test_long_home_is_no_obstacle(tmp_path: Path) -> None:
    deep = tmp_path / ("long-" * 30)
    deep.mkdir()
    async with host(deep) as it, joined(it.folder, "s1") as remote:
        assert (await remote.join("window", answers=False)).info.id == "s1"


async def test_unshared_session_says_how_to_open_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no panpan shares the session s9; open it with panpan -r s9"):
        async with joined(tmp_path, "s9"):
            pass


class Raw:
    """A client that sends what it likes."""

    def __init__(self, path: Path) -> None:
        self._socket = connect_privately(path)
        self._socket.setblocking(True)
        self._socket.settimeout(20)
        self._file = self._socket.makefile("rb")

    def send(self, *lines: bytes) -> None:
        self._socket.sendall(b"".join(line + b"\n" for line in lines))

    def line(self) -> dict[str, Any]:
        line = self._file.readline()
        assert line, "the connection was closed"
        value: dict[str, Any] = json.loads(line)
        return value

    def is_closed(self) -> bool:
        try:
            return self._file.readline() == b""
        except ConnectionResetError:  # it did not read all
            return True

    def close(self) -> None:
        self._file.close()
        self._socket.close()


def request(method: str, number: int = 1, **params: object) -> bytes:
    return json.dumps({"type": "request", "id": number, "method": method, "params": params}).encode()


def picture(media_type: str, data: str) -> dict[str, Any]:
    return {"type": "data", "media_type": media_type, "data": data}


def words(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}]


INITIALIZE = request("session.initialize", client="raw")
WRONG = {
    b"nonsense": "a line is not a JSON object",
    b"[1]": "a line is not a JSON object",
    b"[" * 100_000: "a line is not a JSON object",
    b"\xff\xfe": "a line is not a JSON object",
    b'{"type":"event"}': "the type 'event' is unknown; send a request",
    b'{"type":"response","id":7,"result":{}}': "the type 'response' is unknown; send a request",
    b"{}": "the type None is unknown; send a request",
    b'{"type":"request","id":2,"method":["session.send"]}': "there is no method ['session.send']",
    request("session.explode"): "there is no method 'session.explode'",
    request("session.send"): "parts: field required",
    request("session.send", parts=words("")): "the prompt is empty",
    request("session.send", parts=[picture("image/png", "!")]): "the image cannot be used; send one of these kinds",
    request("session.send", parts=[picture("image/\x1b", "iVBORw0K")]): "the image cannot be used",
    request("session.send", parts=[picture("image/png", "R0lGODdh")]): "the image cannot be used",
    request("session.send", parts=words("go"), delivery="now"): "delivery: input should be 'steer' or 'queue'",
    request("session.send", parts=words("go"), extra=1): "extra: extra inputs are not permitted",
    request("session.answer", id=1, answer={"kind": "yes"}): 'an answer is {"kind": KIND, "answer": …} with',
    request("session.answer", id=1, answer={"kind": []}): "an answer is",
    request("session.answer", id=1, answer={"kind": "permission", "is_allowed": True}): "an answer is",
    request("session.answer", id=1, answer={"kind": "permission", "answer": {}}): "is_allowed: field required",
    request("session.change", mode="sudo"): "mode: input should be",
    b'{"type":"request","id":2,"method":"session.send","params":[]}': "field required",
    INITIALIZE: "session.initialize was sent before",
}


@pytest.mark.parametrize("line", WRONG)
async def test_wrong_line_is_told_and_the_connection_goes_on(tmp_path: Path, line: bytes) -> None:
    async with host(tmp_path) as it:

        def talk() -> tuple[dict[str, Any], dict[str, Any]]:
            raw = Raw(socket_of(it.folder, "s1"))
            raw.send(INITIALIZE, line, b"", request("status.get", 9))
            assert "result" in raw.line()
            told, after = sorted([raw.line(), raw.line()], key=lambda line: line["id"] == 9)
            raw.close()
            return told, after

        told, after = await anyio.to_thread.run_sync(talk)

    assert WRONG[line] in told["error"]
    assert (after["id"], after["result"]["activity"]) == (9, "idle")
    assert it.warnings == []


async def test_requests_before_the_first_are_refused(tmp_path: Path) -> None:
    async with host(tmp_path) as it:

        def talk() -> str:
            raw = Raw(socket_of(it.folder, "s1"))
            raw.send(request("session.send", parts=words("go")))
            error: str = raw.line()["error"]
            raw.close()
            return error

        assert await anyio.to_thread.run_sync(talk) == "send session.initialize first"
    assert it.llm.requests == []


async def test_clients_that_die_while_events_come_are_forgotten(tmp_path: Path) -> None:
    async with host(tmp_path, say("word " * 400_000), say("again")) as it:
        clients = [connect_privately(socket_of(it.folder, "s1")) for _ in range(10)]
        for client in clients:
            client.setblocking(True)
            client.sendall(INITIALIZE + b"\n")
        await anyio.to_thread.run_sync(lambda: [client.recv(1_000) for client in clients])
        await it.hub.submit("go")
        await it.finish()
        for client in clients:  # each is sent what does not fit into its socket
            client.close()
        await it.hub.submit("go on")
        await it.finish()

    assert it.warnings == []


async def test_endless_line_ends_its_connection_alone(tmp_path: Path) -> None:
    async with host(tmp_path, max_line_bytes=1_000_000) as it, joined(it.folder, "s1") as remote:
        await remote.join("window", answers=False)

        def talk() -> tuple[str, bool]:
            raw = Raw(socket_of(it.folder, "s1"))
            with suppress(OSError):  # it closes the connection in between
                raw._socket.sendall(b"x" * 3_000_000)
            try:
                error: str = raw.line()["error"]
                return error, raw.is_closed()
            finally:
                raw.close()

        error, is_closed = await anyio.to_thread.run_sync(talk)
        await remote.send("go", "queue")
        await it.finish()

    assert "longer than 1,000,000 bytes; send it in parts" in error
    assert is_closed
    assert it.llm.asked == [["go"]]


async def test_large_lines_beyond_the_most_are_refused_and_told(tmp_path: Path) -> None:
    begun = b"x" * 2 * SMALL_LINE_BYTES
    async with host(tmp_path) as it:

        def begin() -> list[Raw]:
            clients = [Raw(socket_of(it.folder, "s1")) for _ in range(MAX_LARGE_LINES)]
            for one in clients:
                one._socket.sendall(begun)  # comes to its end when most of it is read
            return clients

        def refused() -> tuple[str, bool]:
            raw = Raw(socket_of(it.folder, "s1"))
            with suppress(OSError):  # it closes the connection in between
                raw._socket.sendall(begun)
            try:
                error: str = raw.line()["error"]
                return error, raw.is_closed()
            finally:
                raw.close()

        clients = await anyio.to_thread.run_sync(begin)
        error, is_closed = await anyio.to_thread.run_sync(refused)
        for one in clients:
            one.close()

    assert (error, is_closed) == ("4 other clients are sending large prompts; send this one again later", True)


async def test_client_that_never_reads_delays_nobody(tmp_path: Path) -> None:
    text = "word " * 100_000
    async with host(tmp_path, say(text), say("again")) as it, joined(it.folder, "s1") as remote:
        stuck = connect_privately(socket_of(it.folder, "s1"))
        stuck.setblocking(True)
        stuck.sendall(INITIALIZE + b"\n")
        await remote.join("window", answers=False)
        await remote.send("go", "queue")
        await it.finish()
        await remote.send("more", "queue")
        events = await events_until(remote, TurnClosed)
        await it.finish()
        more = await events_until(remote, TurnClosed)
        stuck.close()

    said = next(event for event in events if isinstance(event, BlockFinished))
    assert said.block.text == text  # type: ignore[union-attr]
    assert [event.text for event in more if isinstance(event, AssistantMessage)] == ["again"]
    assert not any(isinstance(event, Resync) for event in events)


async def test_reader_goes_on_after_a_number_of_the_same_epoch(tmp_path: Path) -> None:
    async with host(tmp_path) as it:
        await it.hub.submit("first")
        await it.finish()

        def talk(epoch: str, after: int) -> tuple[dict[str, Any], int]:
            raw = Raw(socket_of(it.folder, "s1"))
            raw.send(request("session.initialize", client="raw", epoch=epoch, after=after))
            told: dict[str, Any] = raw.line()["result"]
            number = raw.line()["id"] if told["number"] < it.hub.feed.last else 0
            raw.close()
            return told, number

        again, number = await anyio.to_thread.run_sync(talk, it.hub.epoch, 2)
        other, _ = await anyio.to_thread.run_sync(talk, "another", 2)

    assert (again["messages"], again["number"], number) == (None, 2, 3)
    assert len(other["messages"]) == 2


async def test_other_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with host(tmp_path) as it:
        monkeypatch.setattr(os, "geteuid", lambda: 12_345)

        def talk() -> bytes:
            raw = socket.socket(socket.AF_UNIX)
            raw.settimeout(20)
            raw.connect(str(socket_of(it.folder, "s1")))
            try:
                raw.sendall(INITIALIZE + b"\n")
                return raw.recv(100)
            except (BrokenPipeError, ConnectionResetError):
                return b""
            finally:
                raw.close()

        assert await anyio.to_thread.run_sync(talk) == b""
    assert it.warnings == ["the process at the other end of the socket is another user's; nothing was sent to it"]


async def test_requests_at_the_same_time_arrive_whole(tmp_path: Path) -> None:
    texts = [f"{number} " * 20_000 for number in range(20)]
    given_up = "given up " * 50_000
    async with host(tmp_path) as it, joined(it.folder, "s1") as remote:
        await remote.join("window", answers=False)
        await remote.send("go", "queue")
        await until(lambda: it.llm.requests)
        async with anyio.create_task_group() as tasks:
            for text in texts:
                tasks.start_soon(remote.send, text, "queue")
            with anyio.move_on_after(0):  # one that is not waited for is sent whole, or not at all
                await remote.send(given_up, "queue")
        assert (await remote.change(title="still here")).title == "still here"
        queued = [message.text for message in it.hub.queued]

    assert sorted(set(queued) - {given_up}) == sorted(texts)
    assert len(queued) == len(set(queued))


async def test_clients_beyond_the_most_are_refused_and_told(tmp_path: Path) -> None:
    async with host(tmp_path) as it:
        async with AsyncExitStack() as clients:
            for _ in range(MAX_CLIENTS):
                remote = await clients.enter_async_context(joined(it.folder, "s1"))
                await remote.join("window", answers=False)
            with pytest.raises(PanpanError, match="clients have joined the session already; close one of them"):
                async with joined(it.folder, "s1") as remote:
                    await remote.join("window", answers=False)
        await it.hub.submit("go")
        await it.finish()

    assert it.llm.asked == [["go"]]


async def test_lack_of_file_descriptors_does_not_end_the_host(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with host(tmp_path) as it:
        ours = [socket.socket(socket.AF_UNIX) for _ in range(3)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(one.fileno() for one in ours) + 1, before[1]))
        try:
            for one in ours:
                one.connect(str(socket_of(it.folder, "s1")))
            await it.hub.submit("go")
            await it.finish()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
            for one in ours:
                one.close()
        async with joined(it.folder, "s1") as remote:
            await remote.join("window", answers=False)

    assert it.llm.asked == [["go"]]


async def test_turn_of_a_client_waits_while_the_model_changes(tmp_path: Path) -> None:
    changing, goes_on = anyio.Event(), anyio.Event()

    async def use_model(name: str) -> str:
        changing.set()
        await goes_on.wait()
        return name

    async with host(tmp_path) as it, joined(it.folder, "s1") as one, joined(it.folder, "s1") as other:
        await one.join("window", answers=False)
        await other.join("window", answers=False)
        it.hub.session.use_model = use_model  # type: ignore[method-assign]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(one.change, model="other"))
            await changing.wait()
            await other.send("go", "queue")
            assert it.hub.status.activity == "busy"
            assert it.llm.requests == []
            goes_on.set()
        await it.finish()

    assert it.llm.asked == [["go"]]


async def test_nonsense_of_the_host_ends_the_client_with_a_sentence() -> None:
    here, there = socket.socketpair()
    async with await SocketStream.from_socket(here) as stream, anyio.create_task_group() as tasks:
        remote = RemoteSession(stream)
        tasks.start_soon(remote.read)
        there.sendall(b'{"type":"event","id":1,"event":"of a later version","data":{}}\n')
        with pytest.raises(SessionLeftError, match="there is no such event"):
            await remote.join("window", answers=False)
        there.close()


async def test_closed_session_returns_the_prompts_that_wait(tmp_path: Path) -> None:
    leave = anyio.Event()

    async def serve(tell: Any) -> None:
        async with host(tmp_path) as it:
            tell.started(it)
            await leave.wait()

    async with anyio.create_task_group() as tasks:
        it = await tasks.start(lambda task_status: serve(task_status))
        async with joined(it.folder, "s1") as remote:
            session = await remote.join("window", answers=False)
            await remote.send("go", "queue")
            await until(lambda: it.llm.requests)
            await remote.send("steered", "steer")
            await remote.send("queued", "queue")
            leave.set()
            [returned] = [
                event for event in await events_until(remote, PromptsReturned) if isinstance(event, PromptsReturned)
            ]

    assert ([one.text for one in returned.prompts], returned.client) == (["steered", "queued"], session.client)


async def test_prompts_of_a_client_that_died_run(tmp_path: Path) -> None:
    async with host(tmp_path) as it:
        async with joined(it.folder, "s1") as remote:
            await remote.join("window", answers=False)
            await remote.send("go", "queue")
            await until(lambda: it.llm.requests)
            await remote.send("more", "queue")
        await until(lambda: not any(one.is_returned for one in it.hub._waiting._queue))
        it.hub.interrupt()
        await it.finish()

    assert [asked[-1] for asked in it.llm.asked] == ["go", "more"]


async def test_open_question_is_put_to_a_client_that_joins(tmp_path: Path) -> None:
    answers = list[PermissionAnswer]()
    async with host(tmp_path) as it, anyio.create_task_group() as tasks:
        ask = it.hub.questions.askers.permission
        assert ask is not None

        async def put() -> None:
            answers.append(await ask(BASH))

        with it.hub.questions.answered_by("terminal"):
            tasks.start_soon(put)
            await until(lambda: it.hub.questions.open)
            async with joined(it.folder, "s1") as remote:
                [asked] = (await remote.join("window", answers=True)).questions
                assert asked.question == BASH
                assert await remote.answer(asked.id, PermissionAnswer(is_allowed=True))

    assert answers == [PermissionAnswer(is_allowed=True)]


async def test_long_past_is_cut_at_its_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("panpan.hub.operations.session.MAX_PAST_BYTES", 1_000)
    async with host(tmp_path) as it:
        for text in ("x" * 900, "second"):
            await it.hub.submit(text)
            await it.finish()
        async with joined(it.folder, "s1") as remote:
            messages = (await remote.join("window", answers=False)).messages

    assert [one.text for one in messages if isinstance(one, UserMessage)] == ["second"]


class Dying:
    """A connection that breaks for reading and for writing at the same time."""

    def __init__(self) -> None:
        self.may_break = anyio.Event()
        self._lines = [INITIALIZE + b"\n"]
        self.sent = 0

    async def receive(self) -> bytes:
        if self._lines:
            return self._lines.pop()
        await self.may_break.wait()
        raise anyio.BrokenResourceError

    async def send(self, data: bytes) -> None:
        self.sent += 1
        if self.sent > 1:  # an event, after the response
            await self.may_break.wait()
            raise anyio.BrokenResourceError


async def test_client_that_dies_reading_and_writing_is_no_bug(tmp_path: Path) -> None:
    async with host(tmp_path) as it, anyio.create_task_group() as tasks:
        stream: Any = Dying()
        tasks.start_soon(Connection(stream, ClientLines(LineMemory()), Caller("1"), it.hub).serve)
        await anyio.wait_all_tasks_blocked()
        it.hub.session.rename("a title")
        await until(lambda: stream.sent > 1)
        await anyio.wait_all_tasks_blocked()
        stream.may_break.set()


class SlowToPrepare:
    """Prepares prompts when it is let go."""

    def __init__(self) -> None:
        self.has_begun = anyio.Event()
        self.may_end = anyio.Event()

    async def prepare_message(self, prompt: str | UserMessage) -> UserMessage:
        self.has_begun.set()
        await self.may_end.wait()
        return UserMessage.of(prompt) if isinstance(prompt, str) else prompt


async def test_interrupt_waits_for_no_prompt_and_gives_it_back(tmp_path: Path) -> None:
    slow, refused = SlowToPrepare(), list[str]()
    async with host(tmp_path) as it, joined(it.folder, "s1") as remote:
        await remote.join("window", answers=False)
        await it.hub.submit("go")
        await until(lambda: it.llm.requests)
        it.hub.session.prepare_message = slow.prepare_message  # type: ignore[method-assign]

        async def send(text: str) -> None:
            try:
                await remote.send(text, "steer")
            except PanpanError as error:
                refused.append(f"{text}: {error}")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send, "one")
            await slow.has_begun.wait()
            tasks.start_soon(send, "two")
            await anyio.wait_all_tasks_blocked()
            with anyio.fail_after(2):
                assert await remote.interrupt()
        await it.hub.idle()

    assert sorted(refused) == [
        "one: the prompt was interrupted before it was sent",
        "two: the prompt was interrupted before it was sent",
    ]
    assert it.llm.asked == [["go"]]


async def test_prompt_of_a_client_that_dies_while_it_is_prepared_runs(tmp_path: Path) -> None:
    slow = SlowToPrepare()
    async with host(tmp_path) as it:
        it.hub.session.prepare_message = slow.prepare_message  # type: ignore[method-assign]
        async with joined(it.folder, "s1") as remote, anyio.create_task_group() as tasks:
            await remote.join("window", answers=True)
            tasks.start_soon(remote.send, "go", "queue")
            await slow.has_begun.wait()
            tasks.cancel_scope.cancel()
        await until(lambda: not it.hub.questions._clients)
        slow.may_end.set()
        await until(lambda: it.llm.requests)
        await it.finish()

    assert it.llm.asked == [["go"]]


async def test_picture_reaches_the_model(tmp_path: Path) -> None:
    async with host(tmp_path) as it:

        def talk() -> None:
            raw = Raw(socket_of(it.folder, "s1"))
            parts = [*words("look"), picture("image/png", "iVBORw0KGgo=")]
            raw.send(INITIALIZE, request("session.send", parts=parts))
            raw.line()
            raw.line()
            raw.close()

        await anyio.to_thread.run_sync(talk)
        await until(lambda: it.llm.requests)
        await it.finish()

    [said] = [message for message in it.llm.requests[0] if isinstance(message, UserMessage)]
    assert [block.type for block in said.content] == ["text", "image"]
