from panpan.capabilities.guards.size_limits import InterruptNotice
from panpan.core.conversation import INTERRUPTED, Conversation, error_result
from panpan.types.messages import UserMessage
from tests.capabilities.guards.hook_fixtures import reply


def told(*messages: object) -> Conversation:
    return Conversation(messages=[UserMessage.of("go"), *messages, UserMessage.of("next")])  # type: ignore[list-item]


async def test_interrupt_notice_begins_only_the_next_turn() -> None:
    hook = InterruptNotice()
    await hook.interrupted(Conversation())

    first = await hook.turn_started(told(reply("a")))
    second = await hook.turn_started(told(reply("a")))

    assert [addition.cause for addition in first] == ["interrupted"]
    assert list(second) == []


async def test_interrupt_notice_follows_a_resumed_interrupted_reply() -> None:
    assert await InterruptNotice().turn_started(told(reply("a", stop_reason="interrupted")))


async def test_interrupt_notice_follows_a_resumed_interrupted_call() -> None:
    assert await InterruptNotice().turn_started(told(reply(has_tool=True), error_result("1", INTERRUPTED)))


async def test_interrupt_further_back_is_not_told_again() -> None:
    history = (reply(has_tool=True), error_result("1", INTERRUPTED), UserMessage.of("go on"), reply("done"))

    assert list(await InterruptNotice().turn_started(told(*history))) == []


async def test_new_session_has_nothing_to_tell() -> None:
    assert list(await InterruptNotice().turn_started(Conversation(messages=[UserMessage.of("go")]))) == []
