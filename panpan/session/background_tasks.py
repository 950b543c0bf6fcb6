"""Background tasks for people: in words, and those that are asked about when the user leaves."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from panpan.core.background import Background
from panpan.system.text.terminal_text import clean_line, spoken_s
from panpan.types.dataclass import dataclass
from panpan.types.events import TaskInfo, TaskState

if TYPE_CHECKING:
    from panpan.session.session import Session

_ENDS: dict[TaskState, str] = {
    "running": "runs",
    "finished": "ended",
    "failed": "failed",
    "stopped": "was stopped",
    "lost": "was lost",
}
_MOST_NAMED = 5


def ended_line(task: TaskInfo) -> str:
    """Return the sentence that a task has ended."""
    facts = [fact for fact in (_exit_code(task), clean_line(task.note)) if fact]
    more = f" ({'; '.join(facts)})" if facts else ""
    return f"Background task {task.id} {_ENDS[task.state]}: {clean_line(task.title)}{more}"


def task_detail(task: TaskInfo, now: float) -> str:
    """Return the state of a task in a list: how long it has run by `now`, or how it ended, and its id."""
    end = now if task.is_running else task.ended_at
    time = "" if end is None else spoken_s(max(end - task.started_at, 0.0))
    facts = ["running" if task.is_running else task.state, _exit_code(task), time, clean_line(task.note), task.id]
    return ", ".join(fact for fact in facts if fact)


def counted(tasks: Sequence[TaskInfo]) -> str:
    """Return a count such as "2 background tasks run"."""
    return f"{len(tasks)} background task{'s run' if len(tasks) != 1 else ' runs'}"


def cannot_be_kept(tasks: Sequence[TaskInfo]) -> str:
    """Return that tasks end with panpan."""
    return f"cannot be kept running: {titles(tasks)}"


def titles(tasks: Sequence[TaskInfo]) -> str:
    """Return the titles of the first tasks."""
    names = [clean_line(task.title) for task in tasks[:_MOST_NAMED]]
    more = [f"and {len(tasks) - _MOST_NAMED:,} more"] if len(tasks) > _MOST_NAMED else []
    return ", ".join([*names, *more])


def _exit_code(task: TaskInfo) -> str:
    return "" if task.exit_code is None else f"exit code {task.exit_code}"


@dataclass(frozen=True, slots=True)
class TasksAtLeaving:
    """Those that run and that the settings say nothing of."""

    keepable: Sequence[TaskInfo]
    """Those that can go on without panpan."""
    ending: Sequence[TaskInfo]
    """Those that end with it in any case: what was moved to the background, and subagents."""

    @property
    def all(self) -> Sequence[TaskInfo]:
        return [*self.keepable, *self.ending]


def tasks_to_ask_about(session: "Session") -> TasksAtLeaving:
    """Return those that run, where the settings do not say what becomes of them."""
    background, at_exit = session.find(Background), session.settings.background.at_exit
    if background is None:
        return TasksAtLeaving((), ())
    keepable = background.keepable
    kept = {task.id for task in keepable}
    ending = [task for task in background.running if task.id not in kept]
    return TasksAtLeaving(keepable if at_exit == "ask" else (), ending if at_exit != "stop" else ())
