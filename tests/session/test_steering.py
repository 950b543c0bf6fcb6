"""Messages sent while a turn runs are delivered once and in order, or wait still, however the turn ends."""

from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args

import anyio
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from panpan.capabilities.guards.size_limits import ReplyLimits
from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round
from panpan.errors import BudgetError, PanpanError, ProviderError
from panpan.models.providers.anthropic_request import encode_user_side as anthropic_user_side
from panpan.models.providers.openai_request import OpenAIEncoder
from panpan.models.providers.vendor_profiles import GENERIC
from panpan.session import session as session_module
from panpan.session.session import Session
from panpan.session.turn import Steering
from panpan.types.content import TextBlock, ToolResultBlock
from panpan.types.events import Event, TurnEnded
from panpan.types.messages import AssistantMessage, SystemReminder, ToolResultMessage, UserMessage
from tests.fakes.scripted_llm import ScriptedLLM, call, say
from tests.fakes.session import recorded, session_in
from tests.fakes.tools import looking


def said(messages: Sequence[Any]) -> list[str]:
    return [message.text for message in messages if isinstance(message, UserMessage)]


class Sends(Hook):
    """Sends the texts as soon as the first reply has come, as a user would who types meanwhile."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.session: Session | None = None

    async def after_reply(self, round_: Round, reply: AssistantMessage) -> None:
        while self.texts and self.session is not None:
            self.session.steering.add(self.texts.pop(0))


async def run_turn(session: Session) -> list[Event]:
    for hook in session.agent.model.hooks:
        if isinstance(hook, Sends):
            hook.session = session
    async with aclosing(session.submit("go")) as stream:
        return [event async for event in stream]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_steering_reaches_the_model_after_the_rounds_results(tmp_path: Path, backend: str) -> None:
    llm = ScriptedLLM(call(("1", "Look", {})), say("done"))

    async def main() -> None:
        async with session_in(tmp_path, llm, looking(), hooks=[Sends("first", "second")]) as session:
            events = await run_turn(session)
            assert session.steering.waiting == ()
        assert said(events) == ["first", "second"]

    anyio.run(main, backend=backend)
    kinds = [type(message).__name__ for message in llm.histories[1]]
    assert kinds == ["UserMessage", "AssistantMessage", "ToolResultMessage", "UserMessage", "UserMessage"]
    assert said(recorded(tmp_path)) == ["go", "first", "second"]


async def test_steering_continues_a_turn_that_would_have_ended(tmp_path: Path) -> None:
    llm = ScriptedLLM(say("done"), say("that, too"))

    async with session_in(tmp_path, llm, hooks=[Sends("also this")]) as session:
        events = await run_turn(session)

    assert said(llm.histories[1]) == ["go", "also this"]
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].rounds == 2


async def test_steering_is_taken_back_last_first() -> None:
    steering = Steering()
    picture = UserMessage.of("a picture")
    steering.add("one")
    steering.add(picture)

    assert [message.text for message in steering.waiting] == ["one", "a picture"]
    assert steering.take_last() is picture
    assert steering.take_last() is not None
    assert steering.take_last() is None


async def test_steering_after_the_last_round_waits_for_the_next_turn(tmp_path: Path) -> None:
    llm = ScriptedLLM(say("done"), say("later"))

    async with session_in(tmp_path, llm, hooks=[Sends("too late")], max_rounds=1) as session:
        events = await run_turn(session)
        assert isinstance(events[-1], TurnEnded)
        assert said(session.steering.waiting) == ["too late"]
        assert said(session.conversation.messages) == ["go"]


async def test_steering_waits_if_the_turn_ends_first(tmp_path: Path) -> None:
    class Spent(Hook):
        async def after_round(self, round_: Round, reply: AssistantMessage) -> Sequence[Addition]:
            raise BudgetError("spent")

    async with session_in(tmp_path, ScriptedLLM(say("done")), hooks=[Sends("more"), Spent()]) as session:
        with pytest.raises(BudgetError):
            await run_turn(session)
        assert said(session.steering.waiting) == ["more"]

    assert said(recorded(tmp_path)) == ["go"]


async def test_steering_waits_until_a_cut_reply_is_complete(tmp_path: Path) -> None:
    llm = ScriptedLLM(say("the end is ne", stop_reason="max_tokens"), say("ar"), say("yes"))

    async with session_in(tmp_path, llm, hooks=[Sends("really?"), ReplyLimits()]) as session:
        await run_turn(session)

    assert [type(message).__name__ for message in llm.histories[1]] == [
        "UserMessage",
        "AssistantMessage",
        "SystemReminder",
    ]
    assert said(llm.histories[2]) == ["go", "really?"]


async def test_steering_does_not_answer_a_pause_of_the_server(tmp_path: Path) -> None:
    llm = ScriptedLLM(say("searching", stop_reason="pause_turn"), say("found"), say("yes"))

    async with session_in(tmp_path, llm, hooks=[Sends("really?")]) as session:
        await run_turn(session)

    assert [len(history) for history in llm.histories] == [1, 2, 4]


End = Literal["whole", "interrupt", "error", "left", "limit"]
ADDED_AT = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 3)), max_size=6)


class AtPoints(Hook):
    """Calls something at each point of the loop, in the turn's own task; counts them from 0."""

    def __init__(self, at_point: Callable[[int], None]) -> None:
        self.at_point = at_point
        self.number = -1

    def _pass(self) -> tuple[()]:
        self.number += 1
        self.at_point(self.number)
        return ()

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        return self._pass()

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        return self._pass()

    async def after_reply(self, round_: Round, reply: AssistantMessage) -> None:
        self._pass()

    async def after_round(self, round_: Round, reply: AssistantMessage) -> Sequence[Addition]:
        return self._pass()


