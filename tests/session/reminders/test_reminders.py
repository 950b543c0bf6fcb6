"""Reminders are told once, the more important first, not too many, and behind all that was sent before."""

from collections.abc import Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.core.conversation import Conversation
from panpan.core.hooks import Round, ToolCall
from panpan.session.reminders import MOST_AT_ONCE, MOST_CHARS, Reminders, ReminderSource
from panpan.session.session import Session
from panpan.types.events import Output
from panpan.types.messages import ReminderPriority, SystemReminder, ToolResultMessage, UserMessage
from tests.capabilities.guards.hook_fixtures import reply
from tests.fakes.scripted_llm import ScriptedLLM, call, say
from tests.fakes.session import recorded, session_in
from tests.fakes.tools import looking


def reminder(cause: str, priority: ReminderPriority = "normal") -> SystemReminder:
    return SystemReminder(text=f"about {cause}", cause=cause, priority=priority)


class Source(ReminderSource):
    """Says the same before each request, and keeps what it hears."""

    def __init__(self, *reminders: SystemReminder) -> None:
        self.reminders_now = list(reminders)
        self.heard: list[str] = []

    async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
        return self.reminders_now

    async def turn_started(self, conversation: Conversation) -> None:
        self.heard.append("turn started")

    async def after_tool(self, call: ToolCall, output: Output) -> None:
        self.heard.append(f"{call.tool.name} {output.text}")

    async def turn_ended(self, conversation: Conversation) -> None:
        self.heard.append("turn ended")

    async def history_replaced(self, conversation: Conversation) -> None:
        self.heard.append("history replaced")


class Failing(ReminderSource):
    """A source of a plug-in that has a bug."""

    async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
        raise RuntimeError("no")

    async def turn_started(self, conversation: Conversation) -> None:
        raise RuntimeError("no")

    async def after_tool(self, call: ToolCall, output: Output) -> None:
        raise RuntimeError("no")

    async def turn_ended(self, conversation: Conversation) -> None:
        raise RuntimeError("no")

    async def history_replaced(self, conversation: Conversation) -> None:
        raise RuntimeError("no")


async def told(reminders: Reminders, conversation: Conversation) -> list[str]:
    """Return the causes of what is told before a request, which then is in the conversation."""
    additions = await reminders.before_request(Round(1, 10, conversation))
    for addition in additions:
        conversation.append(addition)
    return [addition.cause for addition in additions if isinstance(addition, SystemReminder)]


async def run(session: Session) -> None:
    async with aclosing(session.submit("go")) as events:
        async for _ in events:
            pass


def conversation() -> Conversation:
    return Conversation(messages=[UserMessage.of("go")])


async def test_lasting_reminder_is_told_once_even_after_resuming() -> None:
    source, talk = Source(reminder("file:changed:1"), reminder("file:changed:1")), conversation()
    reminders = Reminders([source], 20)

    assert [await told(reminders, talk) for _ in range(3)] == [["file:changed:1"], [], []]
    assert await told(Reminders([source], 20), Conversation(messages=talk.messages)) == []

    source.reminders_now.append(reminder("file:changed:2"))
    assert await told(reminders, talk) == ["file:changed:2"]


async def test_reminder_lost_by_rewinding_is_told_again() -> None:
    source, talk = Source(reminder("session:long")), conversation()
    reminders = Reminders([source], 1)
    await told(reminders, talk)

    talk.replace([UserMessage.of("go")])
    await reminders.history_replaced(talk)

    assert await told(reminders, talk) == ["session:long"]


async def test_important_reminders_come_first_if_room_is_short() -> None:
    source = Source(reminder("a:1", "low"), reminder("a:2", "normal"), reminder("a:3", "high"), reminder("a:4", "must"))

    assert await told(Reminders([source], 2), conversation()) == ["a:4", "a:3", "a:2"]


async def test_reminder_limit_spans_the_session_and_spares_musts() -> None:
    source, talk = Source(), conversation()
    causes: list[str] = []
    for number in range(30):
        source.reminders_now = [reminder(f"a:{number}"), reminder(f"m:{number}", "must")]
        resumed = Reminders([source], 20)  # as if each request were made by another process
        causes += await told(resumed, talk)

    assert [cause for cause in causes if cause[0] == "a"] == [f"a:{number}" for number in range(20)]
    assert [cause for cause in causes if cause[0] == "m"] == [f"m:{number}" for number in range(30)]


@pytest.mark.parametrize(("most", "low"), [(20, 10), (3, 2), (1, 1)])
async def test_low_priority_reminders_leave_half_of_the_room(most: int, low: int) -> None:
    source, talk = Source(*(reminder(f"low:{number}", "low") for number in range(most))), conversation()
    reminders = Reminders([source], most)
    assert len(await told(reminders, talk)) == low

    source.reminders_now += [reminder(f"high:{number}", "high") for number in range(most)]

    assert await told(reminders, talk) == [f"high:{number}" for number in range(most - low)]


