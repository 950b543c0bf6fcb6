"""Task: give work to a subagent; also to one that the user names with an @.

The rule: a subagent may do what its parent and its own definition both allow, and each of its calls is decided about by
itself; the call that starts it needs no permission of its own.
"""

from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from panpan.core.effects import Agent, Effects
from panpan.core.hooks import Round
from panpan.core.tool import Tool, ToolContext
from panpan.session.reminders import ReminderSource
from panpan.system.text.terminal_text import clean_line
from panpan.types.agent import AgentDefinition, Isolation
from panpan.types.attachments import attached_names, find_mentions
from panpan.types.content import Frozen
from panpan.types.dataclass import dataclass
from panpan.types.events import ToolYield, known_name
from panpan.types.llm import ToolDefinition
from panpan.types.messages import AssistantMessage, Message, SystemReminder, UserMessage

if TYPE_CHECKING:
    from panpan.capabilities.subagents.runner import SubagentRunner


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
"""Optional prefix of the name, which makes it unambiguous."""


def mentionable_names(agents: Collection[str]) -> frozenset[str]:
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
    """Yield the user's messages since the last reply but one: one may have come right before the last reply."""
    replies = 0
    for message in reversed(messages):
        if isinstance(message, UserMessage):
            yield message
        elif isinstance(message, AssistantMessage):
            replies += 1
            if replies == 2:
                return


GENERAL = "general-purpose"
MAX_PROMPT_CHARS = 200_000


class TaskInput(Frozen):
    """Arguments of Task."""

    description: str = Field(min_length=1, max_length=200, description="What it does, in three to five words")
    prompt: str = Field(min_length=1, max_length=MAX_PROMPT_CHARS)
    subagent_type: str = Field(default=GENERAL, min_length=1, max_length=100)
    model: str | None = Field(default=None, max_length=200, description="Only where the user wants a certain one")
    run_in_background: bool | None = None
    isolation: Isolation | None = Field(default=None, description="A copy of the project, to be merged afterwards")
    resume: str | None = Field(default=None, max_length=64, description="Id of a finished subagent")


class TaskTool(Tool[TaskInput]):
    """Run a subagent."""

    name = "Task"
    input_model = TaskInput
    question_template = "Start the subagent {title}?"
    starts_agents: ClassVar[bool] = True
    timeout_s: ClassVar[float | None] = None
    is_shared: ClassVar[bool] = False
    """Each subagent is a piece of work of its own."""
    is_for_subagents: ClassVar[bool] = False
    """One that may start subagents gets another instance."""

    def __init__(self, subagents: "SubagentRunner") -> None:
        self._subagents = subagents

    def may_run_in_parallel(self, args: TaskInput) -> bool:
        return self._subagents.may_run_in_parallel(_task(args))

    async def effects(self, args: TaskInput, ctx: ToolContext) -> Effects:
        return Effects(agents=(Agent(args.subagent_type, is_read_only=self.may_run_in_parallel(args)),))

    def title(self, args: TaskInput) -> str:
        return f"{args.subagent_type}: {clean_line(args.description)}"

    @cached_property
    def definition(self) -> ToolDefinition:
        """Description with the kinds of subagents."""
        plain: ToolDefinition = super().definition
        lines = describe_kinds(self._subagents.definitions)
        return replace(plain, description="\n".join([plain.description, *(["Kinds:", *lines] if lines else [])]))

    async def run(self, args: TaskInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        async with aclosing(self._subagents.run(_task(args), ctx)) as yields:
            async for item in yields:
                yield item


@dataclass(frozen=True, slots=True)
class SubagentTask:
    """A task for a subagent."""

    description: str
    prompt: str
    agent: str
    """Name of its definition; a resumed one keeps its own."""
    resume: str = ""
    """Id of the subagent to resume; empty: a new one."""
    model: str | None = None
    in_background: bool | None = None
    isolation: Isolation | None = None
    """As `in_background`, None: as the definition says."""
    is_panpans_own: bool = False
    """True for a kind that panpan is shipped with, whatever a file calls so."""


MAX_CHARS = 16_000
"""Most characters of all descriptions together."""
MAX_KINDS = 100


def describe_kinds(kinds: Sequence[AgentDefinition]) -> list[str]:
    """Return a line for each kind; the longest descriptions are cut where all are too long."""
    told, left_out = kinds[:MAX_KINDS], len(kinds) - MAX_KINDS
    descriptions = [" ".join(kind.description.split()) for kind in told]
    limit = _limit([len(description) for description in descriptions])
    lines = [f"- {kind.name}: {_cut(text, limit)}" for kind, text in zip(told, descriptions, strict=True)]
    return [*lines, f"… and {left_out:,} more kinds, not told here"] if left_out > 0 else lines


def _limit(lengths: Sequence[int]) -> int:
    """Return the length to which each is cut, so that all fit `MAX_CHARS`."""
    left, limit = MAX_CHARS, MAX_CHARS
    for number, length in enumerate(sorted(lengths)):
        limit = left // (len(lengths) - number)
        if length > limit:
            return limit
        left -= length
    return MAX_CHARS


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _task(args: TaskInput) -> SubagentTask:
    return SubagentTask(
        description=clean_line(args.description),  # the description is part of the subagent's name everywhere
        prompt=args.prompt,
        agent=args.subagent_type,
        resume=args.resume or "",
        model=args.model,
        in_background=args.run_in_background,
        isolation=args.isolation,
    )
