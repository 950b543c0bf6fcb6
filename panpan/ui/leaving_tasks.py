"""Which background tasks the user is asked about when he leaves their session."""

from collections.abc import Sequence

from panpan.services.sessions.session import Session
from panpan.types.background import TaskInfo


def tasks_to_ask_about(session: Session) -> Sequence[TaskInfo]:
    """Return those that run and could go on without panpan, where the settings do not say what becomes of them."""
    return session.background.keepable if session.settings.background.at_exit == "ask" else ()
