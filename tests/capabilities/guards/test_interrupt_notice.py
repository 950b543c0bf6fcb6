from panpan.capabilities.guards.size_limits import InterruptNotice
from panpan.core.conversation import INTERRUPTED, Conversation, error_result
from panpan.types.messages import UserMessage
from tests.capabilities.guards.hook_fixtures import reply


def told(*messages: object) -> Conversation:
    return Conversation(messages=[UserMessage.of("go"), *messages, UserMessage.of("next")])  # type: ignore[list-item]


async def test_the_turn_after_an_interrupt_begins_with_a_notice_and_the_next_does_not() -> None:
    hook = InterruptNotice()
    await hook.interrupted(Conversation())

    first = await hook.turn_started(told(reply("a")))
    second = await hook.turn_started(told(reply("a")))

    assert [addition.cause for addition in first] == ["interrupted"]
    assert list(second) == []


async def test_a_resumed_session_knows_that_its_last_reply_was_interrupted() -> None:
    assert await InterruptNotice().turn_started(told(reply("a", stop_reason="interrupted")))


async def test_a_resumed_session_knows_that_its_last_call_was_interrupted() -> None:
    assert await InterruptNotice().turn_started(told(reply(has_tool=True), error_result("1", INTERRUPTED)))


async def test_an_interrupt_further_back_is_not_told_again() -> None:
    history = (reply(has_tool=True), error_result("1", INTERRUPTED), UserMessage.of("go on"), reply("done"))

    assert list(await InterruptNotice().turn_started(told(*history))) == []


async def test_a_new_session_has_nothing_to_tell() -> None:
    assert list(await InterruptNotice().turn_started(Conversation(messages=[UserMessage.of("go")]))) == []
