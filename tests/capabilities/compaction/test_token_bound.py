"""Whatever was said: the next request is within the limit or the user is told; what is pinned is in it; it is valid."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.capabilities.compaction.auto_compaction import AutoCompaction, Compactor, limits_of
from panpan.capabilities.compaction.settings import CompactionSettings
from panpan.core.conversation import Conversation
from panpan.core.hooks import Hook, Round
from panpan.errors import ContextOverflowError
from panpan.session.context_usage import used_tokens
from panpan.types.content import Base64Source, ImageBlock, TextBlock, ThinkingBlock
from panpan.types.events import Compacted
from panpan.types.messages import AssistantMessage, Message, SystemReminder, UserMessage
from tests.capabilities.compaction.conversations import SUMMARY, conversation_of, conversations, is_paired, replied
from tests.fakes.scripted_llm import ScriptedLLM, say

REFUSAL = ContextOverflowError("too long")


class Todos(Hook):
    async def pinned_reminders(self) -> Sequence[SystemReminder]:
        return [SystemReminder(text="still to do: the tests", cause="todos")]


def to_be_answered(messages: Sequence[Message]) -> list[Message]:
    last = messages[-1]
    return [*messages, UserMessage.of("and now?")] if isinstance(last, AssistantMessage) else list(messages)


async def made_room(
    conversation: Conversation, window: int | None, refusal: ContextOverflowError | None = None
) -> list[str]:
    """Let room be made as before a request, and return what the user is told."""
    told: list[str] = []
    room = AutoCompaction(Compactor(lambda: [Todos()]), CompactionSettings(), lambda: window, told.append)
    llm = ScriptedLLM(say(SUMMARY))
    async for change in room.compact(Round(1, 50, conversation), llm, refusal):
        if isinstance(change, Compacted):
            conversation.compact(change.compaction)
    return told


@settings(max_examples=60, deadline=None)
@given(conversations(), st.sampled_from([4_000, 12_000, 40_000]))
async def test_token_bound_is_met_or_the_user_is_told(messages: list[Message], window: int) -> None:
    conversation = conversation_of(to_be_answered(messages))

    told = await made_room(conversation, window)

    is_within = used_tokens(conversation) <= limits_of(CompactionSettings(), window).request_tokens
    assert is_within or any("nothing more can leave it" in sentence for sentence in told)
    assert is_paired(conversation.sent)
    replies = {id(message) for message in conversation.messages if isinstance(message, AssistantMessage)}
    assert all(id(message) in replies for message in conversation.sent if isinstance(message, AssistantMessage))
    if any(message.cause == "compact:notice" for message in conversation.sent if isinstance(message, SystemReminder)):
        assert any(message.cause == "todos" for message in conversation.sent if isinstance(message, SystemReminder))


@settings(max_examples=40, deadline=None)
@given(conversations(), st.sampled_from([None, 4_000, 40_000]))
async def test_refused_request_becomes_shorter_or_the_turn_ends(messages: list[Message], window: int | None) -> None:
    conversation = conversation_of(to_be_answered(messages))
    before, sent = used_tokens(conversation), list(conversation.sent)

    ending = ""
    try:
        await made_room(conversation, window, REFUSAL)
    except ContextOverflowError as error:
        ending = str(error)

    if ending:
        assert "nothing more can leave it" in ending
        assert "\n" not in ending
    else:
        assert used_tokens(conversation) < before
        assert conversation.sent != sent


async def test_thinking_keeps_its_signature_and_old_pictures_go() -> None:
    picture = ImageBlock(source=Base64Source(media_type="image/png", data="iVBORw0KGgo="))
    thought = ThinkingBlock(thinking="hm " * 400, signature="sealed")
    turns: list[Message] = []
    for number in range(12):
        turns.append(UserMessage(content=(TextBlock(text=f"look at {number}"), picture)))
        reply = replied(f"I see {number}. " + "y" * 3_000)
        turns.append(reply.model_copy(update={"content": (thought, *reply.content)}))
    conversation = conversation_of([*turns, UserMessage.of("and now?")])

    await made_room(conversation, 20_000)

    kept = [message for message in conversation.sent if isinstance(message, AssistantMessage)]
    assert kept
    assert all(message.content[0] is thought for message in kept)
    pictures = sum(picture in message.content for message in conversation.sent if isinstance(message, UserMessage))
    assert 0 < pictures < 12
    assert "look at 0" in str([message.text for message in conversation.sent if isinstance(message, SystemReminder)])
