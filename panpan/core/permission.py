"""Whether one call may run: what the hooks decide, and the user's answer where they ask.

Deny wins over ask, ask over allow. A call that several hooks ask about is asked once, with every reason.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

from panpan.core.hooks import Hook, ToolCall
from panpan.core.tool_call import digest_of
from panpan.errors import ToolError
from panpan.types.dataclass import dataclass
from panpan.types.display import DiffDisplay
from panpan.types.permission import Allow, Ask, AskedOf, Asker, Decision, Deny, PermissionQuestion, Reason, flags_for


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
    asked_of: AskedOf = "nobody"


def joined(decisions: Sequence[Decision]) -> Decision:
    """Return the decisions of several hooks about one call as one; where there are none, nothing stands against it."""
    deciding = _deciding(decisions)
    if not deciding:
        return Allow(Reason("no hook decides about it"))
    first = deciding[0]
    flags = flags_for(one.reason for one in _restricting(decisions))
    reason = replace(first.reason, text="; ".join(one.reason.text for one in deciding), flags=flags)
    if isinstance(first, Deny):
        return Deny(reason)
    approved = frozenset[Path]().union(*(one.approved_paths for one in decisions if not isinstance(one, Deny)))
    if isinstance(first, Allow):
        return Allow(reason, approved)
    asks = [one for one in deciding if isinstance(one, Ask)]
    ask = replace(
        first,
        reason=reason,
        approved_paths=approved,
        is_protected=any(one.is_protected for one in asks),
        advice_for_model=" ".join(filter(None, (one.advice_for_model for one in asks))),
        bounds="; ".join(filter(None, (one.bounds for one in asks))),
    )
    # What "always" would save answers one of the questions, and not the others.
    return ask if len(asks) == 1 else replace(ask, rule=None, prefix_rule=None, remember=None)


def _deciding(decisions: Sequence[Decision]) -> Sequence[Decision]:
    """Return those that count: the denials, else the questions, else all."""
    for kind in (Deny, Ask):
        if found := [one for one in decisions if isinstance(one, kind)]:
            return found
    return decisions


def _restricting(decisions: Sequence[Decision]) -> Sequence[Decision]:
    """Return those that a call has to pass: the denials, and the questions unless no flag can lift the denials.

    Behind the questions come the allowances that name flags, without which the call would run in vain.
    """
    denials = [one for one in decisions if isinstance(one, Deny)]
    asks = [one for one in decisions if isinstance(one, Ask)]
    if not (denials or asks) or not all(one.reason.flags for one in denials):
        return denials
    return [*denials, *asks, *(one for one in decisions if isinstance(one, Allow) and one.reason.flags)]


async def permission_for(call: ToolCall, hooks: Sequence[Hook], ask: Asker) -> Permission:
    """Return whether `call`, as it is now, may run; waits for the user where a hook asks."""
    digest = digest_of(call)
    return replace(await _permission(call, digest, hooks, ask), digest=digest)


async def _permission(call: ToolCall, digest: str, hooks: Sequence[Hook], ask: Asker) -> Permission:
    decisions = [decision for hook in hooks if (decision := await hook.before_tool(call)) is not None]
    reasons = _reasons(_restricting(decisions) or decisions)
    match joined(decisions):
        case Deny(reason=Reason(text=text)):
            return Permission(False, text, text_for_model=f"{call.tool.name} was not run: {text}", reasons=reasons)
        case Allow(reason=Reason(text=text), approved_paths=approved):
            return Permission(True, text, approved, reasons=reasons)
        case Ask() as question:
            for_person = _reasons([one for one in decisions if isinstance(one, Ask) and one.is_protected])
            return await _asked(call, digest, question, reasons, for_person, hooks, ask)


def _reasons(decisions: Sequence[Decision]) -> tuple[Reason, ...]:
    return tuple(decision.reason for decision in decisions)


async def _asked(
    call: ToolCall,
    digest: str,
    decision: Ask,
    reasons: tuple[Reason, ...],
    for_person: tuple[Reason, ...],
    hooks: Sequence[Hook],
    ask: Asker,
) -> Permission:
    description = ""
    try:
        description = await call.tool.describe(call.args, call.context)
        preview = await call.tool.preview(call.args, call.context)
    except ToolError as error:
        if not decision.approved_paths and not decision.advice_for_model:
            why = Reason(f"not asked, since it cannot be done: {error}", "bad-call")
            return Permission(False, why.text, text_for_model=str(error), reasons=(why,))
        preview = None  # it may fail only for want of the yes, or the user is asked whether to go on at all
    question = PermissionQuestion(
        tool_use_id=call.tool_use_id,
        tool_name=call.tool.name,
        input=deepcopy(call.input),
        title=call.tool.title(call.args),
        reason=decision.reason.text,
        effect=description,
        rule=decision.rule,
        prefix_rule=decision.prefix_rule,
        is_protected=decision.is_protected,
        preview=preview,
        reasons=reasons,
        for_person=for_person,
        bounds=decision.bounds,
        digest=digest,
    )
    match await _answered_by_hooks(call, question, hooks):
        case Deny(reason=why):
            text = f"{call.tool.name} was not run: {why.text}"
            return Permission(False, why.text, text_for_model=text, reasons=(*reasons, why))
        case Allow(reason=why):
            return Permission(True, why.text, decision.approved_paths, preview, reasons=(*reasons, why))
    answer = await ask(question)
    if not answer.is_allowed:
        said = answer.feedback or "The user refused it. Go on without it, or ask what to do instead."
        text = " ".join(filter(None, (f"{call.tool.name} was not run.", said, decision.advice_for_model)))
        reason = f"asked ({question.on_one_line}); the answer was no"
        asked_of: AskedOf = "a person" if question.is_protected else "anybody"
        return Permission(False, reason, text_for_model=text, reasons=answer.reasons or reasons, asked_of=asked_of)
    rule = question.prefix_rule if answer.is_for_prefix else question.rule
    saved_rule = ""
    if answer.is_remembered and decision.remember is not None and rule is not None:
        await decision.remember(rule)
        saved_rule = rule
    reason = f"asked ({question.on_one_line}); the answer was yes"
    return Permission(True, reason, decision.approved_paths, preview, reasons=reasons, saved_rule=saved_rule)


async def _answered_by_hooks(call: ToolCall, question: PermissionQuestion, hooks: Sequence[Hook]) -> Decision | None:
    """Return what the hooks answer in the user's place, if any does and one may; no yes lasts into plan mode."""
    if question.is_protected:
        return None
    answers = [answer for hook in hooks if (answer := await hook.answer_question(call, question)) is not None]
    if not answers:
        return None
    denials = [denial for hook in hooks if (denial := await hook.recheck(call)) is not None]
    return joined([*answers, *denials])
