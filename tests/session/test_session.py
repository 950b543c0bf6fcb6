"""Turns end well, however they end: nothing runs on, the history is valid and recorded, and the next turn works."""

import os
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest

from panpan.capabilities.guards.size_limits import InterruptNotice
from panpan.core.conversation import (
    ENDED,
    ENDED_BEFORE,
    INTERRUPTED,
    INTERRUPTED_BEFORE,
    NEVER_ANSWERED,
    NEVER_BEGUN,
    Conversation,
)
from panpan.core.hooks import Hook, ToolCall
from panpan.errors import ProviderError, SessionLogError
from panpan.session.session import Session
from panpan.types.events import Event, ReplyStarted, TextDelta, ToolFinished, ToolProgress, TurnEnded, Verification
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, UserMessage
from panpan.types.permission import Ask, Decision, PermissionAnswer, PermissionQuestion, Reason
from tests.fakes.scripted_llm import ScriptedLLM, call, say
from tests.fakes.session import log_path, recorded, session_in
from tests.fakes.tools import LeavingTool, changing, looking, refusing

Main = Callable[[], Coroutine[Any, Any, None]]


@pytest.fixture(params=["asyncio", "trio"])
def run(request: pytest.FixtureRequest) -> Callable[[Main], None]:
    return lambda main: anyio.run(main, backend=request.param)


async def collect(session: Session, prompt: str = "go") -> list[Event]:
    async with aclosing(session.submit(prompt)) as events:
        return [event async for event in events]


def test_turns_in_a_row_make_one_conversation(tmp_path: Path, run: Callable[[Main], None]) -> None:
    llm = ScriptedLLM(call(("1", "Look", {})), say("first"), say("second"))

    async def main() -> None:
        async with session_in(tmp_path, llm, looking()) as session:
            first = await collect(session, "one")
            second = await collect(session, "two")
        assert isinstance(first[-1], TurnEnded)
        assert (first[-1].rounds, second[-1].rounds) == (2, 1)  # type: ignore[union-attr]
        assert [message.text for message in llm.histories[-1] if isinstance(message, UserMessage)] == ["one", "two"]

    run(main)
    assert [type(message).__name__ for message in recorded(tmp_path)] == [
        "UserMessage",
        "AssistantMessage",
        "ToolResultMessage",
        "AssistantMessage",
        "UserMessage",
        "AssistantMessage",
    ]


def test_message_is_on_disk_before_it_is_shown(tmp_path: Path, run: Callable[[Main], None]) -> None:
    shown: list[Any] = []

    async def main() -> None:
        llm = ScriptedLLM(call(("1", "Look", {})), say("done"))
        async with session_in(tmp_path, llm, looking()) as session, aclosing(session.submit("go")) as events:
            async for event in events:
                if isinstance(event, AssistantMessage | ToolResultMessage):
                    shown.append(event)
                    assert event in recorded(tmp_path)

    run(main)
    assert len(shown) == 3


def test_interrupt_keeps_finished_results_and_answers_the_rest(tmp_path: Path, run: Callable[[Main], None]) -> None:
    look = looking()
    uses = [("quick", "Look", {}), ("slow", "Look", {"seconds": 60.0})]

    async def main() -> None:
        async with session_in(tmp_path, ScriptedLLM(call(*uses), say("hello again")), look) as session:
            seen: list[Event] = []
            async with aclosing(session.submit("go")) as events:
                async for event in events:
                    seen.append(event)
                    if isinstance(event, ToolFinished):
                        session.interrupt()
            assert look.running == 0
            assert isinstance(seen[-1], TurnEnded)
            assert seen[-1].is_interrupted
            again = await collect(session, "hello?")
            assert isinstance(again[-1], TurnEnded)
            assert not again[-1].is_interrupted

    run(main)
    results = {message.tool_use_id: message for message in recorded(tmp_path) if isinstance(message, ToolResultMessage)}
    assert results["quick"].text == "Look quick done"
    assert (results["slow"].text, results["slow"].is_error) == (INTERRUPTED, True)


