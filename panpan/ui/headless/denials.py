"""What a run in which nobody is asked says at its end of forbidden calls, and how they could be allowed."""

from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

from panpan.types.events import PermissionDecided
from panpan.types.permission import AskedOf
from panpan.ui.headless.face import TurnSummary

_Kind: TypeAlias = AskedOf | Literal["protected"]

_HOW: Mapping[_Kind, str] = {
    "nobody": "a rule or the mode forbids them, as their results say",
    "anybody": (
        "with -p or a pipe nobody is asked: say what is allowed (--allowedTools, --yes, --permission-mode), or run "
        "panpan without -p"
    ),
    "protected": "no flag and no rule allows these; run panpan without -p, which asks",
    "a person": (
        "no flag allows these; for leaving the sandbox the settings sandbox.domains and sandbox.outside do, else run "
        "panpan without -p, which asks"
    ),
}


def denials_told(summary: TurnSummary) -> Iterator[str]:
    """Yield a line for each way in which calls were forbidden."""
    denials = [use for use in summary.denials if not _is_repeat(summary.decided[use.id])]
    for kind, how in _HOW.items():
        uses = [use for use in denials if _kind(summary.decided[use.id]) == kind]
        if uses:
            names = ", ".join(dict.fromkeys(use.name for use in uses))
            why = f": {summary.decided[uses[0].id].reasons[0].text}" if kind == "protected" else ""
            more = f" (and {len(uses) - 1} more)" if why and len(uses) > 1 else ""
            yield f"not allowed, and not run: {len(uses)} of the calls ({names}){why}{more}; {how}"


def _is_repeat(decided: PermissionDecided) -> bool:
    """True for a call that was stopped because it repeats others; the error of the turn tells of these."""
    return any(reason.kind == "doom-loop" for reason in decided.reasons)


def _kind(decided: PermissionDecided) -> _Kind:
    is_protected = decided.asked_of == "a person" and any(one.kind == "protected" for one in decided.reasons[:1])
    return "protected" if is_protected else decided.asked_of
