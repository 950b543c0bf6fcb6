"""Events of a session become those of the SDK, also where a reply breaks off or a client falls behind."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from panpan.errors import ProviderError
from panpan.faces.server.opencode import ids
from panpan.faces.server.opencode.events import SessionEvents
from panpan.hub.events import (
    CommandRequested,
    MessageRecorded,
    OpenBlock,
    QuestionAsked,
    QuestionClosed,
    Resync,
    Rewound,
    Status,
    StatusChanged,
    TurnBegan,
    TurnClosed,
    TurnFailed,
)
from panpan.hub.hub import Hub
from panpan.hub.operations.table import NotFoundError
from panpan.hub.wire import WireError
from panpan.types.content import TextBlock, ThinkingBlock
from panpan.types.events import BlockFinished, BlockStarted, ReplyStarted, RetryScheduled, TextDelta, TurnEnded
from panpan.types.messages import AssistantMessage, UserMessage, new_id
from panpan.types.permission import PermissionQuestion, PlanProposal
from tests.fakes.hub import Commands, hub_of
from tests.fakes.scripted_llm import ScriptedLLM
from tests.fakes.session import session_in

REPLY = "019ad00d-0000-7000-8000-000000000001"
MESSAGE = "msg_019ad00d000070008000000000000001"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    return root


class Told:
    """Events of a client, of a session of fakes."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.events = SessionEvents(hub, lambda: 1.5)

    def names(self, *events: Any) -> list[str]:
        return [name for name, _ in self.all(*events)]

    def all(self, *events: Any) -> list[Any]:
        return [told for event in events for told in self.events.follow(event)]


@asynccontextmanager
async def told_in(folder: Path) -> AsyncGenerator[Told, None]:
    async with hub_of(session_in(folder, ScriptedLLM(), commands=Commands())) as hub:
        yield Told(hub)


async def test_reply_that_breaks_off_is_removed(root: Path) -> None:
    async with told_in(root) as it:
        begun = it.all(ReplyStarted("m", "model", uuid=REPLY), BlockStarted(0, "text"), TextDelta(0, "half"))
        retried = it.all(RetryScheduled(2, "overloaded", 1.0))
        nothing = it.names(RetryScheduled(3, "overloaded", 1.0))
        failed = it.names(ReplyStarted("m", "model"), TurnFailed(ProviderError("no")), TurnClosed())

    assert [name for name, _ in begun] == [
        "message.updated",
        "message.part.updated",
        "message.part.updated",
        "message.part.delta",
    ]
    assert begun[-1][1] == {
        "sessionID": "ses_s1",
        "messageID": MESSAGE,
        "partID": "prt_019ad00d0000700080000000000000010001",
        "field": "text",
        "delta": "half",
    }
    assert retried == [("message.removed", {"sessionID": "ses_s1", "messageID": MESSAGE})]
    assert nothing == []
    assert failed == ["message.updated", "message.part.updated", "session.error", "message.removed", "session.updated"]


async def test_interrupted_reply_keeps_its_id_and_loses_parts(root: Path) -> None:
    cut = AssistantMessage(uuid=REPLY, content=(TextBlock(text="half"),), model="m", stop_reason="interrupted")
    async with told_in(root) as it:
        it.all(
            ReplyStarted("m", "model", uuid=REPLY),
            BlockStarted(0, "thinking"),
            BlockFinished(0, ThinkingBlock(thinking="hm")),
            BlockStarted(1, "text"),
            TextDelta(1, "half"),
        )
        told = it.all(MessageRecorded(cut))
        after = it.names(TurnClosed())

    parts = [(one["part"]["type"], one["part"]["id"][-4:]) for name, one in told if name == "message.part.updated"]
    assert parts == [("text", "0001"), ("step-finish", "0002")]
    assert told[0][1]["info"]["error"]["name"] == "MessageAbortedError"
    assert "message.removed" not in after


async def test_reply_of_unknown_id_is_told_again_under_its_own(root: Path) -> None:
    whole = AssistantMessage(uuid=REPLY, content=(TextBlock(text="all"),), model="m")
    async with told_in(root) as it:
        begun = it.all(ReplyStarted("m", "model"), BlockStarted(0, "text"), BlockFinished(0, whole.content[0]))
        told = it.all(whole)

    assert told[0] == ("message.removed", {"sessionID": "ses_s1", "messageID": begun[0][1]["info"]["id"]})
    assert {one.get("part", {}).get("messageID", MESSAGE) for _, one in told[1:]} == {MESSAGE}