def test_interrupted_call_reports_its_partial_work(tmp_path: Path, run: Callable[[Main], None]) -> None:
    warnings: list[str] = []

    async def main() -> None:
        llm = ScriptedLLM(call(("1", "Half", {"seconds": 60.0})), say("hello again"))
        async with session_in(tmp_path, llm, LeavingTool("Half"), warn=warnings.append) as session:
            async with aclosing(session.submit("go")) as events:
                async for event in events:
                    if isinstance(event, ToolProgress):
                        session.interrupt()

    run(main)
    (result,) = [message for message in recorded(tmp_path) if isinstance(message, ToolResultMessage)]
    assert result.text == f"{INTERRUPTED} By then half was done."
    assert warnings == ["By then half was done."]


def test_interrupt_keeps_the_text_read_so_far(tmp_path: Path, run: Callable[[Main], None]) -> None:
    class Slow:
        async def stream(self, request: Any) -> Any:
            yield ReplyStarted("m", "slow", uuid="019ad00d-0000-7000-8000-000000000001")
            yield TextDelta(0, "The answer is ")
            await anyio.sleep(60)

    async def main() -> None:
        async with session_in(tmp_path, Slow()) as session, aclosing(session.submit("go")) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    session.interrupt()

    run(main)
    last = recorded(tmp_path)[-1]
    assert isinstance(last, AssistantMessage)
    assert (last.text, last.stop_reason) == ("The answer is ", "interrupted")
    assert last.uuid == "019ad00d-0000-7000-8000-000000000001"


def test_face_that_leaves_ends_only_this_turn(tmp_path: Path, run: Callable[[Main], None]) -> None:
    look = looking()

    async def main() -> None:
        llm = ScriptedLLM(call(("1", "Look", {"seconds": 60.0})), say("fine"))
        async with session_in(tmp_path, llm, look) as session:
            async with aclosing(session.submit("go")) as events:
                async for event in events:
                    if isinstance(event, ToolProgress):
                        break
            assert look.running == 0
            await collect(session, "next")

    run(main)
    assert recorded(tmp_path)[-1].text == "fine"


def test_face_that_raises_gets_its_error_and_stops_the_turn(tmp_path: Path, run: Callable[[Main], None]) -> None:
    look = looking()

    async def main() -> None:
        with pytest.raises(ZeroDivisionError):
            async with session_in(tmp_path, ScriptedLLM(call(("1", "Look", {"seconds": 60.0}))), look) as session:
                async with aclosing(session.submit("go")) as events:
                    async for event in events:
                        if isinstance(event, ToolProgress):
                            raise ZeroDivisionError
        assert look.running == 0

    run(main)


def test_provider_error_is_raised_and_the_next_turn_works(tmp_path: Path, run: Callable[[Main], None]) -> None:
    async def main() -> None:
        async with session_in(tmp_path, ScriptedLLM(ProviderError("no luck"), say("better"))) as session:
            with pytest.raises(ProviderError, match="no luck"):
                await collect(session, "one")
            events = await collect(session, "two")
        assert isinstance(events[-1], TurnEnded)

    run(main)
    assert [message.text for message in recorded(tmp_path)] == ["one", "two", "better"]


def test_cancelling_everything_leaves_a_valid_log(tmp_path: Path, run: Callable[[Main], None]) -> None:
    look = looking()

    async def main() -> None:
        with anyio.CancelScope() as scope:
            async with session_in(tmp_path, ScriptedLLM(call(("1", "Look", {"seconds": 60.0}))), look) as session:
                async with aclosing(session.submit("go")) as events:
                    async for event in events:
                        if isinstance(event, ToolProgress):
                            scope.cancel()
        assert look.running == 0

    run(main)
    last = recorded(tmp_path)[-1]
    assert isinstance(last, ToolResultMessage)
    assert last.text == INTERRUPTED


async def test_resumed_session_continues_after_the_last_message(tmp_path: Path) -> None:
    async with session_in(tmp_path, ScriptedLLM(call(("1", "Look", {})), say("done")), looking()) as session:
        await collect(session, "one")
    llm = ScriptedLLM(say("more"))

    async with session_in(tmp_path, llm, looking()) as session:
        await collect(session, "two")

    assert [type(message).__name__ for message in llm.histories[0]] == [
        "UserMessage",
        "AssistantMessage",
        "ToolResultMessage",
        "AssistantMessage",
        "UserMessage",
    ]


