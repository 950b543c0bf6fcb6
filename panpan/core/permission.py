"""Whether one call may run: what the hooks decide, and the user's answer where they ask.

Deny wins over ask, ask over allow. A call that several hooks ask about is asked once, with every reason.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

from panpan.core.call_digest import digest_of
from panpan.core.hooks import Hook, ToolCall
from panpan.errors import ToolError
from panpan.types.dataclass import dataclass
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
    saved_rule: str = ""
    """What the user's "always" saved; empty where he saved nothing."""
    digest: str = ""
    """Of the call that it is about; nothing else may run on the strength of it."""


def joined(decisions: Sequence[Decision]) -> Decision | None:
    """Return the decisions of several hooks about one call as one; None where there are none."""
    first = next((one for kind in (Deny, Ask, Allow) for one in decisions if isinstance(one, kind)), None)
    asks = [one for one in decisions if isinstance(one, Ask)]
    if not isinstance(first, Ask) or len(asks) == 1:
        return first
    reason = replace(first.reason, text=_joined(asks))
    return replace(
        first, reason=reason, rule=None, prefix_rule=None, is_protected=any(one.is_protected for one in asks)
    )


async def permission_for(call: ToolCall, hooks: Sequence[Hook], ask: Asker) -> Permission:
    """Return whether `call`, as it is now, may run; waits for the user where a hook asks."""
    digest = digest_of(call)
    return replace(await _permission(call, hooks, ask), digest=digest)


async def _permission(call: ToolCall, hooks: Sequence[Hook], ask: Asker) -> Permission:
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
    try:
        preview = await call.tool.preview(call.args, call.context)
    except ToolError as error:
        if not approved and not any(decision.advice_for_model for decision in asks):
            why = Reason(f"not asked, since it cannot be done: {error}", "bad-call")
            return Permission(False, why.text, text_for_model=str(error), reasons=(why,))
        preview = None  # it may fail only for want of the yes, or the user is asked whether to go on at all
    question = PermissionQuestion(
        tool_use_id=call.tool_use_id,
        tool_name=call.tool.name,
        input=deepcopy(call.input),
        title=call.tool.title(call.args),
        reason=_joined(asks),
        rule=asks[0].rule if len(asks) == 1 else None,
        prefix_rule=asks[0].prefix_rule if len(asks) == 1 else None,
        is_protected=any(decision.is_protected for decision in asks),
        preview=preview,
        reasons=_reasons(asks),
    )
    digest = question.digest
    answer = await ask(question)
    if answer.is_allowed and answer.digest not in ("", digest):
        why = Reason("the answer was to another question", "bad-call")
        return Permission(False, why.text, text_for_model=f"{call.tool.name} was not run: {why.text}", reasons=(why,))
    if not answer.is_allowed:
        said = answer.feedback or "The user refused it. Go on without it, or ask what to do instead."
        advice = (decision.advice_for_model for decision in asks)
        return Permission(
            False,
            f"asked ({question.reason}); the answer was no",
            text_for_model=" ".join(filter(None, (f"{call.tool.name} was not run.", said, *advice))),
            reasons=question.reasons,
        )
    rule = question.prefix_rule if answer.is_for_prefix else question.rule
    saved_rule = ""
    if answer.is_remembered and asks[0].remember is not None and rule is not None:
        await asks[0].remember(rule)
        saved_rule = rule
    reason = f"asked ({question.reason}); the answer was yes"
    return Permission(True, reason, approved, preview, reasons=question.reasons, saved_rule=saved_rule)


def _joined(decisions: Sequence[Decision]) -> str:
    return "; ".join(reason.text for reason in _reasons(decisions))


def _reasons(decisions: Sequence[Decision]) -> tuple[Reason, ...]:
    return tuple(decision.reason for decision in decisions)
