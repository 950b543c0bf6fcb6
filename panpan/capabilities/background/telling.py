"""What the model is told of a task, and what a result told it."""

import re
import time

from panpan.types.background import TaskInfo

_TELLING_TOOLS = ("TaskOutput", "TaskStop")
"""Tools of whose results the first line counts; others show what commands and files say."""

_ENDED = re.compile(r"task ([0-9a-f]{8}): (?:finished|failed|stopped|lost)\b")


def state_line(info: TaskInfo) -> str:
    """Return what became of a task, or that it runs, on one line."""
    parts: list[str] = [info.state]
    if info.exit_code is not None:
        parts.append(f"exit code {info.exit_code}")
    end = time.time() if info.is_running else info.ended_at
    if end is not None:
        parts.append(f"{max(0.0, end - info.started_at):,.0f} s")
    note = f" ({info.note})" if info.note else ""
    return f"task {info.id}: {', '.join(parts)}{note}"


def ended_in_result(tool: str, text: str) -> str | None:
    """Return the id of the task whose end a result of a tool tells; None where it tells of none."""
    found = _ENDED.match(text) if tool in _TELLING_TOOLS else None
    return found[1] if found else None
