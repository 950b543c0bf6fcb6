"""A session is woken without a message of the user: a turn like any, where there is something to tell the model."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path

import anyio
import pytest

from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round
from panpan.errors import ProviderError
from panpan.models.providers.anthropic_request import encode_user_side as anthropic_user_side
from panpan.models.wire import WireHistory
from panpan.session.session import MOST_WOKEN, Session
from panpan.types.events import Event, ModelEvent, ReplyStarted, TextDelta, TurnEnded
from panpan.types.llm import ModelRequest
from panpan.types.messages import AssistantMessage, SystemReminder
from tests.fakes.scripted_llm import ScriptedLLM, say
from tests.fakes.session import recorded, session_in
from tests.system.backends import on_both_backends, run_on


class Ended(Hook):
    """Tells that a task has ended, once for each."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)

    @property
    def wants_turn(self) -> bool:
        return bool(self.names)

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        told, self.names = self.names, []
        return [SystemReminder(text=f"{name} has ended", cause=f"task:{name}") for name in told]


async def said(session: Session, prompt: str) -> list[Event]:
    async with aclosing(session.submit(prompt)) as events:
        return [event async for event in events]


async def woken(session: Session) -> list[Event]:
    async with aclosing(session.wake()) as events:
        return [event async for event in events]


def turn_end(events: Sequence[Event]) -> TurnEnded:
    last = events[-1]
    assert isinstance(last, TurnEnded)
    return last


async def test_wake_without_news_asks_no_model(tmp_path: Path) -> None:
    llm = ScriptedLLM(say("hello"))
    async with session_in(tmp_path, llm, hooks=[Ended()]) as session:
        await said(session, "hi")
        events = await woken(session)

    assert [type(event) for event in events] == [TurnEnded]
    assert (turn_end(events).rounds, turn_end(events).is_interrupted) == (0, False)
    assert len(llm.requests) == 1


@on_both_backends
def test_wake_with_a_hooks_news_is_answered(tmp_path: Path, backend: str) -> None:
    llm, hook = ScriptedLLM(say("hello"), say("I see")), Ended()

    async def main() -> None:
        async with session_in(tmp_path, llm, hooks=[hook]) as session:
            await said(session, "hi")
            hook.names.append("build")
            assert session.may_be_woken
            assert turn_end(await woken(session)).rounds == 1
            assert not session.may_be_woken

    run_on(backend, main)
    assert [message.text for message in llm.histories[1]] == ["hi", "hello", "build has ended"]
    assert [message.text for message in recorded(tmp_path)] == ["hi", "hello", "build has ended", "I see"]


async def test_woken_session_continues_after_closing(tmp_path: Path) -> None:
    hook = Ended()
    async with session_in(tmp_path, ScriptedLLM(say("hello"), say("I see")), hooks=[hook]) as session:
        await said(session, "hi")
        hook.names.append("build")
        await woken(session)
    llm = ScriptedLLM(say("bye"))
    async with session_in(tmp_path, llm) as session:
        await said(session, "more")

    assert [message.text for message in llm.histories[0]] == ["hi", "hello", "build has ended", "I see", "more"]


async def test_wake_delivers_a_message_that_waits_for_the_next_round(tmp_path: Path) -> None:
    llm = ScriptedLLM(say("hello"), say("yes"))
    async with session_in(tmp_path, llm) as session:
        await said(session, "hi")
        session.steering.add("are you there?")
        assert session.may_be_woken
        await woken(session)

    assert [message.text for message in recorded(tmp_path)] == ["hi", "hello", "are you there?", "yes"]


async def test_wake_is_interrupted_like_any_turn(tmp_path: Path) -> None:
    class Slow:
        async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
            yield ReplyStarted("m", "slow")
            yield TextDelta(0, "I see")
            await anyio.sleep_forever()

    events: list[Event] = []
    async with session_in(tmp_path, Slow(), hooks=[Ended("build")]) as session, aclosing(session.wake()) as turn:
        async for event in turn:
            events.append(event)
            if isinstance(event, TextDelta):
                session.interrupt()

    assert turn_end(events).is_interrupted
    assert [message.text for message in recorded(tmp_path)] == ["build has ended", "I see"]


async def test_wake_raises_an_error_and_the_next_turn_works(tmp_path: Path) -> None:
    hook = Ended()
    llm = ScriptedLLM(say("hello"), ProviderError("no luck"), say("fine"))
    async with session_in(tmp_path, llm, hooks=[hook]) as session:
        await said(session, "hi")
        hook.names.append("build")
        with pytest.raises(ProviderError, match="no luck"):
            await woken(session)
        await said(session, "again")

    assert [message.text for message in recorded(tmp_path)] == ["hi", "hello", "build has ended", "again", "fine"]


async def test_wake_never_loops_between_tasks_and_turns(tmp_path: Path) -> None:
    hook = Ended()
    replies = [say(f"{number}") for number in range(MOST_WOKEN + 2)]
    warnings: list[str] = []
    async with session_in(tmp_path, ScriptedLLM(*replies), hooks=[hook], warn=warnings.append) as session:
        await said(session, "hi")
        turns = 0
        hook.names.append("first")
        while session.may_be_woken:
            await woken(session)
            turns += 1
            hook.names.append("next")
        assert turns == MOST_WOKEN
        (warning,) = warnings
        assert "50 times without a message of yours" in warning
        await said(session, "go on")
        hook.names.append("one more")
        assert session.may_be_woken


async def test_wake_is_refused_during_a_turn(tmp_path: Path) -> None:
    async with session_in(tmp_path, ScriptedLLM(say("hello"))) as session, aclosing(session.submit("hi")) as events:
        await anext(events)
        with pytest.raises(RuntimeError):
            await anext(session.wake())


def test_reminder_behind_a_reply_is_a_user_message_on_the_wire() -> None:
    def reply(message: AssistantMessage) -> bytes:
        return json.dumps({"role": "assistant", "content": message.text}).encode()

    conversation = Conversation()
    conversation.append(say("hello"))
    before = WireHistory(reply, anthropic_user_side).groups(conversation.messages)
    conversation.append(SystemReminder(text="build has ended", cause="task:1"))

    after = WireHistory(reply, anthropic_user_side).groups(conversation.messages)

    assert after[:-1] == before
    message = json.loads(after[-1].data)
    assert message["role"] == "user"
    assert "build has ended" in message["content"][0]["text"]
