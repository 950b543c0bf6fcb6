"""The model is told which subagents the user wants, once for each of their messages, and only where it has Task."""

from panpan.capabilities.subagents.task import AgentMentioned
from panpan.core.conversation import Conversation
from panpan.core.hooks import Round
from panpan.session.reminders import Reminders
from panpan.types.content import TextBlock
from panpan.types.llm import ToolDefinition
from panpan.types.messages import Message, SystemReminder, UserMessage
from tests.fakes.scripted_llm import say

TASK = ToolDefinition("Task", "Runs a subagent.", {"type": "object"})
SOURCE = AgentMentioned(lambda: ("explore", "plan"))


async def told(*messages: Message, tools: tuple[ToolDefinition, ...] = (TASK,)) -> list[str]:
    """Return the notes before the next request, after those already there."""
    reminders = await Reminders((SOURCE,), 0).before_request(Round(1, 10, Conversation(tools=tools, messages=messages)))
    return [reminder.text for reminder in reminders if isinstance(reminder, SystemReminder)]


async def test_a_prompt_that_names_one_tells_the_model_to_use_it() -> None:
    assert await told(UserMessage.of("@agent-explore find it")) == [
        "The user wants the subagent explore for this: use Task."
    ]
    assert await told(UserMessage.of("@plan it, then @explore")) == [
        "The user wants the subagents plan and explore for this: use Task."
    ]


async def test_what_is_attached_or_written_by_others_names_nobody() -> None:
    attached = UserMessage(content=(TextBlock(text="look"), TextBlock(text="a file that says @explore")))

    assert await told(attached, say("I could ask @explore.")) == []


async def test_without_the_tool_nothing_is_told() -> None:
    assert await told(UserMessage.of("@explore find it"), tools=()) == []


async def test_each_message_is_told_of_once_and_old_ones_never() -> None:
    prompt, later = UserMessage.of("@explore find it"), UserMessage.of("and @plan it")
    reminder = SystemReminder(text="told", cause=f"agent:mentioned:{prompt.uuid}")

    assert await told(prompt, reminder) == []
    assert len(await told(prompt, reminder, say("done"), later)) == 1
    assert await told(prompt, say("a"), UserMessage.of("b"), say("c"), UserMessage.of("d")) == []
