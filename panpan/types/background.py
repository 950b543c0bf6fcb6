"""What is known of a task that goes on beside the conversation: a command, a subagent or a download."""

from pathlib import Path
from typing import Literal, TypeAlias

from panpan.types.dataclass import dataclass

TaskKind: TypeAlias = Literal["command", "subagent", "download"]

TaskState: TypeAlias = Literal["running", "finished", "failed", "stopped", "lost"]
"""It runs; it ended well; it ended otherwise; it was ended; nobody knows what became of it, as after a crash."""


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """A background task as it is at one moment."""

    id: str
    """Eight characters, unique within the session."""
    kind: TaskKind
    title: str
    """What it does, on one line."""
    state: TaskState
    started_at: float
    """Seconds since 1970."""
    output: Path
    """File with all that it printed so far, as far as that is kept."""
    ended_at: float | None = None
    """Seconds since 1970; None while it runs, or where that is not known."""
    exit_code: int | None = None
    """As a shell tells it; None while it runs, for subagents, and where it is not known."""
    tool_use_id: str = ""
    """The call that started it."""
    agent_id: str = ""
    """The subagent that it is; empty for commands."""
    note: str = ""
    """What one should know of its end, such as that it was ended for its output; empty where that is nothing."""

    @property
    def is_running(self) -> bool:
        """True if it has not ended yet, as far as is known."""
        return self.state == "running"
