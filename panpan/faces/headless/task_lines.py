"""Tells the face of a headless run of background tasks: that one has started, and how it ended."""

from panpan.capabilities.background.background_tasks import BackgroundTasks
from panpan.faces.headless.face import HeadlessFace


class TaskLines:
    """Follows the tasks of a session; each start and each end is told once.

    Args:
        background: The tasks. Those that have ended already are not told.
        face: Who is told.
    """

    def __init__(self, background: BackgroundTasks, face: HeadlessFace) -> None:
        self._background = background
        self._face = face
        self._ended = {task.id for task in background.tasks if not task.is_running}
        self._started = set(self._ended)

    async def run(self) -> None:
        """Tell until cancelled."""
        while True:
            await self.tell()
            await self._background.wait_changed()

    async def tell(self) -> None:
        """Tell what is new."""
        for task in self._background.tasks:
            if task.id not in self._started:
                self._started.add(task.id)
                await self._face.task_started(task)
            if not task.is_running and task.id not in self._ended:
                self._ended.add(task.id)
                await self._face.task_ended(task)
