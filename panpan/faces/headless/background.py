"""What a headless run does about background tasks: it wakes the model for them, and at its end they end, or go on."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio

from panpan.capabilities.background.background import titles
from panpan.capabilities.background.background_tasks import BackgroundTasks
from panpan.errors import ToolError
from panpan.faces.headless.face import HeadlessFace, Outcome
from panpan.faces.headless.prompts import PromptQueue
from panpan.session.session import Session


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


class Background:
    """Looks after the background tasks of a session.

    Args:
        session: The session; it has background tasks.
        face: Told when one starts or ends.
        warn: Prints one line for the user on standard error.
        drains: Whether they are waited for at the end.
    """

    def __init__(self, session: Session, face: HeadlessFace, warn: Callable[[str], None], *, drains: bool) -> None:
        self.drains = drains
        self._session = session
        self._tasks = session[BackgroundTasks]
        self._warn = warn
        self._lines = TaskLines(self._tasks, face)

    async def tell(self) -> None:
        """Tell the face of tasks, until cancelled."""
        await self._lines.run()

    async def has_news_before(self, queue: PromptQueue) -> bool:
        """Wait for a prompt or the end of the input; return whether the model is to be woken before there is one."""
        if not self._session.settings.background.wake:
            return False
        async with anyio.create_task_group() as waiting:
            waiting.start_soon(self._cancel_when_ready, queue, waiting.cancel_scope)
            while not self._session.may_be_woken:
                await self._tasks.wait_changed()
            waiting.cancel_scope.cancel("there is news")
        return not queue.is_ready

    async def _cancel_when_ready(self, queue: PromptQueue, scope: anyio.CancelScope) -> None:
        await queue.ready()
        scope.cancel("there is a prompt")

    async def drain(self, wake: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """Wait until none runs, and let the model know of each end; return how the last turn ended.

        Args:
            wake: Runs a turn for what the model does not know yet; none follows one that fails.
        """
        outcome = Outcome()
        while not outcome.error:
            if self._session.may_be_woken:
                outcome = await wake()
            elif self._tasks.running:
                await self._tasks.wait_changed()
            else:
                break
        return outcome

    async def stop(self) -> None:
        """Stop those that do not go on without panpan, name them, and tell the face of it."""
        kept = {task.id for task in self._tasks.keepable} if self._tasks.keeps else ()
        going = [task for task in self._tasks.running if task.id not in kept]
        async with anyio.create_task_group() as stopping:
            for task in going:
                stopping.start_soon(self._stop, task.id)
        if going:
            self._warn(f"stopped in the background: {titles(going)}")
        await self._lines.tell()

    async def _stop(self, task_id: str) -> None:
        with suppress(ToolError):  # what cannot be ended is named when the session is closed
            await self._tasks.stop(task_id)
