"""What becomes of background tasks when the user leaves their session: he is asked, unless his settings say it."""

from collections.abc import Awaitable, Callable, Sequence

from panpan.services.sessions.session import Session
from panpan.types.background import TaskInfo
from panpan.ui.repl.commands.command import Option
from panpan.ui.task_text import counted, titles


def tasks_to_ask_for(session: Session) -> Sequence[TaskInfo]:
    """Return the commands that run and could go on without panpan, where the settings do not say what becomes of them.

    Subagents cannot: they end with the session.
    """
    if session.settings.background.at_exit != "ask":
        return ()
    return [task for task in session.background.running if task.kind == "command"]


async def may_leave(session: Session, choose: Callable[[str, Sequence[Option]], Awaitable[int | None]]) -> bool:
    """Let the user say what becomes of the tasks that run, and return whether he still wants to leave.

    Args:
        session: The one that he leaves.
        choose: Lets him pick.
    """
    tasks = tasks_to_ask_for(session)
    if not tasks:
        return True
    options = [
        Option("Stop", titles(tasks)),
        Option("Keep running", f"panpan -r {session.info.id} takes up the session with them"),
        Option("Stay here"),
    ]
    picked = await choose(f"{counted(tasks)}. Before you leave:", options)
    session.background.keeps = picked == 1
    return picked in (0, 1)
