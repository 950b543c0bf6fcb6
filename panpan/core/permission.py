"""Whether one call may run: what the hooks decide, and the user's answer where they ask.

Deny wins over ask, ask over allow. A call that several hooks ask about is asked once, with every reason.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from panpan.core.hooks import Hook, ToolCall
from panpan.types.display import DiffDisplay
from panpan.types.permission import Allow, Ask, Asker, Decision, Deny, PermissionQuestion, Reason


@dataclass(frozen=True, slots=True)
class Permission:
    """The final word on a call, with its reason."""

    is_allowed: bool
    reason: str
    approved_paths: frozenset[Path] = frozenset()
    shown_change: DiffDisplay | None = None
    """What the user was shown that the call would change; None where he was not asked, or it was not known."""
    text_for_model: str = ""
    """What the model is told where the call may not run."""
    reasons: tuple[Reason, ...] = ()
    """Of the hooks that decided, for programs."""


async def permission_for(call: ToolCall, hooks: Sequence[Hook], ask: Asker) -> Permission:
    """Return whether `call` may run; waits for the user where a hook asks."""
    decisions = [decision for hook in hooks if (decision := await hook.before_tool(call)) is not None]
    if denials := [decision for decision in decisions if isinstance(decision, Deny)]:
        reason = _joined(denials)
        text_for_model = f"{call.tool.name} was not run: {reason}"
        return Permission(False, reason, text_for_model=text_for_model, reasons=_reasons(denials))
    approved = frozenset[Path]().union(
        *(decision.approved_paths for decision in decisions if isinstance(decision, Allow | Ask))
    )
    if asks := [decision for decision in decisions if isinstance(decision, Ask)]:
        return await _asked(call, asks, approved, ask)
    reason = _joined(decisions) or "no hook decides about it"
    return Permission(True, reason, approved, reasons=_reasons(decisions))


async def _asked(call: ToolCall, asks: Sequence[Ask], approved: frozenset[Path], ask: Asker) -> Permission:
    question = PermissionQuestion(
        tool_use_id=call.tool_use_id,
        tool_name=call.tool.name,
        input=call.input,
        title=call.tool.title(call.args),
        reason=_joined(asks),
        rule=asks[0].rule if len(asks) == 1 else None,
        is_protected=any(decision.is_protected for decision in asks),
        preview=await call.tool.preview(call.args, call.context),
        reasons=_reasons(asks),
    )
    answer = await ask(question)
    if not answer.is_allowed:
        said = answer.feedback or "The user refused it. Go on without it, or ask what to do instead."
        advice = (decision.advice_for_model for decision in asks)
        return Permission(
            False,
            f"asked ({question.reason}); the answer was no",
            text_for_model=" ".join(filter(None, (f"{call.tool.name} was not run.", said, *advice))),
            reasons=question.reasons,
        )
    if answer.is_remembered and asks[0].remember is not None and question.rule is not None:
        await asks[0].remember()
    reason = f"asked ({question.reason}); the answer was yes"
    return Permission(True, reason, approved, question.preview, reasons=question.reasons)


def _joined(decisions: Sequence[Decision]) -> str:
    return "; ".join(reason.text for reason in _reasons(decisions))


def _reasons(decisions: Sequence[Decision]) -> tuple[Reason, ...]:
    return tuple(decision.reason for decision in decisions)
