"""What a subagent may do: what whoever started it and its own definition both allow, and never more."""

from dataclasses import replace
from typing import Protocol

from panpan.core.hooks import Hook, ToolCall
from panpan.services.permissions.gate import PermissionGate
from panpan.types.permission import (
    Allow,
    Ask,
    Asker,
    Decision,
    Deny,
    PermissionAnswer,
    PermissionMode,
    PermissionQuestion,
)


class Gate(Protocol):
    """Decides about the calls of one agent."""

    @property
    def mode(self) -> PermissionMode:
        """How what no rule decides is treated, at the moment."""
        ...

    async def before_tool(self, call: ToolCall) -> Decision | None:
        """Decide whether the call may run."""
        ...

    async def denies_now(self, call: ToolCall) -> Deny | None:
        """Return why it must not run, whatever was answered."""
        ...


class ChildGate(Hook):
    """Two gates one behind the other; the stricter word counts. The parent's is asked as it is at the moment.

    Args:
        parent: That of whoever started the subagent.
        own: That of its definition; None: it has no mode of its own.
    """

    def __init__(self, parent: Gate, own: PermissionGate | None = None) -> None:
        self._parent = parent
        self._own = own

    @property
    def mode(self) -> PermissionMode:
        """The plan mode of either; else that of the definition, which the parent's still bounds."""
        if self._own is None or self._parent.mode == "plan":
            return self._parent.mode
        return self._own.mode

    async def before_tool(self, call: ToolCall) -> Decision | None:
        decision = await self._parent.before_tool(call)
        own = await self._own.before_tool(call) if self._own is not None else None
        return decision if own is None else own if decision is None else stricter(decision, own)

    async def denies_now(self, call: ToolCall) -> Deny | None:
        own = await self._own.denies_now(call) if self._own is not None else None
        return await self._parent.denies_now(call) or own


def stricter(first: Decision, second: Decision) -> Decision:
    """Return what holds where both do: a denial before a question, a question before an allowance.

    Both gates have the same rules, so that what "always" saves answers both questions.
    """
    match first, second:
        case Deny(), _:
            return first
        case _, Deny():
            return second
        case Ask(), Ask():
            paths = first.approved_paths | second.approved_paths
            return replace(first, approved_paths=paths, is_protected=first.is_protected or second.is_protected)
        case Ask(), _:
            return first
        case _, Ask():
            return second
        case Allow(), Allow():
            return Allow(first.reason, first.approved_paths & second.approved_paths)
    raise AssertionError("every decision is one of three")


class LabelledAsker:
    """Asks the user in the name of a subagent, so that he sees who wants something.

    Args:
        ask: Whom the parent asks.
        label: Who it is, as "explore: find the loss".
    """

    def __init__(self, ask: Asker, label: str) -> None:
        self._ask = ask
        self._label = label

    async def __call__(self, question: PermissionQuestion) -> PermissionAnswer:
        label = f"{self._label} → {question.agent}" if question.agent else self._label
        return await self._ask(replace(question, agent=label))
