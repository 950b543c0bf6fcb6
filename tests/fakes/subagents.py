"""Events of subagents, and a tool that seems to run one."""

from collections.abc import AsyncGenerator, Sequence

from pydantic import BaseModel

from panpan.core.effects import Agent, Effects
from panpan.core.tool import Tool, ToolContext
from panpan.session.budget.budget import Budget
from panpan.types.content import SummaryDisplay, TextBlock, ToolUseBlock
from panpan.types.events import Event, Output, PermissionDecided, SubagentEvent, ToolFinished, ToolStarted, ToolYield
from panpan.types.llm import ToolDefinition
from panpan.types.messages import AssistantMessage, Usage

TOKENS = 110
"""Tokens of each reply of a subagent."""


def of_agent(*events: Event, call: str = "t1", agent: str = "a1b2c3d4") -> list[SubagentEvent]:
    """Return events as the parent of a subagent gets them."""
    return [SubagentEvent(call, agent, event) for event in events]


def reply(text: str = "", *uses: tuple[str, str, dict[str, object]], cost_usd: float | None = 0.5) -> AssistantMessage:
    """Return a reply of a subagent, with calls as (id, name, input)."""
    blocks = tuple(ToolUseBlock(id=id_, name=name, input=input_) for id_, name, input_ in uses)
    return AssistantMessage(
        content=((TextBlock(text=text),) if text else ()) + blocks,
        model="small",
        usage=Usage(input_tokens=100, output_tokens=10),
        cost_usd=cost_usd,
        duration_s=1.0,
    )


def looks(id_: str, title: str, *, is_over: bool = True) -> list[Event]:
    """Return all events of a call of Grep, from the reply with the call on."""
    return [
        reply("", (id_, "Grep", {"pattern": title})),
        PermissionDecided(id_, "Grep", True, "it only reads"),
        ToolStarted(id_, "Grep", title),
        *([ToolFinished(id_, False, 0.1)] if is_over else []),
    ]


class FakeInput(BaseModel):
    description: str = ""


class FakeTask(Tool[FakeInput]):
    """Yields events of a subagent, and says something.

    Args:
        events: Events of the subagent.
        budget: Counts its replies.
    """

    name = "Task"
    input_model = FakeInput
    is_shared = False

    def __init__(self, *events: Event, budget: Budget | None = None) -> None:
        self._events = events
        self._budget = budget or Budget()

    @property
    def definition(self) -> ToolDefinition:  # type: ignore[override]
        return ToolDefinition(self.name, "Runs nothing.", {"type": "object"})

    def may_run_in_parallel(self, args: FakeInput) -> bool:
        return True

    async def effects(self, args: FakeInput, ctx: ToolContext) -> Effects:
        return Effects(agents=(Agent("explore", is_read_only=True),))

    def title(self, args: FakeInput) -> str:
        return f"explore: {args.description}"

    async def run(self, args: FakeInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        for event in of_agent(*self._events, call=ctx.tool_use_id):
            if isinstance(event.event, AssistantMessage):
                self._budget.settle(self._budget.reserve(), event.event)
            yield event
        yield Output("It is in loss.py.", SummaryDisplay(text="1 round · 1 tool call · 110 tokens · 4 s"))


def interleaved(streams: Sequence[Sequence[SubagentEvent]], order: Sequence[int]) -> list[SubagentEvent]:
    """Merge the events of several subagents in the order of indexes `order`; the remaining ones come at the end."""
    waiting = [list(stream) for stream in streams]
    merged: list[SubagentEvent] = []
    for index in order:
        if waiting[index % len(waiting)]:
            merged.append(waiting[index % len(waiting)].pop(0))
    return [*merged, *(event for stream in waiting for event in stream)]