async def test_slow_client_gets_the_open_parts_whole(root: Path) -> None:
    async with told_in(root) as it:
        it.hub.session.add_message(UserMessage.of("hello"))
        it.all(ReplyStarted("m", "model", uuid=REPLY))
        told = it.all(Resync([OpenBlock(0, "text", "so far")]))
        lost = it.names(Resync((), is_whole=False))

    assert [(name, one["part"]["text"]) for name, one in told] == [("message.part.updated", "so far")]
    assert lost == ["session.updated", "message.updated", "message.part.updated"]


async def test_rewind_removes_the_messages_behind(root: Path) -> None:
    async with told_in(root) as it:
        gone = UserMessage.of("hello")
        it.all(TurnBegan(gone))
        told = it.all(Rewound(""))

    assert told == [("message.removed", {"sessionID": "ses_s1", "messageID": ids.wire_id("msg", gone.uuid)})]


async def test_state_is_told_when_it_changes(root: Path) -> None:
    retrying = Status("retrying", 2, 10.0, "overloaded")
    async with told_in(root) as it:
        told = it.all(StatusChanged(Status("busy")), StatusChanged(Status("asking")), StatusChanged(retrying))
        idle = it.names(StatusChanged(Status(title="a title")))
        ended = it.all(TurnEnded(1, AssistantMessage(content=()).usage, None, 1.0, 0.5, is_interrupted=True))
        command = it.names(TurnBegan(UserMessage.of("/hello")))

    assert [one["status"] for _, one in told] == [
        {"type": "busy"},
        {"type": "retry", "attempt": 2, "message": "overloaded", "next": 10_000},
    ]
    assert idle == ["session.status", "session.idle", "session.updated"]
    assert [one["error"]["name"] for _, one in ended] == ["MessageAbortedError"]
    assert command == []


async def test_questions_are_permissions_or_questions(root: Path) -> None:
    about_call = PermissionQuestion("1", "Bash", {"command": "make"}, "make", "it runs a command", rule="Bash(make)")
    plan = PlanProposal("Change it.", Path("/plan.md"), ["default"])
    async with told_in(root) as it:
        asked = it.all(QuestionAsked(1, about_call), QuestionAsked(2, plan))
        closed = it.all(QuestionClosed(1, "web", "always"), QuestionClosed(2, "web"), QuestionClosed(3, ""))

    assert [name for name, _ in asked] == ["permission.asked", "permission.updated", "question.asked"]
    assert asked[0][1]["always"] == ["Bash(make)"]
    assert [one["label"] for one in asked[2][1]["questions"][0]["options"]] == ["default", "Keep planning"]
    assert [name for name, _ in closed] == [
        "permission.replied",
        "question.replied",
        "permission.replied",
        "question.rejected",
    ]
    assert (closed[0][1]["requestID"], closed[0][1]["reply"]) == (asked[0][1]["id"], "always")


async def test_commands_for_terminals_have_the_sdks_names(root: Path) -> None:
    async with told_in(root) as it:
        told = it.all(CommandRequested("prompt.submit"), CommandRequested("prompt.append", "a"))

    assert told == [
        ("tui.command.execute", {"command": "prompt.submit"}),
        ("tui.prompt.append", {"text": "a"}),
    ]


def test_ids_lead_back_without_state() -> None:
    own = new_id()
    question = ids.question_id("per", own, 7)

    assert ids.own_id("msg", ids.wire_id("msg", own)) == own
    assert ids.own_id("ses", ids.wire_id("ses", "s1")) == "s1"
    assert ids.new_message_id(ids.wire_id("msg", own)) == own
    assert ids.place_of_question("per", question) == (own, 7)
    assert ids.time_of(REPLY) == 0x019AD00D0000
    assert ids.time_of("s1") == 0
    for prefix, wrong in (("msg", "ses_1"), ("msg", "1"), ("msg", "msg_"), ("ses", "")):
        with pytest.raises(NotFoundError):
            ids.own_id(prefix, wrong)  # type: ignore[arg-type]
    with pytest.raises(NotFoundError):
        ids.place_of_question("per", "per_nonsense")
    with pytest.raises(WireError, match="leave it out"):
        ids.new_message_id("msg_00000000000040008000000000000001")


def test_ids_sort_by_time() -> None:
    made = [ids.wire_id("msg", f"019ad00d-{number:04x}-7000-8000-000000000000") for number in range(300)]
    parts = [ids.part_id(REPLY, number) for number in range(300)]

    assert made == sorted(made)
    assert parts == sorted(parts)
