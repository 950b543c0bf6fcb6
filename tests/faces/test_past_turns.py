"""Events of an old conversation that are shown again, and their beginning."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from panpan.faces.turn_text import LAST_TURNS, MAX_CHARS, beginning_of_last_turns, past_events, task_end_told
from panpan.types.content import TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from panpan.types.events import BlockFinished, BlockStarted, TextDelta, ThinkingDelta
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, UserMessage


def reply(text: str, *calls: str) -> AssistantMessage:
    uses = (ToolUseBlock(id=call, name="Bash", input={}) for call in calls)
    return AssistantMessage(content=(TextBlock(text=text), *uses))


def result(call: str) -> ToolResultMessage:
    return ToolResultMessage(result=ToolResultBlock(tool_use_id=call, content=(TextBlock(text="x" * 9_000),)))


def turn(number: int, rounds: int = 0, chars: int = 10) -> list[Message]:
    """Return a turn that calls two tools in each round."""
    messages: list[Message] = [UserMessage.of(f"prompt {number}"), SystemReminder(text="a notice")]
    for each in range(rounds):
        calls = [f"{number}-{each}-{name}" for name in "ab"]
        messages += [reply("y" * chars, *calls), *map(result, calls)]
    return [*messages, reply("z" * chars)]


def conversation(*turns: tuple[int, int]) -> list[Message]:
    return [message for number, (rounds, chars) in enumerate(turns) for message in turn(number, rounds, chars)]


def prompts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages if isinstance(message, UserMessage)]


def test_end_of_a_background_task_is_shown() -> None:
    told = SystemReminder(text="Background task 3fa80001: finished\nIt was: \x1b[2Jmake\nmore", cause="task:3fa80001")
    still = SystemReminder(text="Background task 3fa80002 still runs", cause="task:3fa80002:running")

    assert list(past_events([still, told])) == [told]
    assert task_end_told(told).startswith("Background task 3fa80001: finished. It was: ")
    assert "\x1b" not in task_end_told(told)
    assert task_end_told(UserMessage.of("Background task 3fa80001: finished")) == ""


def test_last_turns_of_thousands_are_shown() -> None:
    messages = conversation(*[(1, 10)] * 3_000)

    shown = messages[beginning_of_last_turns(messages) :]

    assert prompts(shown) == ["prompt 2997", "prompt 2998", "prompt 2999"]
    assert len(prompts(shown)) == LAST_TURNS


def test_turn_of_thousands_of_rounds_shows_only_its_end() -> None:
    messages = conversation((3_000, 100))

    assert len(messages[beginning_of_last_turns(messages) :]) < 100


def test_answer_of_any_length_is_shown() -> None:
    messages = [*turn(1), *turn(2, chars=2 * MAX_CHARS)]

    assert messages[beginning_of_last_turns(messages) :] == messages[-1:]


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from([1, 3_000, 30_000])), max_size=6))
def test_result_is_shown_behind_its_call(turns: list[tuple[int, int]]) -> None:
    messages = conversation(*turns)

    shown = messages[beginning_of_last_turns(messages) :]

    called = {use.id for message in shown if isinstance(message, AssistantMessage) for use in message.tool_uses}
    assert {message.tool_use_id for message in shown if isinstance(message, ToolResultMessage)} == called
    assert bool(shown) is bool(messages)


def test_reply_comes_as_before_and_notices_do_not() -> None:
    thought, said = ThinkingBlock(thinking="hm"), TextBlock(text="yes")
    answer = AssistantMessage(content=(thought, said))
    prompt = UserMessage.of("really?")

    assert list(past_events([prompt, SystemReminder(text="a notice"), answer])) == [
        prompt,
        BlockStarted(0, "thinking"),
        ThinkingDelta(0, "hm"),
        BlockFinished(0, thought),
        BlockStarted(1, "text"),
        TextDelta(1, "yes"),
        BlockFinished(1, said),
        answer,
    ]
