"""Wherever a turn is stopped, and however: nothing runs on, what was shown is recorded, and the session goes on."""

from collections.abc import Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.capabilities.guards.repeated_calls import RepeatedCalls
from panpan.capabilities.guards.size_limits import InterruptNotice, ReplyLimits
from panpan.core.conversation import INTERRUPTED_BEFORE, NEVER_BEGUN
from panpan.types.events import TurnEnded
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, UserMessage
from panpan.types.permission import PermissionAnswer, PermissionQuestion
from tests.core.test_conversation import assert_valid
from tests.fakes.scripted_llm import ScriptedLLM, call, say
from tests.fakes.session import log_path, recorded, session_in
from tests.fakes.tools import FakeTool, changing, looking, refusing

How = Literal["leave", "raise", "interrupt", "cancel", "kill"]
Wanted = Sequence[Sequence[str]]
"""For each reply of the turn the tools that it asks for."""

MOST_EVENTS = 60

replies = st.lists(st.lists(st.sampled_from(["Look", "Change", "Fail", "None"]), max_size=4), min_size=1, max_size=3)


class FaceError(Exception):
    """A bug in a face."""


class Story:
    """One session in a folder of its own, stopped once and then taken up again."""

    def __init__(self, folder: Path, wanted: Wanted) -> None:
        self.root = folder / "work"
        self.root.mkdir()
        self.tools: list[FakeTool] = [looking(), changing(), refusing()]
        self.llm = ScriptedLLM(
            *(
                call(*((f"{n}.{m}", tool, {"seconds": m / 5_000}) for m, tool in enumerate(tools)), text=f"step {n}")
                for n, tools in enumerate(wanted)
                if tools
            ),
            say("all is done"),
        )
        self.shown: list[Message] = []
        self.begun: list[str] = []
        """Lines that the tools wrote when they began and ended, up to the stop."""

    async def stop(self, at: int, how: How) -> None:
        """Run a turn and stop it at its event number `at`, should it have that many."""
        killed = b""
        with anyio.CancelScope() as everything, suppress(FaceError):
            async with session_in(self.root, self.llm, *self.tools, hooks=hooks(), ask=slow_yes) as session:
                async with aclosing(session.submit("go")) as events:
                    number = 0
                    async for event in events:
                        if isinstance(event, AssistantMessage | ToolResultMessage | SystemReminder | UserMessage):
                            self.shown.append(event)
                        number += 1
                        if number != at:
                            continue
                        match how:
                            case "leave":
                                break
                            case "raise":
                                raise FaceError
                            case "interrupt":
                                session.interrupt()
                            case "cancel":
                                everything.cancel()
                            case "kill":
                                killed = log_path(self.root).read_bytes()
                                self.begun = [line for tool in self.tools for line in tool.log]
                                break
                assert_valid(session.conversation.messages)
                assert not session.conversation.open_tool_uses
        if killed:  # nothing of what came later has happened
            log_path(self.root).write_bytes(killed)
        self.begun = self.begun if killed else [line for tool in self.tools for line in tool.log]
        assert [tool.running for tool in self.tools] == [0, 0, 0]

    async def go_on(self) -> None:
        """Take the session up again from its log, and run a turn to its end."""
        before = recorded(self.root)
        assert_valid(before)
        assert {message.uuid for message in self.shown} <= {message.uuid for message in before}
        for message in before:
            if isinstance(message, ToolResultMessage) and message.text in (INTERRUPTED_BEFORE, NEVER_BEGUN):
                assert f"Change {message.tool_use_id} begins" not in self.begun
        llm = ScriptedLLM(call(("again", "Look", {})), say("back again"))
        async with session_in(self.root, llm, *self.tools, hooks=hooks(), ask=slow_yes, outcome="unclear") as session:
            async with aclosing(session.submit("and now?")) as events:
                seen = [event async for event in events]
        assert isinstance(seen[-1], TurnEnded)
        assert not seen[-1].is_interrupted
        for history in llm.histories:
            assert_valid(history)
        assert said(recorded(self.root)[: len(before)]) == said(before) == said(llm.histories[0][: len(before)])


def said(messages: Sequence[Message]) -> list[object]:
    """The messages without their ids; an answer that the fold makes up has a new one each time."""
    return [(type(message), message.model_dump(exclude={"uuid"})) for message in messages]


def hooks() -> tuple[InterruptNotice, RepeatedCalls, ReplyLimits]:
    return InterruptNotice(), RepeatedCalls(), ReplyLimits()


async def slow_yes(question: PermissionQuestion) -> PermissionAnswer:
    await anyio.lowlevel.checkpoint()
    return PermissionAnswer(is_allowed=True)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@given(
    wanted=replies,
    at=st.integers(1, MOST_EVENTS),
    how=st.sampled_from(["leave", "raise", "interrupt", "cancel", "kill"]),
)
@settings(max_examples=60)
def test_session_stopped_anywhere_is_valid_and_continues(backend: str, wanted: Wanted, at: int, how: How) -> None:
    async def main(folder: Path) -> None:
        story = Story(folder, wanted)
        await story.stop(at, how)
        await story.go_on()

    with TemporaryDirectory() as folder:
        anyio.run(main, Path(folder), backend=backend)