async def test_reminder_limit_of_zero_leaves_musts() -> None:
    source = Source(reminder("a:1", "high"), reminder("m:1", "must"))

    assert await told(Reminders([source], 0), conversation()) == ["m:1"]


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["must", "high", "normal", "low"])), max_size=5)),
    st.integers(0, 6),
)
async def test_reminders_never_repeat_a_cause_or_pass_the_limit(
    rounds: list[list[tuple[int, ReminderPriority]]], most: int
) -> None:
    source, talk = Source(), conversation()
    reminders = Reminders([source], most)
    for round_ in rounds:
        source.reminders_now = [reminder(f"a:{number}", priority) for number, priority in round_]
        await told(reminders, talk)

    added = [message for message in talk.messages if isinstance(message, SystemReminder)]
    assert len({one.cause for one in added}) == len(added)
    assert sum(one.priority != "must" for one in added) <= most


async def test_reminders_wait_until_a_cut_reply_is_complete() -> None:
    source, talk = Source(reminder("a:1")), conversation()
    reminders = Reminders([source], 20)
    talk.append(reply("half a sen", stop_reason="max_tokens"))
    talk.append(SystemReminder(text="Go on exactly where it stops.", cause="reply:cut"))

    assert await told(reminders, talk) == []

    talk.append(reply("tence."))
    talk.append(UserMessage.of("and now?"))
    assert await told(reminders, talk) == ["a:1"]


async def test_failing_source_loses_only_its_own_reminders(tmp_path: Path) -> None:
    reminders = Reminders([Failing(), Source(reminder("plugin:1"))], 20)
    llm = ScriptedLLM(call(("1", "Look", {})), say("done"))

    async with session_in(tmp_path, llm, looking(), hooks=[reminders]) as session:
        await run(session)
        messages = list(session.conversation.messages)
        await session.rewind(messages[0].uuid)

    assert [one.cause for one in messages if isinstance(one, SystemReminder)] == ["plugin:1"]
    assert [one.is_error for one in messages if isinstance(one, ToolResultMessage)] == [False]


class Flooding(ReminderSource):
    """A source of a plug-in that never has enough."""

    async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
        return [reminder(f"flood:{number}", "must") for number in range(1_000)]


class Unfinished(ReminderSource):
    """A source of a plug-in that forgot what it owes, or fails while it is read."""

    def __init__(self, said: Any) -> None:
        self._said = said

    async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
        return self._said  # type: ignore[no-any-return]


def failing_on_the_way() -> Iterator[SystemReminder]:
    yield reminder("a:1")
    raise RuntimeError("no")


async def test_flooding_source_is_heard_in_batches() -> None:
    reminders, talk = Reminders([Flooding(), Source(reminder("a:1"))], 20), conversation()

    assert await told(reminders, talk) == [*(f"flood:{number}" for number in range(MOST_AT_ONCE)), "a:1"]
    assert await told(reminders, talk) == [f"flood:{number}" for number in range(MOST_AT_ONCE, 2 * MOST_AT_ONCE)]


async def test_reminder_length_is_bounded() -> None:
    long = SystemReminder(text="x" * (2 * MOST_CHARS), cause="a:1")

    (told_,) = await Reminders([Source(long)], 20).before_request(Round(1, 10, conversation()))

    assert isinstance(told_, SystemReminder)
    assert len(told_.text) == MOST_CHARS + 2


@pytest.mark.parametrize("said", [None, ["words"], failing_on_the_way()], ids=["nothing", "words", "an iterator"])
async def test_source_with_a_wrong_result_loses_only_its_own_reminders(said: object) -> None:
    reminders = Reminders([Unfinished(said), Source(reminder("b:1"))], 20)

    assert await told(reminders, conversation()) == ["b:1"]


async def test_sources_hear_of_turns_calls_and_rewinds(tmp_path: Path) -> None:
    source = Source()
    llm = ScriptedLLM(call(("1", "Look", {})), say("done"))
    session = session_in(tmp_path, llm, looking(), hooks=[Reminders([source], 20)])

    async with session:
        await run(session)
        await session.rewind(session.conversation.messages[0].uuid)

    assert source.heard == ["turn started", "Look Look 1 done", "turn ended", "history replaced"]


async def test_request_prefix_never_moves(tmp_path: Path) -> None:
    llm = ScriptedLLM(*(call((str(number), "Look", {})) for number in range(8)), say("done"), say("again"))

    class Every(ReminderSource):
        async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
            return [reminder(f"a:{len(round_.conversation.messages)}", "high")]

    async with session_in(tmp_path, llm, looking(), hooks=[Reminders([Every()], 5)]) as session:
        await run(session)
        await run(session)

    first, *others = llm.requests
    assert all((one.system, one.tools) == (first.system, first.tools) for one in others)
    for before, after in zip(llm.histories, llm.histories[1:], strict=False):
        assert after[: len(before)] == before
    assert sum(isinstance(message, SystemReminder) for message in llm.histories[-1]) == 5
    assert recorded(tmp_path) == session.conversation.messages


@pytest.mark.parametrize("priority", ["must", "high", "normal", "low"])
async def test_log_keeps_the_priority_of_a_reminder(priority: ReminderPriority, tmp_path: Path) -> None:
    source = Source(reminder("a:1", priority))
    async with session_in(tmp_path, ScriptedLLM(say("done")), hooks=[Reminders([source], 20)]) as session:
        await run(session)

    (kept,) = [message for message in recorded(tmp_path) if isinstance(message, SystemReminder)]
    assert (kept.priority, kept.cause, kept.category) == (priority, "a:1", "a")
