"""A turn is one round, then the turn of the longer conversation, until the model asks for no tool."""

import gc
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round
from panpan.core.query import Turn, query
from panpan.core.tool_executor import ToolExecutor
from panpan.errors import ProviderError, StreamError, TurnLimitError
from panpan.types.events import Event, RoundEnded, TextDelta, ToolProgress
from panpan.types.messages import AssistantMessage, SystemReminder, ToolResultMessage, UserMessage
from tests.fakes.askers import yes
from tests.fakes.context import context_in
from tests.fakes.scripted_llm import ScriptedLLM, call, say
from tests.fakes.tools import FakeTool, changing, looking


@asynccontextmanager
async def turn_of(
    root: Path, llm: Any, *tools: FakeTool, hooks: Sequence[Hook] = (), max_rounds: int = 50
) -> AsyncIterator[Turn]:
    executor = ToolExecutor({tool.name: tool for tool in tools}, context_in(root), hooks, ask=yes())
    async with executor:
        yield Turn(llm, executor, hooks, max_rounds)


async def collect(conversation: Conversation, turn: Turn) -> list[Event]:
    async with aclosing(query(conversation, turn)) as events:
        return [event async for event in events]


def asked(prompt: str = "go") -> Conversation:
    return Conversation(messages=[UserMessage.of(prompt)])


async def test_query_finds_a_tool_in_any_case(tmp_path: Path) -> None:
    llm = ScriptedLLM(call(("1", "look", {}), ("2", "LOOK", {"seconds": 0.001}), ("3", "lok", {})), say("done"))
    conversation = asked()

    async with turn_of(tmp_path, llm, looking()) as turn:
        events = await collect(conversation, turn)

    replies = [event for event in events if isinstance(event, AssistantMessage)]
    assert [use.name for use in replies[0].tool_uses] == ["Look", "Look", "lok"]
    results = [message for message in conversation.messages if isinstance(message, ToolResultMessage)]
    assert [result.result.is_error for result in results] == [False, False, True]


async def test_query_goes_on_until_a_reply_has_no_calls(tmp_path: Path) -> None:
    llm = ScriptedLLM(call(("1", "Look", {})), call(("2", "Look", {}), ("3", "Look", {})), say("all is well"))
    conversation = asked()

    async with turn_of(tmp_path, llm, looking()) as turn:
        events = await collect(conversation, turn)

    assert [len(history) for history in llm.histories] == [1, 3, 6]
    assert [type(message).__name__ for message in conversation.messages] == [
        "UserMessage",
        "AssistantMessage",
        "ToolResultMessage",
        "AssistantMessage",
        "ToolResultMessage",
        "ToolResultMessage",
        "AssistantMessage",
    ]
    assert [event.number for event in events if isinstance(event, RoundEnded)] == [1, 2, 3]
    kept = [e for e in events if isinstance(e, AssistantMessage | ToolResultMessage)]
    assert kept == conversation.messages[1:]


async def test_query_ends_after_a_round_if_a_hook_says_so(tmp_path: Path) -> None:
    class EndsAfterTwo(Hook):
        def ends_turn(self, round_: Round) -> bool:
            return round_.number == 2

    llm = ScriptedLLM(call(("1", "Look", {})), call(("2", "Look", {})), say("never asked for"))
    conversation = asked()

    async with turn_of(tmp_path, llm, looking(), hooks=[EndsAfterTwo()]) as turn:
        events = await collect(conversation, turn)

    assert len(llm.histories) == 2
    assert isinstance(conversation.messages[-1], ToolResultMessage)
    assert isinstance(events[-1], RoundEnded)
    assert conversation.open_tool_uses == {}


async def test_query_yields_the_reply_before_its_tools_run(tmp_path: Path) -> None:
    conversation, look = asked(), looking()
    async with turn_of(tmp_path, ScriptedLLM(call(("1", "Look", {}), text="I look."), say("ok")), look) as turn:
        async with aclosing(query(conversation, turn)) as events:
            async for event in events:
                if isinstance(event, AssistantMessage):
                    break

        assert look.log == []
        assert conversation.messages[-1] == event


async def test_query_keeps_memory_and_stack_flat_over_5000_rounds(tmp_path: Path) -> None:
    rounds = 5_000
    depths: list[int] = []

    class Endless:
        """Asks for a tool in each round, and notes how deep the stack is."""

        def __init__(self) -> None:
            self.count = 0

        async def stream(self, request: Any) -> Any:
            self.count += 1
            frame, depth = sys._getframe(), 0
            while frame is not None:
                frame, depth = frame.f_back, depth + 1
            depths.append(depth)
            yield call((str(self.count), "Look", {})) if self.count < rounds else say("done")

    conversation, look = asked(), looking()
    objects: list[int] = []
    async with turn_of(tmp_path, Endless(), look, max_rounds=rounds) as turn:
        async with aclosing(query(conversation, turn)) as events:
            async for event in events:
                if isinstance(event, RoundEnded) and event.number < rounds:
                    # the history is the session's to keep, and the log the fake tool's; the loop must keep nothing
                    conversation.messages[:] = [UserMessage.of("go on")]
                    conversation._tool_use_ids.clear()
                    look.log.clear()
                    if event.number % 400 == 0:
                        gc.collect()
                        objects.append(len(gc.get_objects()))

    assert len(depths) == rounds
    assert max(depths) == min(depths)
    assert max(objects) - objects[0] < 100


async def test_query_raises_its_own_error_after_too_many_rounds(tmp_path: Path) -> None:
    conversation = asked()
    llm = ScriptedLLM(*(call((str(n), "Look", {})) for n in range(9)))

    async with turn_of(tmp_path, llm, looking(), max_rounds=3) as turn:
        with pytest.raises(TurnLimitError, match="3 rounds"):
            await collect(conversation, turn)

    assert len(llm.histories) == 3
    assert conversation.open_tool_uses == {}


