"""A subagent that is open: a conversation, a log, tools and rights, as a session has them, of which it is a part."""

from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path

from panpan.capabilities.subagents.agent_log import AgentRecord
from panpan.capabilities.subagents.rights import ChildGate, Gate
from panpan.core.hooks import Hook
from panpan.core.tool import ToolContext
from panpan.permissions.gate import PermissionGate
from panpan.session.budget.budget import Budget
from panpan.session.parts import SessionParts, SubagentModel
from panpan.types.agent import AgentDefinition
from panpan.types.dataclass import dataclass
from panpan.types.permission import Asker


@dataclass(frozen=True, slots=True)
class Parent:
    """An agent that may start subagents, as far as they depend on it."""

    context: ToolContext
    gate: Gate
    ask: Asker
    budget: Budget
    """Its limits bind what it starts."""
    depth: int = 0
    """0: the session's own model."""
    agent_id: str = ""
    """Of a subagent; empty: the session's own model."""


@dataclass(frozen=True, slots=True)
class ChildFacts:
    """What the hooks of a subagent are made from."""

    record: AgentRecord
    definition: AgentDefinition
    model: SubagentModel
    gate: ChildGate
    context: ToolContext
    budget: Budget
    in_background: bool
    worktree: Path | None = None
    has_new_worktree: bool = False


HooksOf = Callable[[ChildFacts], Sequence[Hook]]
"""Returns the services that hook in around a subagent's loop, in the order in which they are asked."""


@dataclass(slots=True)
class Child:
    """A subagent that is open."""

    facts: ChildFacts
    parts: SessionParts
    notes: list[str] = field(default_factory=list)
    """What its parent should know of how it was begun, one sentence each."""

    @property
    def label(self) -> str:
        """Who it is, for people."""
        return self.facts.record.label

    def close(self) -> None:
        """Give its log back.

        Raises:
            SessionLogError: What waits to be written is lost.
        """
        self.parts.log.close()


def gate_of_child(
    parent: Gate, rules: PermissionGate, definition: AgentDefinition, of_copy: PermissionGate | None = None
) -> ChildGate:
    """Return the gate of a subagent.

    One that is begun in plan mode stays in it, so that it may run beside others for as long as it lives.

    Args:
        parent: That of whoever starts it.
        rules: That of the session, whose rules count for every agent.
        definition: Its own.
        of_copy: That of the copy of the project in which it works, if any.
    """
    mode = "plan" if parent.mode == "plan" else definition.permission_mode
    return ChildGate(parent, None if mode is None else rules.with_mode(mode), of_copy)
