"""Background tasks where there are only lines: the ends are told before a prompt, and who leaves is asked about them.

The rule: nothing is printed while the user types, so the model is not woken for them; it hears of them with his next
prompt.
"""

from panpan.capabilities.background.leaving_tasks import tasks_to_ask_about
from panpan.capabilities.background.task_text import cannot_be_kept, counted, ended_line, titles
from panpan.cli_kit.stdout import StdoutWriter
from panpan.faces.plain.line_reader import LineReader
from panpan.session.session import Session

STOP_OR_KEEP = "s stops before you leave, k keeps running, b goes back to the session: "
STOP_OR_STAY = "s stops and leaves, b goes back to the session: "


class LineTasks:
    """Tells of the tasks of one session.

    Args:
        session: The session.
        out: Standard output.
        lines: What the user types.
    """

    def __init__(self, session: Session, out: StdoutWriter, lines: LineReader) -> None:
        self._session = session
        self._out = out
        self._lines = lines
        self._told = {task.id for task in session.background.tasks if not task.is_running}

    async def say_what_ended(self) -> None:
        """Print a line for each task that has ended since this was last asked for."""
        for task in self._session.background.tasks:
            if not task.is_running and task.id not in self._told:
                self._told.add(task.id)
                await self._out.write(f"{ended_line(task)}\n")

    async def may_leave(self) -> bool:
        """Let the user who leaves say what becomes of those that run, and return whether he still wants to leave.

        Without an answer they are stopped.
        """
        tasks = tasks_to_ask_about(self._session)
        if not tasks.all:
            return True
        unkept = f"{cannot_be_kept(tasks.ending)}\n" if tasks.ending else ""
        choices = STOP_OR_KEEP if tasks.keepable else STOP_OR_STAY
        await self._out.write(f"{counted(tasks.all)}: {titles(tasks.all)}\n{unkept}{choices}")
        self._lines.go_on()  # a second Ctrl+D is no answer
        answer = (await self._lines.next() or "").strip().lower()
        stays = answer in ("b", "back")
        if tasks.keepable and not stays:
            self._session.background.keeps = answer in ("k", "keep")
        return not stays
