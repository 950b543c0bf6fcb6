"""A plan as lines, with what can be answered."""

from collections.abc import Mapping

from panpan.system.text.terminal_text import spelled_out
from panpan.types.permission import PermissionMode
from panpan.types.plan import PlanProposal

PLAN_KEYS: Mapping[str, PermissionMode] = {
    "y": "default",
    "yes": "default",
    "a": "acceptEdits",
    "d": "dontAsk",
    "b": "bypassPermissions",
}
"""What is typed to approve a plan, and the mode in which the work goes on then, where that is offered."""

_ANSWERS: Mapping[PermissionMode, str] = {
    "default": "y = go on, and ask before changes",
    "acceptEdits": "a = go on, and change files of the workspace unasked",
    "dontAsk": "d = go on in the mode dontAsk, as before",
    "bypassPermissions": "b = go on in the mode bypassPermissions, as before: nearly everything runs unasked",
}


def plan_text(proposal: PlanProposal, file: str) -> str:
    """Return the plan, with what cannot be seen spelled out, where it is kept, and the answers."""
    plan = [f"    {spelled_out(line)}" for line in proposal.text.split("\n")]
    answers = [f"  {_ANSWERS[mode]}" for mode in proposal.modes if mode in _ANSWERS]
    return "\n".join(
        [
            "? The plan:",
            *plan,
            f"  (kept in {spelled_out(file)})",
            *answers,
            "  n = keep planning, or type what should be otherwise: ",
        ]
    )
