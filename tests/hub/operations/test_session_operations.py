"""Operations on a session: prompts of all kinds, the conversation, questions, and what does not fit."""

import base64
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from panpan.core.conversation import Conversation
from panpan.core.hooks import Hook
from panpan.errors import ConfigError
from panpan.faces.server.routes import SESSION_TABLE
from panpan.hub.hub import Hub
from panpan.hub.operations.session import MAX_PAST_BYTES, newest_messages
from panpan.hub.operations.table import BusyError, Caller, ForbiddenError, NotFoundError
from panpan.hub.wire import WireError
from panpan.session.capability import FileHistory
from panpan.types.content import DocumentBlock, ImageBlock, TextBlock
from panpan.types.events import FileRestore
from panpan.types.messages import AssistantMessage, UserMessage, new_id
from panpan.types.permission import PermissionQuestion
from tests.faces.terminal.work_fixtures import HeldLLM, until
from tests.fakes.hub import Commands, hub_of
from tests.fakes.scripted_llm import say
from tests.fakes.session import session_in
from tests.fakes.settings import settings_with

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n and more").decode()
PDF = base64.b64encode(b"%PDF-1.7 and more").decode()
BASH = PermissionQuestion("call_1", "Bash", {"command": "make"}, "make", "it runs a command")


@dataclass
class Running:
    hub: Hub
    llm: HeldLLM

    async def call(self, name: str, client: str = "page", **params: Any) -> Any:
        return await SESSION_TABLE.call(name, self.hub, Caller(client), params, "s1")

    async def send(self, *parts: Any, **params: Any) -> str:
        sent = await self.call(
            "session.send", parts=[text(one) if isinstance(one, str) else one for one in parts], **params
        )
        return str(sent["message"])

    async def finish(self, requests: int = 1) -> None:
        self.llm.let_go(requests)
        with anyio.fail_after(20):
            await self.hub.idle()

    @property
    def prompts(self) -> Sequence[UserMessage]:
        return [one for one in self.hub.session.conversation.messages if isinstance(one, UserMessage)]


@asynccontextmanager
async def running(tmp_path: Path, *replies: Any, **parts: Any) -> AsyncGenerator[Running, None]:
    work, llm = tmp_path / "work", HeldLLM(*replies)
    work.mkdir()
    async with hub_of(session_in(work, llm, **parts)) as hub:
        yield Running(hub, llm)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


async def test_prompt_has_the_words_of_all_parts_before_the_data(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        (tmp_path / "work" / "a b.py").write_text("one\ntwo\nthree\n")
        await it.send(
            {"type": "data", "media_type": "image/png", "data": PNG},
            "look at",
            {"type": "file", "path": "a b.py", "first": 2, "last": 3},
            {"type": "agent", "name": "explore"},
            {"type": "data", "media_type": "application/pdf", "data": PDF},
            {"type": "subtask", "agent": "explore", "prompt": "find it"},
        )
        await it.finish()
        (prompt,) = it.prompts

    kinds = [type(block) for block in prompt.content]
    assert prompt.typed == 'look at @"a b.py":2-3 @explore Let the subagent @explore do this:\nfind it'
    assert kinds[:3] == [TextBlock, ImageBlock, DocumentBlock]
    assert "two" in str(it.llm.requests[0])


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (text(" \n"), "the prompt is empty"),
        (text("\ud800"), "valid string"),
        ({"type": "text"}, "field required"),
        ({"type": "text", "text": 1}, "valid string"),
        ({"type": "text", "text": "a", "further": 1}, "extra inputs"),
        ({"type": "nonsense", "text": "a"}, "does not match any of the expected tags"),
        ({"text": "a"}, "unable to extract tag"),
        ({"type": "data", "media_type": "image/svg+xml", "data": PNG}, "send one of these kinds"),
        ({"type": "data", "media_type": "image/png", "data": PDF}, "send one of these kinds"),
        ({"type": "data", "media_type": "image/png", "data": "!"}, "send one of these kinds"),
        ({"type": "file", "path": ""}, "at least 1 character"),
        ({"type": "file", "path": 'a"b'}, "cannot be sent as a part"),
        ({"type": "file", "path": "a\0b"}, "cannot be sent as a part"),
        ({"type": "file", "path": "a\nb"}, "cannot be sent as a part"),
        ({"type": "file", "path": "a", "first": 0}, "greater than or equal to 1"),
        ({"type": "file", "path": "a", "first": float("nan")}, "finite number"),
        ({"type": "subtask", "agent": "a", "prompt": ""}, "at least 1 character"),
        ([1], "unable to extract tag|valid dictionary"),
        (None, "unable to extract tag|valid dictionary"),
    ],
)
async def test_part_that_does_not_fit_is_refused(tmp_path: Path, part: Any, said: str) -> None:
    async with running(tmp_path) as it:
        with pytest.raises(WireError, match=said):
            await it.call("session.send", parts=[part])

        assert not it.hub.is_busy


