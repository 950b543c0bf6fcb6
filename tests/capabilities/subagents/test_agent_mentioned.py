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


async def test_named_agent_is_suggested_to_the_model() -> None:
    assert await told(UserMessage.of("@agent-explore find it")) == [
        "The user wants the subagent explore for this: use Task."
    ]
    assert await told(UserMessage.of("@plan it, then @explore")) == [
        "The user wants the subagents plan and explore for this: use Task."
    ]


async def test_attached_or_foreign_text_names_no_agent() -> None:
    attached = UserMessage(content=(TextBlock(text="look"), TextBlock(text="a file that says @explore")))

    assert await told(attached, say("I could ask @explore.")) == []


async def test_mentions_need_the_task_tool() -> None:
    assert await told(UserMessage.of("@explore find it"), tools=()) == []


async def test_mention_is_told_once_for_each_new_message() -> None:
    prompt, later = UserMessage.of("@explore find it"), UserMessage.of("and @plan it")
    reminder = SystemReminder(text="told", cause=f"agent:mentioned:{prompt.uuid}")

    assert await told(prompt, reminder) == []
    assert len(await told(prompt, reminder, say("done"), later)) == 1
    assert await told(prompt, say("a"), UserMessage.of("b"), say("c"), UserMessage.of("d")) == []
