"""Which background tasks the user is asked about when he leaves their session."""

from collections.abc import Sequence

from panpan.services.sessions.session import Session
from panpan.types.background import TaskInfo


def tasks_to_ask_about(session: Session) -> Sequence[TaskInfo]:
    """Return the commands that run and could go on without panpan, where the settings do not say what becomes of them.

    Subagents cannot: they end with the session.
    """
    if session.settings.background.at_exit != "ask":
        return ()
    return [task for task in session.background.running if task.kind == "command"]
