"""What the Task tool needs of whoever runs subagents."""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from panpan.core.tool import ToolContext
from panpan.types.agent import AgentDefinition, Isolation
from panpan.types.dataclass import dataclass
from panpan.types.tool import ToolYield


@dataclass(frozen=True, slots=True)
class SubagentTask:
    """What one subagent is to do."""

    description: str
    """In a few words, for people."""
    prompt: str
    agent: str
    """Name of its definition; of one that goes on, that which it was begun with counts."""
    resume: str = ""
    """Id of the subagent that goes on with this prompt; empty: a new one."""
    model: str | None = None
    """As with `--model`; None: that of the definition."""
    in_background: bool | None = None
    """None: as the definition says."""
    isolation: Isolation | None = None
    """None: as the definition says."""


class Subagents(Protocol):
    """Runs subagents for one agent."""

    @property
    def definitions(self) -> Sequence[AgentDefinition]:
        """Which kinds there are."""
        ...

    def runs_beside_others(self, task: SubagentTask) -> bool:
        """Return whether nothing that it may do can get in the way of others, so that it need not run alone."""
        ...

    def run(self, task: SubagentTask, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        """Run one: yield its events, then what it reports.

        Raises:
            ToolError: It cannot be started.
        """
        ...
