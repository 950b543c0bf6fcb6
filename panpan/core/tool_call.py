"""Preparation of a tool use: find its tool, check its arguments, and get permission from the hooks and the user.

Deny wins over ask, ask over allow. If several hooks ask about a call, the user gets one question with every reason. An
error becomes the text of an error result, so it says what to do instead.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from typing import Any

from anyio import Lock
from pydantic import BaseModel, ValidationError

from panpan.core.hooks import Hook, ToolCall
from panpan.core.leases import AGENTS, EVERYTHING, READS, FileUse
from panpan.core.tool import Tool, ToolContext
from panpan.errors import PanpanError, ToolError
from panpan.system.files.canonical import canonical_path
from panpan.types.content import DiffDisplay, Display, RejectedDisplay, SummaryDisplay, ToolUseBlock, for_model
from panpan.types.dataclass import dataclass
from panpan.types.events import Output
from panpan.types.permission import (
    Allow,
    Ask,
    AskedOf,
    Asker,
    Box,
    Decision,
    Deny,
    Offer,
    Opening,
    PermissionAnswer,
    PermissionQuestion,
    Reason,
    SandboxDenial,
    Wording,
    flags_for,
    narrowest,
)

MAX_ERROR_CHARS = 4_000
"""Longest text that tells the model why a call did not run."""


_REFUSED = "The user refused it. Go on without it, or ask what to do instead."


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A tool use that is ready to run, or has a reason why it cannot."""

    use: ToolUseBlock
    tool: Tool[Any] | None = None
    args: BaseModel | None = None
    problem: str = ""
    """Reason why it cannot run; empty if `tool` and `args` are set."""
    only_reads: bool = True
    """True if it may run beside others that only read; also for one that cannot run at all."""
    is_meant: bool = False
    """True if the model's call stood for this one."""


def prepare_call(
    use: ToolUseBlock, tools: Mapping[str, Tool[Any]], advertised: Collection[str] | None = None
) -> PreparedCall:
    """Find the tool of `use` and check its arguments.

    Args:
        use: The call.
        tools: Tools that can be called.
        advertised: Names of the tools in the model's list; None for all.
    """
    if use.input_error is not None:
        return PreparedCall(use, problem=f"The call was not run: {use.input_error}")
    try:
        return _checked(use, tools, tools.keys() if advertised is None else advertised)
    except PanpanError as error:
        return PreparedCall(use, problem=f"{use.name} was not run: {error}")
    except Exception as error:  # a bug in one tool's model costs that call
        return PreparedCall(use, problem=f"{use.name} failed unexpectedly: {type(error).__name__}: {error}")


def _checked(use: ToolUseBlock, tools: Mapping[str, Tool[Any]], advertised: Collection[str]) -> PreparedCall:
    tool = tools.get(use.name)
    if tool is None:
        return PreparedCall(use, problem=_unknown_tool(use.name, sorted(tools.keys() & advertised)))
    tool = tool.load()
    try:
        args = tool.input_model.model_validate(use.input)
    except ValidationError as error:
        return PreparedCall(use, problem=wrong_arguments(use.name, error))
    if (meant := tool.meant(args)) is not None:
        inner, written = meant
        stood_for = use.model_copy(update={"name": inner.name, "input": dict(written)})
        return replace(_checked(stood_for, {inner.name: inner}, ()), is_meant=True)
    return PreparedCall(use, tool, args, only_reads=tool.may_run_in_parallel(args))


def is_apart(calls: Sequence[PreparedCall], index: int) -> bool:
    """True if no neighbour of a call only reads, so that a command in it may change the working directory."""
    return not any(calls[at].only_reads for at in (index - 1, index + 1) if 0 <= at < len(calls))


