"""Subagents that the user mentions with @, as `@explore` or `@agent-explore`: the model is reminded to use them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from panpan.capabilities.subagents.task import TaskTool
from panpan.core.hooks import Round
from panpan.session.reminders import ReminderSource
from panpan.types.attachments import attached_names, find_mentions
from panpan.types.events import known_name
from panpan.types.messages import AssistantMessage, Message, SystemReminder, UserMessage

MENTIONED = "agent:mentioned:"


class AgentMentioned(ReminderSource):
    """Looks for mentions such as `@explore` in what the user says."""

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


PREFIX = "agent-"
"""May stand before the name, so that it can mean nothing else."""


def names_behind_at(agents: Collection[str]) -> frozenset[str]:
    """Return all words behind an @ that mean one of these subagents."""
    return frozenset(agents) | {f"{PREFIX}{name}" for name in agents}


def mentioned_agents(text: str, agents: Collection[str], attached: Collection[str] = ()) -> Sequence[str]:
    """Return the subagents that a text mentions, each once, in any case; names of `attached` files match exactly."""
    if "@" not in text:
        return ()
    names = [mention.name for mention in find_mentions(text)]
    meant = [_meant(name, agents) for name in names if name in agents or name.rstrip("/") not in attached]
    return list(dict.fromkeys(name for name in meant if name in agents))


def _meant(name: str, agents: Collection[str]) -> str:
    if (known := known_name(name, agents)) in agents:
        return known
    has_prefix = name[: len(PREFIX)].lower() == PREFIX
    return known_name(name[len(PREFIX) :], agents) if has_prefix else name


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
