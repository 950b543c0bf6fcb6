"""What a subagent may do: what whoever started it and its own definition both allow, and never more."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from panpan.core.hooks import ToolCall
from panpan.permissions.gate import Gate, PermissionGate
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


class ChildGate(Gate):
    """Gates one behind the other; the strictest word counts. The parent's is asked as it is at the moment.

    Args:
        parent: That of whoever started the subagent.
        own: That of its definition; None: it has no mode of its own.
        of_copy: That of the copy of the project in which it works; None: nothing holds there that does not anyway.
    """

    def __init__(self, parent: Gate, own: PermissionGate | None = None, of_copy: PermissionGate | None = None) -> None:
        self._parent = parent
        self._own = own
        self._gates: Sequence[Gate] = [gate for gate in (parent, own, of_copy) if gate is not None]

    @property
    def mode(self) -> PermissionMode:
        """The plan mode of either; else that of the definition, which the parent's still bounds."""
        if self._own is None or self._parent.mode == "plan":
            return self._parent.mode
        return self._own.mode

    async def before_tool(self, call: ToolCall) -> Decision | None:
        decisions = [decision for gate in self._gates if (decision := await gate.before_tool(call)) is not None]
        return reduce(stricter, decisions) if decisions else None

    async def denies_now(self, call: ToolCall) -> Deny | None:
        denials = [denial for gate in self._gates if (denial := await gate.denies_now(call)) is not None]
        return denials[0] if denials else None


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