async def test_query_raises_a_provider_error_and_keeps_history_valid(tmp_path: Path) -> None:
    conversation = asked()
    llm = ScriptedLLM(call(("1", "Look", {})), ProviderError("the server is on fire", provider="scripted"))

    with pytest.raises(ProviderError, match="on fire"):
        async with turn_of(tmp_path, llm, looking()) as turn:
            await collect(conversation, turn)

    assert conversation.awaits_model


async def test_query_refuses_a_stream_without_a_message(tmp_path: Path) -> None:
    class Mute:
        async def stream(self, request: Any) -> Any:
            yield TextDelta(0, "I am")

    async with turn_of(tmp_path, Mute()) as turn:
        with pytest.raises(StreamError, match="without a message"):
            await collect(asked(), turn)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_query_cancelled_amid_parallel_tools_leaves_none_running(tmp_path: Path, backend: str) -> None:
    look, conversation = looking(), asked()
    uses = [(str(n), "Look", {"seconds": 60.0 + n}) for n in range(5)]

    async def main() -> None:
        with anyio.CancelScope() as scope:
            async with turn_of(tmp_path, ScriptedLLM(call(*uses)), look) as turn:
                async with aclosing(query(conversation, turn)) as events:
                    async for event in events:
                        if isinstance(event, ToolProgress) and look.running == 5:
                            scope.cancel()
        assert scope.cancelled_caught
        assert (look.peak, look.running, look.cut_short) == (5, 0, 5)
        assert list(conversation.open_tool_uses) == ["0", "1", "2", "3", "4"]

    anyio.run(main, backend=backend)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_query_raises_the_consumers_error_from_amid_a_tool(tmp_path: Path, backend: str) -> None:
    look = looking()

    async def main() -> None:
        with pytest.raises(KeyError, match="mine"):
            async with turn_of(tmp_path, ScriptedLLM(call(("1", "Look", {"seconds": 60.0}))), look) as turn:
                async with aclosing(query(asked(), turn)) as events:
                    async for event in events:
                        if isinstance(event, ToolProgress):
                            raise KeyError("mine")
        assert (look.running, look.cut_short) == (0, 1)

    anyio.run(main, backend=backend)


class Notes(Hook):
    """Adds what it is told to at each point."""

    def __init__(self, **additions: list[Addition]) -> None:
        self.additions = additions
        self.rounds: list[tuple[int, bool]] = []

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        return self.additions.pop("turn_started", [])

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        self.rounds.append((round_.number, round_.is_last))
        return self.additions.pop("before_request", [])

    async def after_round(self, round_: Round, reply: AssistantMessage) -> Sequence[Addition]:
        return self.additions.pop("after_round", [])


async def test_query_ends_before_the_tools_if_a_hook_says_so(tmp_path: Path) -> None:
    class Refuses(Hook):
        async def after_reply(self, round_: Round, reply: AssistantMessage) -> None:
            assert round_.conversation.messages[-1] == reply == seen[-1]
            raise ProviderError("not this one")

    seen: list[Event] = []
    look, conversation = looking(), asked()
    async with turn_of(tmp_path, ScriptedLLM(call(("1", "Look", {}))), look, hooks=[Refuses()]) as turn:
        async with aclosing(query(conversation, turn)) as events:
            with pytest.raises(ProviderError, match="not this one"):
                async for event in events:
                    seen.append(event)

    assert look.log == []
    assert list(conversation.open_tool_uses) == ["1"], "for whoever drives the turn to answer"


async def test_query_appends_and_yields_the_additions_of_hooks(tmp_path: Path) -> None:
    context, notice, steer = SystemReminder(text="ctx"), SystemReminder(text="mind"), UserMessage.of("also do this")
    hook = Notes(turn_started=[context], before_request=[notice], after_round=[steer])
    llm = ScriptedLLM(say("first"), say("second"))
    conversation = asked()

    async with turn_of(tmp_path, llm, hooks=[hook], max_rounds=2) as turn:
        events = await collect(conversation, turn)

    assert llm.histories[0][1:] == [context, notice]
    assert llm.histories[1][-1] == steer, "what comes after a final reply keeps the turn going"
    assert [event for event in events if isinstance(event, SystemReminder | UserMessage)] == [context, notice, steer]
    assert hook.rounds == [(1, False), (2, True)]


async def test_query_extends_the_previous_request_over_fifty_rounds(tmp_path: Path) -> None:
    class Reminds(Hook):
        async def before_request(self, round_: Round) -> Sequence[Addition]:
            return [SystemReminder(text=f"round {round_.number}")] if round_.number % 7 == 0 else []

    replies = [call((str(n), "Look" if n % 3 else "Change", {})) for n in range(49)]
    llm = ScriptedLLM(*replies, say("done"))

    async with turn_of(tmp_path, llm, looking(), changing(), hooks=[Reminds()]) as turn:
        await collect(asked(), turn)

    assert len(llm.requests) == 50
    for earlier, later, request in zip(llm.histories, llm.histories[1:], llm.requests[1:], strict=False):
        assert later[: len(earlier)] == earlier
        assert (request.system, request.tools) == (llm.requests[0].system, llm.requests[0].tools)


async def test_query_sends_the_reply_again_after_pause_turn(tmp_path: Path) -> None:
    llm = ScriptedLLM(say("searching", stop_reason="pause_turn"), say("found"))

    async with turn_of(tmp_path, llm) as turn:
        events = await collect(asked(), turn)

    assert [event.text for event in events if isinstance(event, AssistantMessage)] == ["searching", "found"]
    assert isinstance(llm.histories[1][-1], AssistantMessage)
