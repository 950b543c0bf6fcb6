"""The estimate learns from what the provider counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.core.conversation import Conversation
from panpan.session.context_usage import calibration, context_usage, measured_usage, uncounted_tokens, used_tokens
from panpan.types.content import TextBlock
from panpan.types.messages import AssistantMessage, Compaction, Message, Usage, UserMessage
from tests.fakes.scripted_llm import ScriptedLLM


def reply(context: int, output: int = 10) -> AssistantMessage:
    usage = Usage(input_tokens=context - output, output_tokens=output)
    return AssistantMessage(content=(TextBlock(text="ok"),), usage=usage)


def counted_at(factor: float, rounds: int = 5, chars: int = 4_000) -> list[Message]:
    """A conversation of which the provider counts `factor` times what its length says."""
    messages: list[Message] = []
    total = 1_000
    for _ in range(rounds):
        messages.append(UserMessage.of("x" * chars))
        total += round(factor * chars / 4) + 10
        messages.append(reply(total))
    return messages


@pytest.mark.parametrize("factor", [0.6, 1.0, 1.5, 2.5])
def test_calibration_is_the_providers_factor_between_replies(factor: float) -> None:
    assert calibration(counted_at(factor)) == pytest.approx(factor, rel=0.02)


def test_uncounted_tokens_follow_the_newest_rate() -> None:
    messages = counted_at(1.5)
    conversation = Conversation(messages=[*messages, UserMessage.of("y" * 4_000)])
    newest = messages[-1]
    assert isinstance(newest, AssistantMessage)

    assert used_tokens(conversation) == pytest.approx(newest.usage.context_tokens + 1_500, rel=0.02)
    assert uncounted_tokens(conversation) == pytest.approx(1_500, rel=0.02)
    assert context_usage(conversation, None).used_tokens == used_tokens(conversation)


def test_calibration_ignores_a_few_words() -> None:
    assert calibration(counted_at(2.5, chars=40)) == 1.0
    assert calibration([]) == 1.0


@given(st.lists(st.tuples(st.integers(0, 9_000), st.integers(0, 10**6)), max_size=30))
def test_calibration_stays_sensible_for_any_counts(rounds: list[tuple[int, int]]) -> None:
    messages = [one for chars, count in rounds for one in (UserMessage.of("x" * chars), reply(count, 0))]

    assert 0.5 <= calibration(messages) <= 3.0


def test_counts_before_a_compaction_do_not_count_after_it() -> None:
    conversation = Conversation(messages=counted_at(1.0))
    last = conversation.messages[-1]
    conversation.compact(Compaction("auto", last.uuid, 6_000, 700, kept_from=last.uuid))
    assert used_tokens(conversation) == 700

    conversation.append(UserMessage.of("z" * 400))
    assert used_tokens(conversation) == 800

    conversation.append(reply(850))
    assert used_tokens(conversation) == 850


async def test_exact_count_is_the_sum() -> None:
    conversation = Conversation(messages=counted_at(1.0))

    exact = await measured_usage(conversation, ScriptedLLM(exact_tokens=4_321), 10_000)
    estimated = await measured_usage(conversation, ScriptedLLM(), 10_000)

    assert (exact.used_tokens, exact.is_exact) == (4_321, True)
    assert (estimated.used_tokens, estimated.is_exact) == (used_tokens(conversation), False)
