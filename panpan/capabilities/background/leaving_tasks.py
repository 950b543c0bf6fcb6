"""Which background tasks the user is asked about when he leaves their session."""

from collections.abc import Sequence

from panpan.capabilities.background.background import TaskInfo
from panpan.session.session import Session
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class TasksAtLeaving:
    """Those that run and that the settings say nothing of."""

    keepable: Sequence[TaskInfo]
    """Those that can go on without panpan."""
    ending: Sequence[TaskInfo]
    """Those that end with it in any case: what was moved to the background, and subagents."""

    @property
    def all(self) -> Sequence[TaskInfo]:
        """All of them, those that can be kept first."""
        return [*self.keepable, *self.ending]


def tasks_to_ask_about(session: Session) -> TasksAtLeaving:
    """Return those that run, where the settings do not say what becomes of them.

    That commands are to be kept says nothing of what cannot be.
    """
    background, at_exit = session.background, session.settings.background.at_exit
    keepable = background.keepable
    kept = {task.id for task in keepable}
    ending = [task for task in background.running if task.id not in kept]
    return TasksAtLeaving(keepable if at_exit == "ask" else (), ending if at_exit != "stop" else ())