async def find_file_use(
    call: PreparedCall, context: ToolContext, *, may_move: bool, is_beside_changes: bool
) -> FileUse:
    """Return the files that a call of a message touches, for its order among the others.

    Args:
        call: The call.
        context: Context of the call.
        may_move: True if a command in it may change the working directory, which the calls after it start from.
        is_beside_changes: True if another call of the message may change something.
    """
    tool, args = call.tool, call.args
    if tool is None or args is None:
        return FileUse()
    if tool.starts_agents:
        return AGENTS
    if call.only_reads and not may_move and not (tool.names_reads and is_beside_changes):
        return READS  # it may depend on more than it names, as on the mode or on a whole project
    if not call.only_reads and (not tool.notes_changes or tool.only_renames):
        return EVERYTHING
    try:
        effects = await tool.effects(args, context)
        if call.only_reads and not tool.names_reads:
            return EVERYTHING if effects.commands else READS
        if not call.only_reads and not effects.only_changes_files:
            return EVERYTHING
        return FileUse.of(
            reads=[_canonical(path, context) for path in (*effects.reads, *effects.searches)],
            writes=[_canonical(path, context) for path in (*effects.writes, *effects.deletes)],
        )
    except Exception:  # it may be possible once the calls before it are done
        return READS if tool.names_reads else EVERYTHING


def _canonical(path: str, context: ToolContext) -> Path:
    return canonical_path(Path(context.paths.absolute(path)))


def find_changed_files(call: ToolCall, box: Box) -> FileUse:
    """Return the files that a call may change in a box, for the lease that it holds while it works."""
    effects, paths = call.effects, call.context.paths
    if call.tool.starts_agents or call.tool.waits:  # what it starts takes leases, and would wait for this one
        return FileUse()
    if effects.is_read_only or box == "looking":
        return FileUse()
    if effects.commands or not effects.is_complete:
        return FileUse.of(writes=paths.roots)
    return FileUse.of(writes=[_canonical(path, call.context) for path in (*effects.writes, *effects.deletes)])


def equal_calls(calls: Sequence[PreparedCall]) -> list[list[PreparedCall]]:
    """Group the calls that are equal and may share a result: nothing between them may have changed it."""
    groups: dict[str, list[PreparedCall]] = {}
    changes = 0
    for call in calls:
        changes += not call.only_reads
        is_shared = call.only_reads and (call.tool is None or call.tool.is_shared)
        written = [call.use.name, call.use.input, call.use.input_error, changes, "" if is_shared else call.use.id]
        groups.setdefault(json.dumps(written, sort_keys=True, default=repr), []).append(call)
    return list(groups.values())


def _unknown_tool(name: str, tools: Sequence[str]) -> str:
    by_lower_name = {known.lower(): known for known in tools}
    close = get_close_matches(name.lower(), by_lower_name, n=1)
    hint = f" Did you mean {by_lower_name[close[0]]}?" if close else ""
    return f"There is no tool named {name!r}.{hint} The tools are: {', '.join(tools)}."


def wrong_arguments(name: str, error: ValidationError) -> str:
    """Return what is wrong with the arguments of a call, for the model that made it."""
    lines = [f"The arguments of {name} do not fit, so it was not run:"]
    for problem in error.errors(include_url=False, include_context=False, include_input=False)[:10]:
        place = ".".join(str(part) for part in problem["loc"])
        said = problem["msg"].replace("a valid tuple", "a valid list")  # the model writes JSON, which has no tuples
        lines.append(f"- {place}: {said}" if place else f"- {said}")
    return "\n".join(lines)


def shorten_error(text: str) -> str:
    """Return an error's text within its limit; it may quote the model's arguments, which can be of any length."""
    if len(text) <= MAX_ERROR_CHARS:
        return text
    half = MAX_ERROR_CHARS // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"


def error_output(error: PanpanError) -> Output:
    """Return the output of a call that could not run or could not finish."""
    whole = shorten_error(str(error))
    if not isinstance(error, ToolError) or not error.advice:
        return Output(whole, is_error=True)
    return Output((for_model(whole),), SummaryDisplay(text=shorten_error(error.problem)), is_error=True)