async def test_sessions_in_one_process_never_meet(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    async with session_in(one, ScriptedLLM(say("1"))) as first, session_in(two, ScriptedLLM(say("2"))) as second:
        async with anyio.create_task_group() as task_group:
            task_group.start_soon(collect, first, "a")
            task_group.start_soon(collect, second, "b")

    assert [message.text for message in recorded(one)] == ["a", "1"]
    assert [message.text for message in recorded(two)] == ["b", "2"]


async def test_second_turn_at_the_same_time_is_refused(tmp_path: Path) -> None:
    async with session_in(tmp_path, ScriptedLLM(say("1"), say("2"))) as session:
        async with aclosing(session.submit("a")) as events:
            await anext(events)
            with pytest.raises(RuntimeError, match="running already"):
                await anext(session.submit("b"))


async def test_hooks_hear_of_an_interrupt_and_of_every_end(tmp_path: Path) -> None:
    class Ends(Hook):
        def __init__(self) -> None:
            self.heard: list[str] = []

        async def interrupted(self, conversation: Conversation) -> None:
            assert not conversation.open_tool_uses
            self.heard.append("interrupted")

        async def turn_ended(self, conversation: Conversation) -> None:
            self.heard.append("ended")

    hook = Ends()
    llm = ScriptedLLM(say("ok"), ProviderError("no"), call(("1", "Look", {"seconds": 60.0})))
    async with session_in(tmp_path, llm, looking(), hooks=[hook]) as session:
        await collect(session)
        with pytest.raises(ProviderError):
            await collect(session)
        async with aclosing(session.submit("go")) as events:
            async for event in events:
                if isinstance(event, ToolProgress):
                    session.interrupt()

    assert hook.heard == ["ended", "ended", "interrupted", "ended"]


async def test_unwritable_log_fails_the_turn_and_loses_nothing(tmp_path: Path) -> None:
    llm = ScriptedLLM(call(("1", "Look", {})), say("unreachable"))
    async with session_in(tmp_path, llm, looking()) as session:
        log = session.agent.transcript.log
        fd, log._fd = log._fd, os.open(log_path(tmp_path), 0)  # read-only: every write fails
        with pytest.raises(SessionLogError, match="cannot be written"):
            await collect(session, "one")
        assert not session.conversation.open_tool_uses
        os.close(log._fd)
        log._fd = fd
        llm._replies[:] = [say("after")]
        await collect(session, "two")

    assert [message.text for message in recorded(tmp_path)] == ["one", "two", "after"]


async def test_failing_tool_beside_a_working_one_does_not_end_the_turn(tmp_path: Path) -> None:
    llm = ScriptedLLM(call(("1", "Fail", {}), ("2", "Look", {})), say("done"))
    async with session_in(tmp_path, llm, looking(), refusing()) as session:
        await collect(session)

    assert [(m.tool_use_id, m.is_error) for m in recorded(tmp_path) if isinstance(m, ToolResultMessage)] == [
        ("1", True),
        ("2", False),
    ]


def results_of(messages: list[Message]) -> dict[str, str]:
    return {message.tool_use_id: message.text for message in messages if isinstance(message, ToolResultMessage)}


async def test_call_after_an_interrupted_one_is_answered_as_not_run(tmp_path: Path) -> None:
    llm = ScriptedLLM(call(("1", "Change", {"seconds": 60.0}), ("2", "Change", {}), ("3", "Look", {})), say("fine"))
    async with session_in(tmp_path, llm, changing(), looking(), hooks=[InterruptNotice()]) as session:
        async with aclosing(session.submit("go")) as events:
            async for event in events:
                if isinstance(event, ToolProgress):
                    session.interrupt()

    assert results_of(recorded(tmp_path)) == {"1": INTERRUPTED, "2": INTERRUPTED_BEFORE, "3": INTERRUPTED_BEFORE}


async def test_interrupt_before_any_call_is_followed_by_the_notice(tmp_path: Path) -> None:
    async def never(question: PermissionQuestion) -> PermissionAnswer:
        session.interrupt()
        await anyio.sleep_forever()
        raise AssertionError

    class Asks(Hook):
        async def before_tool(self, call: ToolCall) -> Decision | None:
            return Ask(Reason("may it?"))

    llm = ScriptedLLM(call(("1", "Change", {})))
    async with session_in(tmp_path, llm, changing(), hooks=[Asks()], ask=never) as session:
        await collect(session)
    llm = ScriptedLLM(say("I look first"))
    async with session_in(tmp_path, llm, hooks=[InterruptNotice()]) as session:
        await collect(session)

    assert results_of(recorded(tmp_path)) == {"1": INTERRUPTED_BEFORE}
    assert [message.cause for message in llm.histories[0] if isinstance(message, SystemReminder)] == ["interrupted"]


async def test_calls_left_open_by_an_error_are_not_called_interrupted(tmp_path: Path) -> None:
    llm = ScriptedLLM(call(("1", "Look", {}), ("2", "Look", {"seconds": 60.0}), ("3", "Change", {})))
    async with session_in(tmp_path, llm, looking(), changing()) as session:
        log = session.agent.transcript.log
        fd, read_only = log._fd, os.open(log_path(tmp_path), 0)
        with pytest.raises(SessionLogError, match="cannot be written"):
            async with aclosing(session.submit("go")) as events:
                async for event in events:
                    if isinstance(event, ToolProgress):
                        log._fd = read_only  # from now on nothing can be recorded
        log._fd = fd
        os.close(read_only)

    assert results_of(recorded(tmp_path)) == {"1": "Look 1 done", "2": ENDED, "3": ENDED_BEFORE}


async def test_crashed_session_knows_the_calls_that_never_began(tmp_path: Path) -> None:
    uses = [("1", "Change", {}), ("2", "Change", {"seconds": 60.0}), ("3", "Look", {}), ("4", "Change", {})]
    crashed = ""
    async with session_in(tmp_path, ScriptedLLM(call(*uses)), looking(), changing()) as session:
        async with aclosing(session.submit("go")) as events:
            async for event in events:
                if isinstance(event, ToolProgress) and event.tool_use_id == "2":
                    crashed = log_path(tmp_path).read_text()
                    break

    log_path(tmp_path).write_text(crashed)

    assert results_of(recorded(tmp_path)) == {
        "1": "Change 1 done",
        "2": NEVER_ANSWERED,
        "3": NEVER_BEGUN,
        "4": NEVER_BEGUN,
    }


async def test_log_without_start_notes_claims_nothing_of_open_calls(tmp_path: Path) -> None:
    async with session_in(tmp_path, ScriptedLLM(call(("1", "Change", {})), say("ok")), changing()) as session:
        await collect(session)
    lines = log_path(tmp_path).read_text().splitlines()
    reply = next(line for line in lines if '"tool_use"' in line)

    old = reply.replace(',"notesStarts":true', "")

    assert old != reply
    log_path(tmp_path).write_text(f"{lines[0]}\n{reply}\n")
    assert results_of(recorded(tmp_path)) == {"1": NEVER_BEGUN}
    log_path(tmp_path).write_text(f"{lines[0]}\n{old}\n")
    assert results_of(recorded(tmp_path)) == {"1": NEVER_ANSWERED}


class Evidence(Hook):
    """Has something to say about each answer."""

    @property
    def verification(self) -> Verification | None:
        return Verification(unverified=["it builds"])


async def test_turn_ends_with_the_evidence_of_a_hook(tmp_path: Path) -> None:
    async with session_in(tmp_path, ScriptedLLM(say("It builds.")), hooks=[Hook(), Evidence()]) as session:
        async with aclosing(session.submit("go")) as events:
            seen = [event async for event in events]

    assert isinstance(seen[-1], TurnEnded)
    assert seen[-1].verification == Verification(unverified=["it builds"])
