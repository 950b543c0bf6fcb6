"""Task: give work to a subagent.

The rule: a subagent may do what its parent and its own definition both allow, and each of its calls is decided about by
itself; the call that starts it needs no permission of its own.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from panpan.capabilities.subagents.kinds import told_kinds
from panpan.capabilities.subagents.subagents import Subagents, SubagentTask
from panpan.core.effects import Agent, Effects
from panpan.core.tool import Tool, ToolContext
from panpan.errors import ToolError
from panpan.system.text.terminal_text import clean_line
from panpan.types.agent import Isolation
from panpan.types.llm import ToolDefinition
from panpan.types.tool import ToolYield

GENERAL = "general-purpose"
"""The kind that is taken where the call names none."""
MAX_PROMPT_CHARS = 200_000


class TaskInput(BaseModel):
    """What the model may ask of Task."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    description: str = Field(min_length=1, max_length=200, description="What it does, in three to five words")
    prompt: str = Field(min_length=1, max_length=MAX_PROMPT_CHARS)
    subagent_type: str = Field(default=GENERAL, min_length=1, max_length=100)
    model: str | None = Field(default=None, max_length=200, description="Only where the user wants a certain one")
    run_in_background: bool | None = None
    isolation: Isolation | None = Field(default=None, description="A copy of the project, to be merged afterwards")
    resume: str | None = Field(default=None, max_length=64, description="Id of a finished subagent")


class TaskTool(Tool[TaskInput]):
    """Run a subagent.

    Args:
        subagents: Who runs them; None where there is no session.
    """

    name = "Task"
    input_model = TaskInput
    starts_agents: ClassVar[bool] = True
    timeout_s: ClassVar[float | None] = None
    is_shared: ClassVar[bool] = False
    """Each subagent is a piece of work of its own."""
    is_for_subagents: ClassVar[bool] = False
    """One that may start subagents gets another instance."""

    def __init__(self, subagents: Subagents | None = None) -> None:
        self._subagents = subagents

    def runs_beside_others(self, args: TaskInput) -> bool:
        return self._subagents is not None and self._subagents.runs_beside_others(_task(args))

    async def effects(self, args: TaskInput, ctx: ToolContext) -> Effects:
        return Effects(agents=(Agent(args.subagent_type, only_looks=self.runs_beside_others(args)),))

    def title(self, args: TaskInput) -> str:
        return f"{args.subagent_type}: {clean_line(args.description)}"

    @cached_property
    def definition(self) -> ToolDefinition:
        """With the kinds of subagents that there are."""
        plain: ToolDefinition = super().definition
        kinds = [] if self._subagents is None else self._subagents.definitions
        lines = told_kinds(kinds)
        return replace(plain, description="\n".join([plain.description, *(["Kinds:", *lines] if lines else [])]))

    async def run(self, args: TaskInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        if self._subagents is None:
            raise ToolError("there are no subagents here; do the task yourself")
        async with aclosing(self._subagents.run(_task(args), ctx)) as yields:
            async for item in yields:
                yield item


def _task(args: TaskInput) -> SubagentTask:
    return SubagentTask(
        description=clean_line(args.description),  # it stands in the name of the subagent, wherever that is shown
        prompt=args.prompt,
        agent=args.subagent_type,
        resume=args.resume or "",
        model=args.model,
        in_background=args.run_in_background,
        isolation=args.isolation,
    )