def digest_of(call: ToolCall) -> str:
    """Return the SHA-256 of a call: the tool, and its arguments both as the model wrote them and as validated."""
    text = json.dumps([call.tool.name, call.input, call.args.model_dump()], sort_keys=True, default=repr)
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class Permission:
    """The final word on a call, with its reason."""

    is_allowed: bool
    reason: str
    approved_paths: frozenset[Path] = frozenset()
    shown_change: DiffDisplay | None = None
    """Changes that the user saw in the question; None if they were not asked, or the changes were not known."""
    text_for_model: str = ""
    """Text for the model if the call must not run."""
    reasons: tuple[Reason, ...] = ()
    """Reasons of the hooks that decided, for programs."""
    saved_rule: str = ""
    """Rule that the user's "always" saved; empty if it saved none."""
    digest: str = ""
    """Digest of the call that was decided about; no other call may run with this permission."""
    asked_of: AskedOf = "nobody"
    box: Box = "usual"
    """The box in which its command runs."""
    opening: Opening | None = None
    """Surroundings of its command instead of those that it asked for."""
    said: str = ""
    """The user's words beside a yes, for the model."""
    input: Mapping[str, Any] | None = None
    """Other arguments that the answer gives the call; it is decided about again with these."""
    display: Display | None = None
    """Shown to the user in place of the text for the model."""


def combine_decisions(decisions: Sequence[Decision]) -> Decision:
    """Return the decisions of several hooks about one call as one; allow the call if there are none."""
    deciding = _deciding(decisions)
    if not deciding:
        return Allow(Reason("no hook decides about it"))
    first = deciding[0]
    flags = flags_for(one.reason for one in _restricting(decisions))
    advice = "; ".join(dict.fromkeys(one.reason.advice for one in deciding if one.reason.advice))
    reason = replace(first.reason, text="; ".join(one.reason.text for one in deciding), flags=flags, advice=advice)
    if isinstance(first, Deny):
        return Deny(reason)
    approved = frozenset[Path]().union(*(one.approved_paths for one in decisions if not isinstance(one, Deny)))
    box = narrowest(one.box for one in decisions if not isinstance(one, Deny))
    if isinstance(first, Allow):
        allowances = [one for one in decisions if isinstance(one, Allow)]
        opening = next((one.opening for one in allowances if one.opening is not None), None)
        return Allow(reason, approved, box, None if box == "looking" else opening)
    asks = [one for one in deciding if isinstance(one, Ask)]
    ask = replace(
        first,
        reason=reason,
        approved_paths=approved,
        is_protected=any(one.is_protected for one in asks),
        box=box,
    )
    if len(asks) == 1:
        return ask
    opens = next((one for one in asks if one.offer.openings), asks[0])
    bounds = "; ".join(filter(None, (one.offer.bounds for one in asks)))
    offer = Offer(bounds, opens.offer.openings)
    # A saved rule or a mode would answer only one of the questions.
    return replace(ask, rule=None, prefix_rule=None, remember=None, offer=offer, keep=opens.keep, use_mode=None)


def _deciding(decisions: Sequence[Decision]) -> Sequence[Decision]:
    """Return the decisions that count: the denials, else the questions, else all."""
    for kind in (Deny, Ask):
        if found := [one for one in decisions if isinstance(one, kind)]:
            return found
    return decisions


def _restricting(decisions: Sequence[Decision]) -> Sequence[Decision]:
    """Return the decisions that a call has to pass: the denials, and the questions unless no flag lifts the denials.

    After the questions come the allowances that name flags, without which the call would run in vain.
    """
    denials = [one for one in decisions if isinstance(one, Deny)]
    asks = [one for one in decisions if isinstance(one, Ask)]
    if not (denials or asks) or not all(one.reason.flags for one in denials):
        return denials
    return [*denials, *asks, *(one for one in decisions if isinstance(one, Allow) and one.reason.flags)]


