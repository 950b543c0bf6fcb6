"""What a run in which nobody is asked says at its end of forbidden calls, and how they could be allowed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from panpan.faces.headless.face import TurnSummary
from panpan.types.allowing_flags import YES, flags_for, single_flags
from panpan.types.content import ToolUseBlock
from panpan.types.events import PermissionDecided
from panpan.types.permission import AskedOf

_Kind: TypeAlias = AskedOf | Literal["protected"]

_HOW: Mapping[_Kind, str] = {
    "nobody": "a rule or the mode forbids it, see the result of the call",
    "anybody": f"-p cannot ask; allow it with {YES}, or run panpan without -p",
    "protected": "no flag and no rule allows it; run panpan without -p, which asks",
    "a person": "no flag allows it; run panpan without -p, which asks",
}
_MOST_CALLS = 5
"""Calls with different flags in one line."""


def denials_told(summary: TurnSummary) -> Iterator[str]:
    """Yield a line for each way in which calls were forbidden."""
    denials = [use for use in summary.denials if not _is_repeat(summary.decided[use.id])]
    for kind, how in _HOW.items():
        uses = [use for use in denials if _kind(summary.decided[use.id]) == kind]
        flags = _flags([summary.decided[use.id] for use in uses])
        if flags and kind != "protected":
            how = f"-p cannot ask; allow it with {flags}"
        if uses:
            yield f"{_blocked(uses)}{_why(summary, uses) if kind == 'protected' else ''}; {how}"


def allowed_with(decided: PermissionDecided) -> str:
    """Return the flags that would have let a denied call run; empty where none would."""
    return flags_for(decided.reasons)


def _flags(decided: Sequence[PermissionDecided]) -> str:
    """Return the flags for all calls that flags would have let run, as one command line takes them.

    A call is named with all its flags or not at all, since some of them alone do not let it run.
    """
    by_call = list(dict.fromkeys(filter(None, map(allowed_with, decided))))
    flags = dict.fromkeys(flag for of_call in by_call[:_MOST_CALLS] for flag in single_flags(of_call))
    left_out = len(by_call) - _MOST_CALLS
    more = f" (and those of {left_out} more)" if left_out > 0 else ""
    return f"{' '.join(flags)}{more}"


def _blocked(uses: Sequence[ToolUseBlock]) -> str:
    names = ", ".join(dict.fromkeys(use.name for use in uses))
    return f"{len(uses)} {'call was' if len(uses) == 1 else 'calls were'} blocked ({names})"


def _why(summary: TurnSummary, uses: Sequence[ToolUseBlock]) -> str:
    more = f" (and {len(uses) - 1} more)" if len(uses) > 1 else ""
    return f": {summary.decided[uses[0].id].reasons[0].text}{more}"


def _is_repeat(decided: PermissionDecided) -> bool:
    """True for a call that was stopped because it repeats others; the error of the turn tells of these."""
    return any(reason.kind == "doom-loop" for reason in decided.reasons)


def _kind(decided: PermissionDecided) -> _Kind:
    is_protected = decided.asked_of == "a person" and any(one.kind == "protected" for one in decided.reasons[:1])
    return "protected" if is_protected else decided.asked_of
