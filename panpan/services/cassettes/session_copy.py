"""From messages of a cassette to a session that can be gone on with."""

from collections.abc import Iterable
from pathlib import Path

from panpan.services.cassettes.changed_text import Change, changed_json
from panpan.services.sessions.compaction_record import compaction_record
from panpan.services.sessions.log import SessionLog
from panpan.services.sessions.records import record_of
from panpan.services.sessions.store import session_path
from panpan.types.compaction import Compaction
from panpan.types.ids import new_id
from panpan.types.messages import Message


def write_session(
    folder: Path,
    messages: Iterable[Message],
    cwd: Path,
    *,
    compactions: Iterable[Compaction] = (),
    change: Change = lambda text: text,
) -> str:
    """Write a session of its own that begins with `messages`, and return its id.

    Args:
        folder: Where sessions of the project lie.
        messages: What was said, valid to send.
        cwd: Where the session works.
        compactions: What was made shorter of them, oldest first.
        change: Changes the texts, such as the path of the workspace.

    Raises:
        SessionError: The log cannot be opened.
        SessionLogError: It cannot be written.
    """
    session_id = new_id()
    log = SessionLog(session_path(folder, session_id), session_id=session_id, cwd=cwd)
    try:
        for message in messages:
            log.append(changed_json(record_of(message), change))
        for compaction in compactions:
            log.append(compaction_record(compaction))
        log.sync()
    finally:
        log.close()
    return session_id