async def permission_for(call: ToolCall, hooks: Sequence[Hook], ask: Asker, asking: Lock) -> Permission:
    """Decide about `call` as it is now; wait for the user if a hook asks.

    Args:
        call: The call.
        hooks: Hooks that decide.
        ask: Puts a question to the user.
        asking: Held while the user is asked. A call that waited for it is decided about again, since the answer to the
            question before, such as another mode, may hold for it, too.
    """
    digest = digest_of(call)
    decisions = await _decisions(call, hooks)
    if not isinstance(combine_decisions(decisions), Ask):
        return replace(await _permission(call, digest, decisions, hooks, ask), digest=digest)
    has_to_wait = asking.locked()
    async with asking:
        if has_to_wait:
            decisions = await _decisions(call, hooks)
        return replace(await _permission(call, digest, decisions, hooks, ask), digest=digest)


async def _decisions(call: ToolCall, hooks: Sequence[Hook]) -> Sequence[Decision]:
    return [decision for hook in hooks if (decision := await hook.before_tool(call)) is not None]


async def recheck_call(call: ToolCall, hooks: Sequence[Hook]) -> Permission | None:
    """Return the denial of a call that was allowed and had to wait since; None if it may still run."""
    denials = [denial for hook in hooks if (denial := await hook.recheck(call)) is not None]
    return _denied(call.tool.name, combine_decisions(denials).reason, _reasons(denials)) if denials else None


async def permission_to_retry(
    call: ToolCall, blocked: SandboxDenial, hooks: Sequence[Hook], ask: Asker
) -> Permission | None:
    """Decide if a call that failed in the sandbox runs once more; None if nobody allows it and no person was asked.

    Args:
        call: The call as it was first decided.
        blocked: Obstacle in the sandbox.
        hooks: Hooks that decide.
        ask: Puts a question to the user.
    """
    found = [decision for hook in hooks if (decision := await hook.after_sandbox_denial(call, blocked)) is not None]
    if not found or isinstance(combine_decisions(found), Deny):
        return None
    digest = digest_of(call)
    decisions = [_asking_again(one, blocked) if isinstance(one, Ask) else one for one in found]
    permission = await _permission(call, digest, decisions, hooks, ask)
    if permission.is_allowed:
        return replace(permission, digest=digest)
    if not isinstance(permission.display, RejectedDisplay):
        return None
    said = permission.text_for_model.removeprefix(_not_run(call.tool.name))
    return replace(permission, digest=digest, text_for_model=f"The user was asked to run it again:{said}")


def _asking_again(decision: Ask, blocked: SandboxDenial) -> Ask:
    reason = replace(decision.reason, text=blocked.reason, kind="sandbox")
    return replace(decision, reason=reason, question="Run it again?")


async def _permission(
    call: ToolCall, digest: str, decisions: Sequence[Decision], hooks: Sequence[Hook], ask: Asker
) -> Permission:
    reasons = _reasons(_restricting(decisions) or decisions)
    match combine_decisions(decisions):
        case Deny(reason=why):
            return _denied(call.tool.name, why, reasons)
        case Allow(reason=Reason(text=text), approved_paths=approved, box=box, opening=opening):
            return Permission(True, text, approved, reasons=reasons, box=box, opening=opening)
        case Ask() as question:
            for_person = _reasons([one for one in decisions if isinstance(one, Ask) and one.is_protected])
            return await _asked(call, digest, question, reasons, for_person, hooks, ask)


