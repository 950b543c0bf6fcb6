"""Reminds the model of the subagents that the user wants for what he has just said."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from panpan.capabilities.subagents.agent_mentions import mentioned_agents
from panpan.capabilities.subagents.task import TaskTool
from panpan.core.hooks import Round
from panpan.session.reminders.source import ReminderSource
from panpan.types.attachments import attached_names
from panpan.types.messages import AssistantMessage, Message, SystemReminder, UserMessage

MENTIONED = "agent:mentioned:"
"""Begins the cause; behind it stands the message."""


class AgentMentioned(ReminderSource):
    """Looks for mentions such as `@explore` in what the user says.

    Args:
        agents: Returns the names of the subagents that there are.
    """

    def __init__(self, agents: Callable[[], Collection[str]]) -> None:
        self._agents = agents

    async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
        conversation = round_.conversation
        if all(tool.name != TaskTool.name for tool in conversation.tools):
            return ()
        return list(self._told(_newest(conversation.messages)))

    def _told(self, messages: Iterable[UserMessage]) -> Iterator[SystemReminder]:
        for message in messages:
            text = message.typed
            if "@" in text and (names := mentioned_agents(text, self._agents(), attached_names(message))):
                which = f"subagent {names[0]}" if len(names) == 1 else f"subagents {' and '.join(names)}"
                yield SystemReminder(
                    text=f"The user wants the {which} for this: use Task.", cause=f"{MENTIONED}{message.uuid}"
                )


def _newest(messages: Sequence[Message]) -> Iterator[UserMessage]:
    """Yield what the user said since the last reply but one: a message may have come right before the last one."""
    replies = 0
    for message in reversed(messages):
        if isinstance(message, UserMessage):
            yield message
        elif isinstance(message, AssistantMessage):
            replies += 1
            if replies == 2:
                return