@given(
    rounds=st.integers(1, 4),
    added=ADDED_AT,
    end=st.sampled_from(get_args(End)),
    end_at=st.integers(0, 12),
    room=st.sampled_from([1, 64]),
)
@example(rounds=1, added=[(2, 3)], end="left", end_at=5, room=1)  # when the first of three has come
@settings(max_examples=80, deadline=None)
def test_steering_is_delivered_once_in_order_or_waits(
    rounds: int, added: list[tuple[int, int]], end: End, end_at: int, room: int
) -> None:
    """`added`: at which point of the loop, and how many; the turn ends in the given way at the point `end_at`."""
    replies = [call((f"{number}", "Look", {})) for number in range(rounds - 1)]
    replies += [say(f"answer {number}") for number in range(40)]
    texts: list[str] = []

    async def main(root: Path) -> tuple[list[str], list[str], list[str]]:
        def at_point(number: int) -> None:
            for count in [count for at, count in added if at == number]:
                for _ in range(count):
                    texts.append(f"m{len(texts)}")
                    session.steering.add(texts[-1])
            if number == end_at and end == "interrupt":
                session.interrupt()
            if number == end_at and end == "error":
                raise ProviderError("gone")

        max_rounds = 1 + end_at % 4 if end == "limit" else 60
        hooks = [AtPoints(at_point)]
        async with session_in(root, ScriptedLLM(*replies), looking(), hooks=hooks, max_rounds=max_rounds) as session:
            seen = 0
            with suppress(PanpanError):
                async with aclosing(session.submit("go")) as stream:
                    async for _ in stream:
                        seen += 1
                        if end == "left" and seen > end_at:
                            break
            waiting = said(session.steering.waiting)
            return said(session.conversation.messages), waiting, said(recorded(root))

    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(session_module, "_EVENTS_AHEAD", room)  # with room for one, the turn stops at every event
        root = Path(folder) / "workspace"
        root.mkdir()
        delivered, waiting, logged = anyio.run(main, root)

    assert [*delivered, *waiting] == ["go", *texts]
    assert logged == delivered


async def test_steering_kept_out_by_an_interrupt_waits_again(tmp_path: Path) -> None:
    """The loop puts one after the other into the conversation, and may be stopped between two."""
    steering, round_ = Steering(), Round(1, 5, session_in(tmp_path, ScriptedLLM()).conversation)
    for text in ("one", "two", "three"):
        steering.add(text)

    additions = await steering.after_round(round_, say("done"))
    round_.conversation.append(additions[0])
    assert steering.take_last() is None, "what is on its way cannot be taken back"
    steering.add("four")
    await steering.turn_ended(round_.conversation)

    assert said(steering.waiting) == ["two", "three", "four"]


def test_steering_in_a_row_is_one_user_message_in_both_dialects() -> None:
    result = ToolResultMessage(result=ToolResultBlock(tool_use_id="1", content=(TextBlock(text="r"),)))
    row = [result, SystemReminder(text="note"), UserMessage.of("one"), UserMessage.of("two")]

    anthropic = anthropic_user_side(row)
    openai = OpenAIEncoder(GENERIC).encode_user_side(row)

    assert anthropic is not None
    assert openai is not None
    assert anthropic.count(b'"role":"user"') == openai.count(b'"role":"user"') == 1
    assert anthropic.index(b"tool_result") < anthropic.index(b"one") < anthropic.index(b"two")
    assert openai.index(b'"role":"tool"') < openai.index(b"one") < openai.index(b"two")