def _denied(name: str, why: Reason, reasons: tuple[Reason, ...]) -> Permission:
    error = ToolError(f"{name} was not run: {why.text}", advice=why.advice)
    output = error_output(error)
    return Permission(False, why.text, text_for_model=str(error), reasons=reasons, display=output.display)


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
        if not decision.approved_paths and all(reason.kind != "doom-loop" for reason in reasons):
            why = Reason(f"not asked, since it cannot be done: {error}", "bad-call")
            return Permission(
                False, why.text, text_for_model=str(error), reasons=(why,), display=error_output(error).display
            )
        preview = None  # it may fail only because it needs the yes, or the question is whether to continue at all
    question = PermissionQuestion(
        tool_use_id=call.tool_use_id,
        tool_name=call.tool.name,
        input=deepcopy(call.input),
        title=call.tool.title(call.args),
        reason=decision.reason.text,
        wording=Wording(decision.question or call.tool.question(call.args), description, call.tool.main_argument),
        rule=decision.rule,
        prefix_rule=decision.prefix_rule,
        is_protected=decision.is_protected,
        preview=preview,
        reasons=reasons,
        for_person=for_person,
        offer=decision.offer,
        digest=digest,
    )
    match await _answered_by_hooks(call, question, hooks):
        case Deny(reason=why):
            return _denied(call.tool.name, why, (*reasons, why))
        case Allow(reason=why):
            approved = decision.approved_paths
            return Permission(True, why.text, approved, preview, reasons=(*reasons, why), box=decision.box)
    answer = await ask(question)
    if answer.is_allowed:
        return await _allowed(question, decision, answer)
    return _refused(question, decision, answer)


def _not_run(name: str) -> str:
    return f"{name} was not run."


def _refused(question: PermissionQuestion, decision: Ask, answer: PermissionAnswer) -> Permission:
    said = answer.feedback or _REFUSED
    advice = decision.reason.advice
    advice = f"{advice[:1].upper()}{advice[1:]}." if advice else ""
    text = " ".join(filter(None, (_not_run(question.tool_name), said, advice)))
    files = question.preview.files if question.preview is not None else ()
    unanswered = SummaryDisplay(text=f"{question.tool_name} was not run: it needs your yes ({question.on_one_line})")
    return Permission(
        False,
        f"asked ({question.on_one_line}); the answer was no",
        text_for_model=text,
        reasons=answer.reasons or question.reasons,
        asked_of="a person" if question.is_protected else "anybody",
        display=RejectedDisplay(files=files) if answer.is_persons else unanswered,
    )


async def _allowed(question: PermissionQuestion, decision: Ask, answer: PermissionAnswer) -> Permission:
    opening = answer.opening if answer.opening in question.offer.openings else None
    saved_rule = await _kept(decision, question, answer, opening) if answer.is_remembered else ""
    if answer.changes_mode and decision.use_mode is not None and question.offer.mode is not None:
        decision.use_mode(question.offer.mode)
    return Permission(
        True,
        f"asked ({question.on_one_line}); the answer was yes{f', {opening.description}' if opening else ''}",
        decision.approved_paths,
        question.preview,
        reasons=question.reasons,
        saved_rule=saved_rule,
        box=decision.box,
        opening=None if decision.box == "looking" else opening,
        said=answer.feedback,
        input=None if answer.input == question.input else answer.input,
    )


async def _kept(decision: Ask, question: PermissionQuestion, answer: PermissionAnswer, opening: Opening | None) -> str:
    """Save the answer for later calls, and return the saved rule or opening in words; empty if none can be saved."""
    if answer.opening is not None:
        if opening is None or decision.keep is None or not opening.can_be_kept:
            return ""
        await decision.keep(opening)
        return ", ".join(opening.patterns or opening.hosts)
    rule = question.prefix_rule if answer.is_for_prefix else question.rule
    if decision.remember is None or rule is None:
        return ""
    await decision.remember(rule)
    return rule


async def _answered_by_hooks(call: ToolCall, question: PermissionQuestion, hooks: Sequence[Hook]) -> Decision | None:
    """Return the hooks' answer in the user's place; None if none answers or only a person may.

    A yes no longer counts once plan mode has begun.
    """
    if question.is_protected:
        return None
    answers = [answer for hook in hooks if (answer := await hook.answer_question(call, question)) is not None]
    if not answers:
        return None
    denials = [denial for hook in hooks if (denial := await hook.recheck(call)) is not None]
    return combine_decisions([*answers, *denials])
