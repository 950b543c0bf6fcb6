"""Follows the background tasks of a session: says which have ended, and has the model woken for them.

The rule: a task that somebody stopped wakes nobody; what the model has not heard of it, it hears with the next turn.
"""

from collections.abc import Callable, Sequence

from panpan.capabilities.background.background import TaskInfo
from panpan.capabilities.background.background_tasks import BackgroundTasks
from panpan.capabilities.background.task_text import ended_line


class BackgroundWatch:
    """Sees tasks end.

    Args:
        background: The tasks.
        say: Shows a line.
        wake: Lets the model know as soon as nothing else is going on.
        refresh: Draws what tells of tasks that run.
    """

    def __init__(
        self,
        background: BackgroundTasks,
        say: Callable[[str], None],
        wake: Callable[[], None],
        refresh: Callable[[], None],
    ) -> None:
        self._background = background
        self._say = say
        self._wake = wake
        self._refresh = refresh
        self._over = {task.id for task in background.tasks if not task.is_running}

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            ended = self._newly_ended()
            for task in ended:
                self._say(ended_line(task))
            if any(task.state != "stopped" for task in ended):
                self._wake()
            self._refresh()
            await self._background.wait_changed()

    def _newly_ended(self) -> Sequence[TaskInfo]:
        ended = [task for task in self._background.tasks if not task.is_running and task.id not in self._over]
        self._over |= {task.id for task in ended}
        return ended
