"""How a session is left: at once, or once the user has said what becomes of the tasks that run in the background."""

import anyio

from panpan.capabilities.background.leaving_tasks import tasks_to_ask_about
from panpan.capabilities.background.task_text import cannot_be_kept, counted, titles
from panpan.core.command import Leave, Next, OpenSession, Option, Terminal, numbered
from panpan.faces.terminal.screen.canvas import say
from panpan.faces.terminal.work import Work
from panpan.session.session import Session


class Leaving:
    """Waits until the user leaves.

    Args:
        session: What he leaves.
        work: Does what he sends, until then.
        terminal: Lets him pick, and is told what comes then.
    """

    def __init__(self, session: Session, work: Work, terminal: Terminal) -> None:
        self.then: Next = Leave()
        """What comes after this session."""
        self._session = session
        self._work = work
        self._terminal = terminal
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
                if isinstance(self.then, OpenSession) and self.then.said:
                    say(self._terminal, self.then.said, "dim")
                self._is_at_once.set()
                return
            self.then = Leave()
            self._work.open()

    async def _may_leave(self) -> bool:
        """Let the user say what becomes of the tasks that run, and return whether he still wants to leave."""
        tasks = tasks_to_ask_about(self._session)
        if not tasks.all:
            return True
        title = f"{counted(tasks.all)}. Before you leave:"
        if not tasks.keepable:
            stop = Option("Stop and leave", cannot_be_kept(tasks.ending))
            return await self._terminal.choose(title, numbered([stop, Option("Stay here")])) == 0
        keep = f"panpan -r {self._session.info.id} takes up the session with them"
        if tasks.ending:
            keep = f"{cannot_be_kept(tasks.ending)}; {keep.removesuffix('them')}the others"
        options = [Option("Stop", titles(tasks.all)), Option("Keep running", keep), Option("Stay here")]
        picked = await self._terminal.choose(title, numbered(options))
        self._session.background.keeps = picked == 1
        return picked in (0, 1)