async def test_words_of_agents_and_files_start_no_command(tmp_path: Path) -> None:
    async with running(tmp_path, commands=Commands()) as it:
        for name in ("x\n/hello", "a b", "\x1b[2J"):
            with pytest.raises(WireError, match="name"):
                await it.send({"type": "agent", "name": name})


async def test_prompt_that_is_sent_twice_runs_once(tmp_path: Path) -> None:
    message = new_id()
    async with running(tmp_path) as it:
        first = await it.send("go", message=message)
        again = await it.send("go", message=message)
        queued = new_id()
        await it.send("more", message=queued)
        await it.send("more", message=queued)
        await it.finish(2)
        after = await it.send("go", message=message)

        assert not it.hub.is_busy
    assert {first, again, after} == {message}
    assert [one.uuid for one in it.prompts] == [message, queued]


async def test_prompt_that_is_sent_twice_at_once_runs_once(tmp_path: Path) -> None:
    message = new_id()
    async with running(tmp_path) as it:
        (tmp_path / "work" / "a.py").write_text("one\n")
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(lambda: it.send({"type": "file", "path": "a.py"}, message=message))
        await it.finish(5)

    assert [one.uuid for one in it.prompts] == [message]


@pytest.mark.parametrize(
    "message", ["1", "../../x", "01890000-0000-4000-8000-000000000000", "01890000-0000-7000-8000-000000000000\n"]
)
async def test_id_of_another_form_is_refused(tmp_path: Path, message: str) -> None:
    async with running(tmp_path) as it:
        with pytest.raises(WireError, match="pattern"):
            await it.send("go", message=message)


