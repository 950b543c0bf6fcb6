"""How a session is left: at once, or once the user has said what becomes of the tasks that run in the background."""

from collections.abc import Awaitable, Callable, Sequence

import anyio

from panpan.services.sessions.session import Session
from panpan.ui.leaving_tasks import tasks_to_ask_about
from panpan.ui.repl.commands.command import Leave, Next, Option
from panpan.ui.repl.work import Work
from panpan.ui.task_text import counted, titles


class Leaving:
    """Waits until the user leaves.

    Args:
        session: What he leaves.
        work: Does what he sends, until then.
        choose: Lets him pick.
    """

    def __init__(
        self, session: Session, work: Work, choose: Callable[[str, Sequence[Option]], Awaitable[int | None]]
    ) -> None:
        self.then: Next = Leave()
        """What comes after this session."""
        self._session = session
        self._work = work
        self._choose = choose
        self._is_wanted = anyio.Event()
        self._is_at_once = anyio.Event()

    def want(self, then: Next) -> None:
        """Leave, unless the user changes his mind when he is asked about tasks that run."""
        self.then = then
        self._work.close()
        self._is_wanted.set()

    def want_at_once(self) -> None:
        """End the program, whatever runs and is asked."""
        self.then = Leave()
        self._work.close()
        self._is_at_once.set()

    async def wait(self) -> None:
        """Return when the session is left."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._ask_when_wanted)
            await self._is_at_once.wait()
            tasks.cancel_scope.cancel("the user left")

    async def _ask_when_wanted(self) -> None:
        while True:
            await self._is_wanted.wait()
            self._is_wanted = anyio.Event()
            if await self._may_leave():
                self._is_at_once.set()
                return
            self.then = Leave()
            self._work.open()

    async def _may_leave(self) -> bool:
        """Let the user say what becomes of the tasks that run, and return whether he still wants to leave."""
        tasks = tasks_to_ask_about(self._session)
        if not tasks:
            return True
        options = [
            Option("Stop", titles(tasks)),
            Option("Keep running", f"panpan -r {self._session.info.id} takes up the session with them"),
            Option("Stay here"),
        ]
        picked = await self._choose(f"{counted(tasks)}. Before you leave:", options)
        self._session.background.keeps = picked == 1
        return picked in (0, 1)
