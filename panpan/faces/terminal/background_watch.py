"""Background tasks on the screen: reported when they end, and asked about when the user leaves."""

from collections.abc import Callable, Sequence

import anyio

from panpan.core.background import Background
from panpan.faces.terminal.prompt_queue import PromptQueue, ReplTerminal
from panpan.faces.terminal.rendering.cells import say
from panpan.session.command import Leave, Next, OpenSession, Option, number_options
from panpan.session.descriptions import cannot_be_kept, count_tasks, ended_line, tasks_to_ask_about, titles
from panpan.session.session import Session
from panpan.types.events import TaskInfo

# Follows the background tasks of a session: shows which have ended, and wakes the model for them.
#
# The rule: a stopped task does not wake the model, which hears of it with the next turn.


class BackgroundWatch:
    """Reports tasks that end.

    Args:
        background: The tasks; None if the session has no background tasks.
        say: Shows a line.
        wake: Wakes the model as soon as nothing else is going on.
        refresh: Redraws the display of running tasks.
    """

    def __init__(
        self,
        background: Background | None,
        say: Callable[[str], None],
        wake: Callable[[], None],
        refresh: Callable[[], None],
    ) -> None:
        self._background = background
        self._say = say
        self._wake = wake
        self._refresh = refresh
        self._over = {task.id for task in self._tasks if not task.is_running}

    async def run(self) -> None:
        while True:
            ended = self._newly_ended()
            for task in ended:
                self._say(ended_line(task))
            if any(task.state != "stopped" for task in ended):
                self._wake()
            self._refresh()
            if self._background is None:
                return
            await self._background.wait_changed()

    @property
    def _tasks(self) -> Sequence[TaskInfo]:
        return () if self._background is None else self._background.tasks

    def _newly_ended(self) -> Sequence[TaskInfo]:
        ended = [task for task in self._tasks if not task.is_running and task.id not in self._over]
        self._over |= {task.id for task in ended}
        return ended


class ExitRequest:
    """Waits until the user leaves.

    Args:
        session: The session to leave.
        prompts: Runs the user's prompts until then.
        terminal: Shows the question about running tasks.
    """

    def __init__(self, session: Session, prompts: PromptQueue, terminal: ReplTerminal) -> None:
        self.then: Next = Leave()
        """Next step after this session."""
        self._session = session
        self._prompts = prompts
        self._terminal = terminal
        self._is_wanted = anyio.Event()
        self._is_at_once = anyio.Event()

    def request(self, then: Next) -> None:
        """Leave, unless the user decides to stay when asked about running tasks."""
        self.then = then
        self._prompts.close()
        self._is_wanted.set()

    def request_now(self) -> None:
        """End the program at once, without a question."""
        self.then = Leave()
        self._prompts.close()
        self._is_at_once.set()

    async def wait(self) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._ask_when_wanted)
            await self._is_at_once.wait()
            tasks.cancel_scope.cancel("the user left")

    async def _ask_when_wanted(self) -> None:
        while True:
            await self._is_wanted.wait()
            self._is_wanted = anyio.Event()
            if await self._may_leave():
                if isinstance(self.then, OpenSession) and self.then.message:
                    say(self._terminal, self.then.message, "dim")
                self._is_at_once.set()
                return
            self.then = Leave()
            self._prompts.open()

    async def _may_leave(self) -> bool:
        """Ask the user about the running tasks, and return True if they still want to leave."""
        tasks = tasks_to_ask_about(self._session)
        if not tasks.all:
            return True
        title = f"{count_tasks(tasks.all)}. Before you leave:"
        if not tasks.keepable:
            stop = Option("Stop and leave", cannot_be_kept(tasks.ending))
            return await self._terminal.choose(title, number_options([stop, Option("Stay here")])) == 0
        keep = f"panpan -r {self._session.info.id} takes up the session with them"
        if tasks.ending:
            keep = f"{cannot_be_kept(tasks.ending)}; {keep.removesuffix('them')}the others"
        options = [Option("Stop", titles(tasks.all)), Option("Keep running", keep), Option("Stay here")]
        picked = await self._terminal.choose(title, number_options(options))
        self._session[Background].keep_at_exit(keeps=picked == 1)
        return picked in (0, 1)
