"""A subagent that is open, and the agent that it belongs to."""

from dataclasses import field

from panpan.capabilities.subagents.rights import ChildGate
from panpan.core.tool import ToolContext
from panpan.permissions.gate import Gate, PermissionGate
from panpan.session.agent import Agent
from panpan.session.agent_log import AgentRecord
from panpan.types.agent import AgentDefinition
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Parent:
    """An agent that may start subagents, in one call."""

    agent: Agent
    context: ToolContext
    """Context of the call."""

    @property
    def agent_id(self) -> str:
        """Id of a subagent; empty for the main agent."""
        return "" if self.agent.is_main else self.agent.id


@dataclass(slots=True)
class Child:
    """A subagent that is open."""

    agent: Agent
    record: AgentRecord
    definition: AgentDefinition
    in_background: bool
    notes: list[str] = field(default_factory=list)
    """What its parent should know of how it was begun, one sentence each."""

    @property
    def label(self) -> str:
        """Name for people."""
        return self.record.label

    def close(self) -> None:
        """Give its log back.

        Raises:
            SessionLogError: What waits to be written is lost.
        """
        self.agent.transcript.log.close()


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
