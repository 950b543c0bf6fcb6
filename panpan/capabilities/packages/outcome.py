"""What a call tells when it has run: what changed; or why it failed, in sentences and not in the log of a solver."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from panpan.capabilities.packages.changes import Changes
from panpan.capabilities.packages.plan import Plan
from panpan.capabilities.packages.running import Ran
from panpan.capabilities.packages.step import FileStep
from panpan.types.display import SummaryDisplay
from panpan.types.tool import Output

_MOST_FAILURE_CHARS = 4_000
"""Of the output of what failed and is not understood; with a reason, a quarter of it."""


def outcome(
    plan: Plan, ran: Ran, changes: Changes, files: Sequence[FileStep], notes: Sequence[str], *, existed: bool
) -> Output:
    """Return what to tell of a call that has run.

    Args:
        plan: What it was to do.
        ran: How it went.
        changes: What it changed of what is installed.
        files: Which manifests and lock files it changed.
        notes: What else there is to say, a line each.
        existed: Whether the environment was there before.
    """
    if plan.runs_code:
        lines = [ran.output.rstrip("\n") or "(no output)", *(f"[{note}]" for note in (*_ending(plan, ran), *ran.notes))]
        return Output("\n".join(lines), is_error=not ran.went_well)
    lines = list(changes.lines)
    if not existed and plan.target.prefix.exists():
        lines.insert(0, f"made: {plan.target.prefix}")
    lines += [f"changed: {Path(file.path).name}" for file in files]
    lines += [*ran.told, *notes]
    if ran.went_well:
        where = replace(plan.target, why="")
        head = f"done for {where}" if lines else f"done for {where}; nothing changed"
        more = [f"{len(notes) - 1} more notes"] if len(notes) > 1 else []
        short = "; ".join([changed_in_words(plan, changes, files, existed=existed), *notes[:1], *more])
        return Output("\n".join([head, *lines]), SummaryDisplay(text=short))
    done = changed_in_words(plan, changes, files, existed=existed)
    return _failure(plan, ran, lines, done if has_changed(plan, changes, files, existed=existed) else "")


def way_back(plan: Plan) -> str:
    """Return how what was changed by a call that did not end well is taken back."""
    return "the same rollback goes on with it" if plan.step is not None else "rollback takes that back"


def has_changed(plan: Plan, changes: Changes, files: Sequence[FileStep], *, existed: bool) -> bool:
    """Return whether a call has changed anything."""
    return bool(changes or files or (not existed and plan.target.prefix.exists()))


def _failure(plan: Plan, ran: Ran, changed: Sequence[str], done: str) -> Output:
    from panpan.capabilities.packages.conflict import conflict_in  # no session needs them before something fails
    from panpan.capabilities.packages.diagnosis import advice_for

    conflict = conflict_in(ran.end)
    advice = advice_for(ran.end)
    if conflict is not None and not conflict.needs and (advice is not None or ran.notes):
        conflict = None  # an index that was not reached has no versions, either
    said = [*_ending(plan, ran)]
    said += [f"no versions fit together: {conflict}" if conflict.needs else str(conflict)] if conflict else []
    said += [advice] if advice is not None else []
    said += [*ran.notes, *(changed or ["nothing was changed"]), *([way_back(plan)] if done else [])]
    most = _MOST_FAILURE_CHARS // 4 if conflict or advice else _MOST_FAILURE_CHARS
    rest = ran.end.strip()
    shown = rest if len(rest) <= most else f"…{rest[-most:]}"
    text = "\n".join([*said, "", f"the end of what `{ran.command[:200]}` printed:", shown or "(nothing)"])
    reason = said[1] if conflict or advice else said[0]
    return Output(text, SummaryDisplay(text=f"{reason}; {done}" if done else reason), is_error=True)


def _ending(plan: Plan, ran: Ran) -> list[str]:
    if ran.timed_out:
        return [f"timed out after {plan.timeout_s:g} s and was stopped"]
    return [f"exit code {ran.exit_code}"] if ran.exit_code else []


def changed_in_words(plan: Plan, changes: Changes, files: Sequence[FileStep], *, existed: bool) -> str:
    """Return what was changed, on one short line."""
    made = [f"made {plan.target.prefix.name}"] if not existed and plan.target.prefix.exists() else []
    names = [Path(file.path).name for file in files]
    said = [*made, *([changes.summary(plan.asked)] if changes else []), *names]
    return "; ".join(said) or "nothing changed"
