"""Checks of `panpan doctor`: worktrees of subagents whose session has ended."""

import shlex
from collections.abc import Iterable

from panpan.capabilities.subagents.worktrees.worktree import orphaned_worktrees
from panpan.cli_kit.doctor import Check, FeatureChecks, Machine, name_first


def check_worktrees(machine: Machine) -> Iterable[Check]:
    """Yield the worktrees that sessions of the project left."""
    left = [worktree.top for worktree in orphaned_worktrees(machine.locations.worktrees_folder)]
    if left:
        advice = (
            "changes of subagents that were not merged; the next session here removes those without changes, and "
            "merges or discards the others when you ask for it. Without it: git worktree remove --force "
            f"{shlex.quote(str(left[0]))}"
        )
        yield Check("worktrees", "note", f"left by sessions that ended: {name_first(left)}", advice)


CHECKS: FeatureChecks = {"leavings": check_worktrees}
