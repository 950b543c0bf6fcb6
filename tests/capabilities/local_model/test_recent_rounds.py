"""Omissions from a request that does not fit, over conversations of all kinds."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.capabilities.local_model.embedded import KEPT_SHARE, RecentRounds, room_tokens, tokens_of
from panpan.core.conversation import Conversation
from panpan.types.content import TextBlock, ToolResultBlock, ToolUseBlock
from panpan.types.llm import ToolDefinition
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, UserMessage

Round = list[Message]


def answer(text: str = "done") -> Round:
    return [AssistantMessage(content=(TextBlock(text=text),))]


def calls(identity: str, *results: str) -> Round:
    uses = tuple(ToolUseBlock(id=f"{identity}-{n}", name="Read", input={"file_path": "a"}) for n in range(len(results)))
    answers = [
        ToolResultMessage(result=ToolResultBlock(tool_use_id=use.id, content=(TextBlock(text=text),)))
        for use, text in zip(uses, results, strict=True)
    ]
    return [AssistantMessage(content=uses, stop_reason="tool_use"), *answers]


def words(text: str) -> Round:
    return [UserMessage.of(text)]


@st.composite
def conversations(draw: st.DrawFn) -> list[Round]:
    """Rounds of a conversation that the user begins, each with the messages that belong together."""
    text = st.integers(0, 60).map(lambda size: "word " * size)
    rounds: list[Round] = [words(draw(text))]
    for number in range(draw(st.integers(0, 12))):
        match draw(st.sampled_from(["words", "answer", "calls", "reminder"])):
            case "words":
                rounds.append(words(draw(text)))
            case "answer":
                rounds.append(answer(draw(text)))
            case "calls":
                rounds.append(calls(f"c{number}", *draw(st.lists(text, min_size=1, max_size=3))))
            case "reminder":
                rounds[-1].append(SystemReminder(text=draw(text)))
    return rounds


def flat(rounds: Sequence[Round]) -> list[Message]:
    return [message for round_ in rounds for message in round_]


def said_by_user(messages: Sequence[Message]) -> list[UserMessage]:
    return [message for message in messages if isinstance(message, UserMessage)]


@given(conversations(), st.integers(20, 600))
def test_kept_rounds_are_valid_and_begin_with_the_user(rounds: list[Round], room: int) -> None:
    kept = RecentRounds(room).of(flat(rounds))

    Conversation(messages=kept)  # raises where a result has no call, or a call no result
    assert isinstance(kept[0], UserMessage)


@given(conversations(), st.integers(20, 600))
def test_kept_rounds_omit_the_oldest_but_never_the_newest(rounds: list[Round], room: int) -> None:
    messages = flat(rounds)

    kept = RecentRounds(room).of(messages)

    starts = [sum(map(len, rounds[:number])) for number in range(len(rounds))]
    ends = [messages[start:] for start in starts]
    assert kept in ends or kept[1:] in ends
    assert said_by_user(kept)[-1] == said_by_user(messages)[-1]
    assert kept[-len(rounds[-1]) :] == rounds[-1]
    if kept not in ends:  # then what was said before the oldest round that is kept stands before it
        assert kept[0] == said_by_user(messages[: len(messages) - len(kept) + 1])[-1]


@given(conversations(), st.integers(20, 600))
def test_kept_rounds_fit_if_possible(rounds: list[Round], room: int) -> None:
    messages = flat(rounds)

    kept = RecentRounds(room).of(messages)

    if tokens_of(messages) <= room:
        assert kept == messages
    elif tokens_of(kept) > room:  # only where the newest round alone is too much
        assert kept[-len(rounds[-1]) :] == rounds[-1]
        assert len(kept) <= len(rounds[-1]) + 1


@given(conversations(), st.integers(20, 600))
def test_omitted_rounds_stay_omitted(rounds: list[Round], room: int) -> None:
    recent = RecentRounds(room)
    before: list[Message] = []
    left_out_before = 0
    for number in range(1, len(rounds) + 1):
        messages = flat(rounds[:number])

        kept = recent.of(messages)

        left_out = len(messages) - len(kept) + (kept != messages[-len(kept) :])
        assert left_out >= left_out_before
        if left_out == left_out_before:
            assert kept[: len(before)] == before  # the request grew at its end only
        else:  # room for what follows was made at once, unless the newest round alone is too much
            assert tokens_of(kept) <= KEPT_SHARE * room or len(kept) <= len(rounds[number - 1]) + 1
        before, left_out_before = kept, left_out


def test_omission_is_generous_so_that_the_prefix_stays() -> None:
    recent = RecentRounds(1_000)
    rounds = [words("go")]
    firsts = []
    for number in range(60):
        rounds.append(calls(f"c{number}", "result " * 20))
        firsts.append(recent.of(flat(rounds))[1].uuid)

    changes = sum(first != second for first, second in pairwise(firsts))
    assert 2 <= changes <= 60 / 4


def test_table_of_numbers_counts_for_more_than_prose() -> None:
    prose, table, chinese = (tokens_of(words(text)) for text in ("word " * 100, "12345" * 100, "请读取这" * 125))

    assert table > 4 * prose
    assert chinese > 4 * prose


@pytest.mark.parametrize("size", [0, 100_000])
def test_prompt_that_can_never_fit_is_sent_alone(size: int) -> None:
    messages = [*words("first"), *answer(), *words("x " * size), *answer(), *words("y " * 100_000)]

    assert RecentRounds(100).of(messages) == messages[-1:]


def test_empty_conversation_stays_empty() -> None:
    assert RecentRounds(100).of([]) == []


def test_room_is_left_by_reply_prompt_and_tools() -> None:
    tool = ToolDefinition("Read", "Show a file.", {"type": "object"})

    assert room_tokens(8_000, 1_000, "", ()) == 7_000
    assert 6_900 < room_tokens(8_000, 1_000, "Be brief.", (tool,)) < 6_990
