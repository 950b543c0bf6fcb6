"""What panpans that ended in the middle of their work have left; nothing of it is in the way.

A check that finds nothing is not told.
"""

import shlex
from collections.abc import Sequence
from pathlib import Path

from panpan.cli.doctor.doctor_checks import Check
from panpan.config.locations import Locations

_MAX_NAMED = 5


def check_leavings(locations: Locations) -> list[Check]:
    """What sessions of this project have left."""
    return [*_check_tasks(locations), *_check_worktrees(locations), *_check_unfinished(locations)]


def _check_tasks(locations: Locations) -> list[Check]:
    """Commands that go on in the background although nobody has their session open."""
    from panpan.capabilities.background.left_running import left_running

    left: dict[str, list[str]] = {}
    for session_id, task in left_running(locations.tasks_folder, locations.sessions_folder):
        left.setdefault(session_id, []).append(task.title)
    return [
        Check("tasks", "note", f"running in the background: {_named(titles)}", f"panpan -r {session_id} takes them up")
        for session_id, titles in left.items()
    ]


def _check_worktrees(locations: Locations) -> list[Check]:
    """Worktrees of subagents whose session has ended."""
    from panpan.capabilities.subagents.worktrees.worktree import left_worktrees

    left = [worktree.top for worktree in left_worktrees(locations.worktrees_folder)]
    if not left:
        return []
    advice = (
        "changes of subagents that were not merged; the next session here removes those without changes, and merges or "
        f"discards the others when you ask for it. Without it: git worktree remove --force {shlex.quote(str(left[0]))}"
    )
    return [Check("worktrees", "note", f"left by sessions that ended: {_named(left)}", advice)]


def _check_unfinished(locations: Locations) -> list[Check]:
    """Sessions that a fork or an import did not write to the end."""
    from panpan.session.whole_log import left_unfinished

    left = left_unfinished([locations.sessions_folder])
    return [Check("unfinished", "note", f"no session: {_named(left)}", how_to_remove(left))] if left else []


def how_to_remove(unfinished: Sequence[Path]) -> str:
    """Return what to do about files that a fork or an import left."""
    files = " ".join(shlex.quote(str(path)) for path in unfinished[:_MAX_NAMED])
    return f"a fork or an import was killed at work; the session that it copied is whole. Remove with: rm {files}"


def _named(places: Sequence[object]) -> str:
    more = len(places) - _MAX_NAMED
    return ", ".join(map(str, places[:_MAX_NAMED])) + (f" and {more} more" if more > 0 else "")
