"""The history is valid to send, whatever was interrupted, torn or repeated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.core.conversation import NEVER_ANSWERED, NEVER_BEGUN, Conversation, error_result, repair_history
from panpan.types.content import TextBlock, ToolResultBlock
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, UserMessage
from tests.fakes.scripted_llm import call, say


def result(tool_use_id: str, text: str = "done") -> ToolResultMessage:
    return ToolResultMessage(result=ToolResultBlock(tool_use_id=tool_use_id, content=(TextBlock(text=text),)))


def assert_valid(messages: list[Message]) -> None:
    """The rule, stated apart from the code: each call answered once, in the results right after its reply."""
    seen: set[str] = set()
    position = 0
    while position < len(messages):
        message = messages[position]
        position += 1
        assert not isinstance(message, ToolResultMessage), "a result that answers nothing before it"
        if isinstance(message, AssistantMessage):
            expected = [use.id for use in message.tool_uses]
            assert not seen & set(expected)
            assert len(set(expected)) == len(expected)
            seen |= set(expected)
            answers = messages[position : position + len(expected)]
            assert sorted(m.tool_use_id for m in answers if isinstance(m, ToolResultMessage)) == sorted(expected)
            position += len(expected)


def test_repair_keeps_a_valid_history() -> None:
    history: list[Message] = [
        UserMessage.of("fix it"),
        call(("1", "Look", {}), ("2", "Look", {})),
        result("1"),
        result("2"),
        SystemReminder(text="hurry"),
        say("done"),
    ]

    assert list(repair_history(history)) == history


def test_repair_tells_calls_that_never_began_apart() -> None:
    history = [UserMessage.of("go"), call(("1", "Change", {}), ("2", "Change", {}), ("3", "Look", {})), result("3")]

    fixed = list(repair_history(history, never_begun={"2", "3"}))

    assert [m.text for m in fixed if isinstance(m, ToolResultMessage)] == [NEVER_ANSWERED, NEVER_BEGUN, "done"]


def test_repair_answers_an_open_call_as_never_answered() -> None:
    history = [UserMessage.of("go"), call(("1", "Look", {}), ("2", "Change", {})), result("1")]

    fixed = list(repair_history(history))

    assert fixed[:3] == history
    assert isinstance(fixed[3], ToolResultMessage)
    assert (fixed[3].tool_use_id, fixed[3].text, fixed[3].is_error) == ("2", NEVER_ANSWERED, True)


def test_repair_drops_orphans_and_second_results() -> None:
    reply = call(("1", "Look", {}))

    fixed = list(
        repair_history([result("0"), reply, result("1", "first"), result("1", "second"), say("ok"), result("9")])
    )

    assert [m.text for m in fixed if isinstance(m, ToolResultMessage)] == ["first"]


def test_repair_moves_a_late_result_to_its_call() -> None:
    late = result("1")

    fixed = list(repair_history([call(("1", "Look", {})), UserMessage.of("and?"), late]))

    assert fixed[1] == late
    assert isinstance(fixed[2], UserMessage)


def test_repair_makes_repeated_ids_unique_with_their_results() -> None:
    fixed = list(
        repair_history(
            [call(("1", "Look", {})), result("1", "a"), call(("1", "Look", {})), result("1", "b"), say("ok")]
        )
    )

    assert_valid(fixed)
    assert [m.text for m in fixed if isinstance(m, ToolResultMessage)] == ["a", "b"]


ids = st.sampled_from(["1", "2", "3", ""])
messages = st.one_of(
    st.just("hello").map(UserMessage.of),
    st.just(SystemReminder(text="mind")),
    st.just(say("ok")),
    ids.map(result),
    st.lists(ids, min_size=1, max_size=3).map(lambda wanted: call(*((id_, "Look", {}) for id_ in wanted))),
)


@given(st.lists(messages, max_size=12))
def test_repair_is_valid_appendable_and_idempotent(
    history: list[Message],
) -> None:
    fixed = list(repair_history(history))

    assert_valid(fixed)
    assert Conversation(messages=fixed).messages == fixed
    assert list(repair_history(fixed)) == fixed


@pytest.mark.parametrize(
    ("before", "message"),
    [
        ([], result("1")),
        ([call(("1", "Look", {}))], UserMessage.of("next")),
        ([call(("1", "Look", {})), result("1")], result("1")),
        ([call(("1", "Look", {})), result("1")], call(("1", "Look", {}))),
    ],
    ids=["orphan result", "open call", "second result", "id taken"],
)
def test_append_refuses_messages_that_break_the_history(before: list[Message], message: Message) -> None:
    conversation = Conversation(messages=before)

    with pytest.raises(ValueError, match=r"tool"):
        conversation.append(message)

    assert conversation.messages == before


def test_conversation_awaits_the_model_unless_a_reply_is_final() -> None:
    conversation = Conversation()
    turns = [conversation.awaits_model]
    for message in (
        UserMessage.of("go"),
        call(("1", "Look", {})),
        error_result("1", "no"),
        say("wait", stop_reason="pause_turn"),
        say("done"),
    ):
        conversation.append(message)
        turns.append(conversation.awaits_model)

    assert turns == [False, True, False, True, True, False]
