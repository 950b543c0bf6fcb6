"""A session that is not open, as it is exported."""

from datetime import datetime
from pathlib import Path

from panpan.services.sessions.export.transcript import Transcript
from panpan.services.sessions.fold import folded
from panpan.services.sessions.log import read_records
from panpan.types.messages import AssistantMessage


def transcript_of(log: Path, *, panpan_version: str) -> Transcript:
    """Return what a session consists of now.

    Raises:
        SessionError: The log cannot be read.
    """
    session = folded(read_records(log))
    models = [message.model for message in session.messages if isinstance(message, AssistantMessage)]
    return Transcript(
        session_id=log.stem,
        title=session.title or "",
        model=models[-1] if models else "",
        cwd=session.begun_in or "",
        panpan_version=panpan_version,
        exported_at=datetime.now().astimezone(),
        messages=tuple(session.messages),
        compactions=tuple(session.compactions),
    )