async def test_messages_come_in_pages(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        for number in range(3):
            await it.send(f"prompt {number}")
            await it.finish()
        newest = await it.call("session.messages", limit=2)
        before = await it.call("session.messages", before=newest[0]["uuid"])
        with pytest.raises(NotFoundError, match="no such message"):
            await it.call("session.messages", before="nonsense")

    assert [one["content"][0]["text"] for one in [*before, *newest]] == [
        text for number in range(3) for text in (f"prompt {number}", f"answer {number}")
    ]


def test_messages_beyond_the_bound_are_left_out() -> None:
    messages = [UserMessage.of("x" * (MAX_PAST_BYTES // 3)) for _ in range(4)]

    assert newest_messages(messages) == messages[2:]
    assert newest_messages([UserMessage.of("x" * MAX_PAST_BYTES)]) == []


async def test_state_goes_on_where_the_client_was(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        await it.send("go")
        await it.finish()
        whole = await it.call("session.get")
        same = await it.call("session.get", epoch=whole["epoch"], after=3)
        future = await it.call("session.get", epoch=whole["epoch"], after=10**30)
        other = await it.call("session.get", epoch="nonsense", after=3)

    assert [one["type"] for one in whole["messages"]] == ["user", "assistant"]
    assert (same["messages"], same["number"]) == (None, 3)
    assert whole == future == other


async def test_client_takes_back_its_own_prompt_alone(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        await it.send("first")
        await until(lambda: len(it.llm.requests) == 1)
        await it.send("second")
        other = await it.call("session.takeBack", client="window")
        own = await it.call("session.takeBack")
        await it.finish()

    assert (other, own) == ({"text": None}, {"text": "second"})
    assert it.llm.asked == [["first"]]


async def test_interrupt_stops_the_turn_and_tells_if_one_ran(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        nothing = await it.call("session.cancel")
        await it.send("go")
        await until(lambda: len(it.llm.requests) == 1)
        running_turn = await it.call("session.cancel")
        status = await it.call("session.wait", timeout_s=20)

    assert (nothing, running_turn) == ({"cancelled": False}, {"cancelled": True})
    assert status["activity"] == "idle"


async def test_wait_ends_with_its_time_while_a_turn_runs(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        await it.send("go")
        status = await it.call("session.wait", timeout_s=0)

        assert status["activity"] == "busy"
        for wrong in ("nan", "inf", "1e999", -1, 601, "x"):
            with pytest.raises(WireError, match="timeout_s"):
                await it.call("session.wait", timeout_s=wrong)
        await it.finish()


async def test_question_is_answered_once(tmp_path: Path) -> None:
    answer = {"kind": "permission", "answer": {"is_allowed": True}}
    given = list[Any]()

    async def ask(hub: Hub) -> None:
        given.append(await hub.questions.askers.permission(BASH))

    async with running(tmp_path) as it, anyio.create_task_group() as tasks:
        with it.hub.questions.answered_by("page"):
            tasks.start_soon(ask, it.hub)
            await until(lambda: bool(it.hub.questions.open))
            (question,) = await it.call("questions.list")
            status = await it.call("status.get")
            for wrong in (
                {},
                {"kind": "x"},
                {"kind": "permission"},
                {"kind": "permission", "answer": {"is_allowed": 7}},
            ):
                with pytest.raises(WireError):
                    await it.call("session.answer", id=question["id"], answer=wrong)
            first = await it.call("session.answer", id=question["id"], answer=answer)
            second = await it.call("session.answer", id=question["id"], answer=answer)
            unknown = await it.call("session.answer", id=10**30, answer=answer)

    assert (question["kind"], question["question"]["input"]) == ("permission", {"command": "make"})
    assert status["activity"] == "asking"
    assert [one["counts"] for one in (first, second, unknown)] == [True, False, False]
    assert [one.is_allowed for one in given] == [True]


async def test_mode_that_asks_too_little_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        for mode in ("bypassPermissions", "dontAsk"):
            with pytest.raises(ForbiddenError, match="asks too little"):
                await it.call("session.change", mode=mode, title="changed")
        changed = await it.call("session.change", mode="plan", title="a \x1b[2J\n title")

    assert (changed["mode"], changed["title"]) == ("plan", "a title")


async def test_title_of_blanks_is_refused_before_anything_changes(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        with pytest.raises(WireError, match=r"title: .*'\\S'"):
            await it.call("session.change", mode="plan", title="  ")

        assert it.hub.status.mode == "default"


async def test_rewind_takes_back_a_message_when_no_turn_runs(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        first = await it.send("first")
        await it.finish()
        second = await it.send("second")
        await until(lambda: len(it.llm.requests) == 2)
        with pytest.raises(BusyError):
            await it.call("session.rewind", message=first)
        await it.finish()
        await it.call("session.rewind", message=second)
        for nonsense in ("nonsense", second):
            with pytest.raises(NotFoundError):
                await it.call("session.rewind", message=nonsense)
        messages = await it.call("session.messages")

    assert [one["content"][0]["text"] for one in messages] == ["first", "answer 0"]


class Slow(Hook, FileHistory):
    """Follows a rewind, and undoes, as slowly as a test wants."""

    def __init__(self) -> None:
        self.has_begun, self.goes_on = anyio.Event(), anyio.Event()

    async def history_replaced(self, conversation: Conversation) -> None:
        self.has_begun.set()
        await self.goes_on.wait()

    async def step(self, direction: str, *, only_looks: bool = False) -> FileRestore:
        self.has_begun.set()
        await self.goes_on.wait()
        return FileRestore((), "", {})


@pytest.mark.parametrize("operation", ["session.rewind", "changes.undo", "changes.redo"])
async def test_no_turn_begins_while_something_is_taken_back(tmp_path: Path, operation: str) -> None:
    slow = Slow()  # type: ignore[abstract]
    async with running(tmp_path, hooks=[slow], offers=[slow]) as it:
        first = await it.send("first")
        await it.finish()
        async with anyio.create_task_group() as tasks:
            place = {"message": first} if operation == "session.rewind" else {}
            tasks.start_soon(partial(it.call, operation, **place))
            await slow.has_begun.wait()
            await it.send("second")
            await anyio.wait_all_tasks_blocked()
            asked_meanwhile = len(it.llm.requests)
            slow.goes_on.set()
        await it.finish()

    assert (asked_meanwhile, len(it.llm.requests)) == (1, 2)


async def test_command_runs_and_another_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path, commands=Commands()) as it:
        reader = it.hub.read(0)
        await it.call("session.command", line="hello")
        await it.finish(0)
        told = [one.event.text for one in reader.take_now() if type(one.event).__name__ == "CommandRan"]

    assert told == ["hello there"]


async def test_unknown_command_and_task_are_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as it:
        for line in ("/", " ", "/nonsense", "\0"):
            with pytest.raises(ConfigError, match="there is no command"):
                await it.call("session.command", line=line)
        for name in ("tasks.output", "tasks.stop"):
            with pytest.raises(NotFoundError, match="no task"):
                await it.call(name, task="../../x")


async def test_secrets_in_the_settings_are_stars(tmp_path: Path) -> None:
    settings = settings_with(api_key="sk-secret")
    async with running(tmp_path, settings=settings) as it:
        shown = await it.call("session.config")

    assert shown["api_key"] == "***"
    assert "sk-secret" not in str(shown)


async def test_replies_without_words_have_messages(tmp_path: Path) -> None:
    async with running(tmp_path, say("")) as it:
        await it.send("go")
        await it.finish()

        assert isinstance(it.hub.session.conversation.messages[-1], AssistantMessage)
