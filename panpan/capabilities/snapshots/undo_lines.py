"""What undoing, redoing or rewinding would do to the files, in lines, for every face that asks about it."""

from collections.abc import Sequence

from panpan.capabilities.snapshots.plan import RestorePlan
from panpan.system.text.terminal_text import clean_for_terminal, clean_line
from panpan.types.file_change import FileChange, files_in_short

MAX_FILES = 50
"""That are listed; how many more there are is said."""
MAX_DIFF_LINES = 200

_SIGNS = {"added": "+", "deleted": "-", "modified": "~"}
_DONE = {"undo": "undone", "redo": "done again", "rewind": "brought back"}


def plan_lines(plan: RestorePlan) -> Sequence[str]:
    """Return the files that would change, and those that stay and why; safe for a terminal."""
    lines = [f"{plan.cause} changes {files_in_short(plan.files)}:"] if plan.files else []
    merged = set(plan.merged)
    files = [file for file in plan.files if not file.is_generated]
    lines += [f"  {change_line(file)}{_note(file, merged)}" for file in files[:MAX_FILES]]
    if len(files) > MAX_FILES:
        lines.append(f"  … {len(files) - MAX_FILES:,} more")
    if conflicts := list(plan.conflicts.items()):
        lines.append("these stay as they are:")
        lines += [f"  ! {clean_line(path)}: {clean_line(why)}" for path, why in conflicts[:MAX_FILES]]
        if len(conflicts) > MAX_FILES:
            lines.append(f"  … {len(conflicts) - MAX_FILES:,} more")
    return [*lines, *(clean_line(note) for note in plan.notes)]


def diff_lines(plan: RestorePlan) -> Sequence[str]:
    """Return the difference, cut where it is long; safe for a terminal."""
    lines = clean_for_terminal(plan.diff).split("\n")
    if len(lines) > MAX_DIFF_LINES:
        return [*lines[:MAX_DIFF_LINES], f"… {len(lines) - MAX_DIFF_LINES:,} more lines"]
    return lines if plan.diff else []


def change_line(change: FileChange) -> str:
    """Return what becomes of one file or folder, such as "~ src/app.py +3 -1"; safe for a terminal."""
    return f"{_SIGNS[change.kind]} {clean_line(change.path)} {_extent(change)}"


def _extent(change: FileChange) -> str:
    """Return how much of it changes, in lines where there are any."""
    if change.is_folder:
        return "folder, mode" if change.kind == "modified" else "folder"
    if change.added is None or change.deleted is None:
        return "binary"
    if change.added or change.deleted:
        return f"+{change.added:,} -{change.deleted:,}"
    return {"added": "new, empty", "deleted": "was empty", "modified": "mode"}[change.kind]


def nothing_to_do(plan: RestorePlan) -> str:
    """Return why there is nothing to ask about; empty where there is."""
    if plan.files:
        return ""
    if plan.conflicts:
        return "nothing can be brought back: each of these files was changed since"
    if plan.notes:
        return f"no file of this workspace was changed; the next {plan.cause} goes on from there"
    return f"the files are as they should be already; the next {plan.cause} goes on from there"


def done_line(plan: RestorePlan) -> str:
    """Return what was done, on one line."""
    if not plan.files:
        return f"no file was changed; the next {plan.cause} goes on from there"
    back = {"undo": "redo", "redo": "undo", "rewind": "undo"}[plan.cause]
    return f"{_DONE[plan.cause]}: {files_in_short(plan.files)}; {back} takes it back"


def _note(file: FileChange, merged: set[str]) -> str:
    return ", joined with what you changed since" if file.path in merged else ""
