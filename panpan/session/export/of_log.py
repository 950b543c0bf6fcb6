"""Transcripts read from the logs of a session and its subagents."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from panpan.errors import SessionError
from panpan.session.agent_log import agent_logs, agents_folder, begun_by
from panpan.session.export.transcript import Transcript
from panpan.session.fold import folded
from panpan.session.log import read_records
from panpan.types.messages import AssistantMessage


def transcript_of(log: Path, *, panpan_version: str) -> Transcript:
    """Return a session as it is now, with its subagents.

    Raises:
        SessionError: The log cannot be read.
    """
    transcript = _transcript(list(read_records(log)), log.stem, panpan_version)
    return replace(transcript, subagents=subagent_transcripts(log, panpan_version=panpan_version))


def subagent_transcripts(log: Path, *, panpan_version: str) -> Sequence[Transcript]:
    """Return the conversations of a session's subagents, oldest first, without those that cannot be read.

    Args:
        log: Log of the session, which need not exist any more.
        panpan_version: Of the panpan that exports them.
    """
    found: list[Transcript] = []
    for path in agent_logs(agents_folder(log.parent, log.stem)):
        with suppress(SessionError):
            records = list(read_records(path))
            turns = [turn for record in records if (turn := begun_by(record)) is not None]
            if turns:
                transcript = _transcript(records, log.stem, panpan_version)
                calls = [turn.tool_use_id for turn in turns if not turn.parent]
                found.append(replace(transcript, agent_id=turns[0].id, title=turns[0].label, begun_by=calls))
    return found


def _transcript(records: Sequence[Mapping[str, Any]], session_id: str, panpan_version: str) -> Transcript:
    session = folded(records)
    models = [message.model for message in session.messages if isinstance(message, AssistantMessage)]
    return Transcript(
        session_id=session_id,
        title=session.title or "",
        model=models[-1] if models else "",
        cwd=session.begun_in or "",
        panpan_version=panpan_version,
        exported_at=datetime.now().astimezone(),
        messages=tuple(session.messages),
        compactions=tuple(session.compactions),
        git_branch=session.git_branch,
    )
