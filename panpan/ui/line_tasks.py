"""Background tasks where there are only lines: the ends are told before a prompt, and who leaves is asked about them.

The rule: nothing is printed while the user types, so the model is not woken for them; it hears of them with his next
prompt.
"""

from panpan.services.sessions.session import Session
from panpan.ui.leaving_tasks import tasks_to_ask_about
from panpan.ui.line_reader import LineReader
from panpan.ui.stdout import StdoutWriter
from panpan.ui.task_text import counted, ended_line, titles

STOP_OR_KEEP = "s stops before you leave, k keeps running: "


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

    async def ask(self) -> None:
        """Let the user who leaves say what becomes of those that run; without an answer they are stopped."""
        if tasks := tasks_to_ask_about(self._session):
            await self._out.write(f"{counted(tasks)}: {titles(tasks)}\n{STOP_OR_KEEP}")
            self._lines.go_on()  # a second Ctrl+D is no answer
            answer = await self._lines.next() or ""
            self._session.background.keeps = answer.strip().lower() in ("k", "keep")
