"""The flags that let a refused call run where nobody is asked: the one place that knows which helps against what.

Each is written as a command line takes it, so that it can be copied.
"""

import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from panpan.types.permission import Reason, ReasonKind

SANDBOX_OFF = "--sandbox off"
ACCEPT_EDITS = "--permission-mode acceptEdits"
TRUST = "--trust"
YES = "--yes"
PACKAGE_INDEXES = "package-indexes"
"""Stands, in a list of hosts, for all that package managers fetch from."""
_LEAVE_PLAN_MODE = "--permission-mode default"


def network_flag(hosts: Sequence[str] = ()) -> str:
    """Return what opens the network to commands.

    Args:
        hosts: Those that are enough; none: the whole network.
    """
    return f"--allow-network={','.join(hosts)}" if hosts else "--allow-network"


def outside_flag(pattern: str) -> str:
    """Return what lets commands of this pattern, as in `Bash(…)`, out of the sandbox."""
    return f"--allow-outside {shlex.quote(pattern)}"


def question_flag(kind: "ReasonKind", rule: str | None, *, is_edit: bool, is_allowed_by_project: bool) -> str:
    """Return what answers a question that flags may answer.

    Args:
        kind: What the question rests on.
        rule: The rule that would allow the call; None where no rule can.
        is_edit: Whether it changes files with a tool for that.
        is_allowed_by_project: Whether rules of the project allow it, which count only in a trusted one.
    """
    if kind not in ("not-allowed", "unknown", "outside"):
        return YES
    if is_allowed_by_project:
        return TRUST
    if is_edit and kind == "not-allowed":
        return ACCEPT_EDITS
    return f"--allowedTools {shlex.quote(rule)}" if rule else YES


def flags_out_of_dont_ask(flags: str) -> str:
    """Return what lets a call run that the mode dontAsk denies, from what would answer the question about it."""
    return "" if flags == YES else flags  # nobody is asked who could say yes


def flags_out_of_plan_mode(flags: str) -> str:
    """Return what lets a call run that plan mode denies.

    Args:
        flags: What would answer the question about it in the mode default; empty where that asks nothing.
    """
    return flags if flags == ACCEPT_EDITS else f"{_LEAVE_PLAN_MODE} {flags}".rstrip()


def flags_for(reasons: Iterable["Reason"]) -> str:
    """Return what answers all of these reasons together; empty where nothing answers one of them."""
    flags = [reason.flags for reason in reasons]
    return " ".join(dict.fromkeys(flags)) if all(flags) else ""


def single_flags(flags: str) -> list[str]:
    """Return each flag of a command line with its value, as it is written there."""
    words: list[list[str]] = []
    for word in shlex.split(flags):
        if word.startswith("--") or not words:
            words.append([])
        words[-1].append(word)
    return [shlex.join(of_flag) for of_flag in words]
