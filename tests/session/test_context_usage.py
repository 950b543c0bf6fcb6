from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from panpan.core.conversation import Conversation
from panpan.session.context_usage import SOURCES, context_usage, used_tokens
from panpan.types.content import Base64Source, ImageBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from panpan.types.llm import ToolDefinition
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, Usage, UserMessage

TOOL = ToolDefinition("Read", "Shows a file.", {"type": "object"})


def reply(text: str, counted: int = 0) -> AssistantMessage:
    return AssistantMessage(content=(TextBlock(text=text),), usage=Usage(input_tokens=counted))


def tokens_of(messages: Sequence[Message], system: str = "", tools: Sequence[ToolDefinition] = ()) -> dict[str, int]:
    usage = context_usage(Conversation(system, tools, messages), 1000)
    return {part.source: part.tokens for part in usage.parts}


def test_context_usage_counts_each_part_for_its_source() -> None:
    use = ToolUseBlock(id="1", name="Read", input={"file_path": "a.py"})
    conversation = [
        UserMessage.of("what is in a.py?"),
        SystemReminder(text="today is Sunday"),
        AssistantMessage(content=(ThinkingBlock(thinking="I have to look"), use)),
        ToolResultMessage(result=ToolResultBlock(tool_use_id="1", content=(TextBlock(text="print()"),))),
        reply("it prints nothing"),
    ]

    tokens = tokens_of(conversation, system="You are an agent.", tools=[TOOL])

    assert list(tokens) == list(SOURCES)
    assert all(count > 0 for count in tokens.values())


def test_context_usage_of_an_empty_source_is_zero() -> None:
    tokens = tokens_of([UserMessage.of("hello")])

    assert {source for source, count in tokens.items() if count} == {"user"}


def test_context_usage_sum_is_the_providers_newest_count() -> None:
    conversation = Conversation("A prompt of some length", [TOOL], [UserMessage.of("x" * 400), reply("y", 777)])

    usage = context_usage(conversation, 1000)

    assert usage.used_tokens == 777
    assert usage.free_tokens == 223
    assert usage.is_counted


def test_context_usage_adds_later_messages_by_length() -> None:
    counted = [UserMessage.of("hello"), reply("hello", 500)]

    usage = context_usage(Conversation(messages=[*counted, UserMessage.of("x" * 400)]), 1000)

    assert usage.used_tokens == 600


def test_context_usage_without_a_count_is_an_estimate() -> None:
    usage = context_usage(Conversation(messages=[UserMessage.of("x" * 400), reply("")]), 1000)

    assert not usage.is_counted
    assert usage.used_tokens == 100


def test_context_usage_counts_a_picture_without_its_bytes() -> None:
    picture = ImageBlock(source=Base64Source(media_type="image/png", data="A" * 4_000_000))

    assert 0 < tokens_of([UserMessage(content=(picture,))])["user"] < 5_000


def test_context_usage_of_an_unknown_window_has_no_share() -> None:
    usage = context_usage(Conversation(messages=[UserMessage.of("x" * 40)]), None)

    assert (usage.used_tokens, usage.free_tokens, usage.share_of(5)) == (10, None, None)


def test_context_usage_of_an_overfull_window_has_nothing_free() -> None:
    assert context_usage(Conversation(messages=[UserMessage.of("x" * 400)]), 10).free_tokens == 0


messages = st.lists(
    st.one_of(
        st.builds(UserMessage.of, st.text()),
        st.builds(SystemReminder, text=st.text()),
        st.builds(reply, st.text(), st.integers(0, 10_000)),
    )
)


@given(messages, st.text())
def test_context_usage_parts_add_up_to_the_status_line(said: list[Message], system: str) -> None:
    conversation = Conversation(system, messages=said)

    usage = context_usage(conversation, 1000)

    assert sum(part.tokens for part in usage.parts) == used_tokens(conversation) == usage.used_tokens
    assert all(part.tokens >= 0 for part in usage.parts)


@given(messages, st.integers(1, 100_000))
def test_context_usage_follows_the_newest_reply(said: list[Message], counted: int) -> None:
    assert used_tokens(Conversation(messages=[*said, reply("done", counted)])) == counted
