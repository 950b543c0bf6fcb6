"""Writes what was imported as a session: whole, or not at all."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from panpan.errors import SessionError
from panpan.services.sessions.compaction_record import compaction_record
from panpan.services.sessions.importing.conversion import Converted
from panpan.services.sessions.log import SessionLog
from panpan.services.sessions.records import record_of, title_record
from panpan.services.sessions.store import session_path
from panpan.types.ids import new_id


def write_session(converted: Converted, folder: Path, *, source: Path) -> Path:
    """Write a new session and return its log.

    Args:
        converted: What it consists of.
        folder: Session folder of the project.
        source: Where it comes from, for whoever reads the log.

    Raises:
        SessionError: It cannot be written.
        SessionLogError: The disk is full.
    """
    session_id = new_id()
    target = session_path(folder, session_id)
    unfinished = target.with_suffix(".import")
    log = SessionLog(unfinished, session_id=session_id, cwd=Path(converted.cwd or "."))
    try:
        try:
            for record in _records(converted, source):
                log.append(record)
            log.sync()
        finally:
            log.close()
        unfinished.rename(target)
    except OSError as error:
        raise SessionError(f"the session cannot be written to {target}: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    os.utime(target)
    return target


def _records(converted: Converted, source: Path) -> Iterator[Mapping[str, Any]]:
    yield {"type": "system", "subtype": "imported", "uuid": new_id(), "source": str(source)}
    for message in converted.messages:
        record = record_of(message)
        if at := converted.timestamps.get(message.uuid):
            record["timestamp"] = at
        yield record
        if (compaction := converted.compactions.get(message.uuid)) is not None:
            yield compaction_record(compaction)
    if converted.title:
        yield title_record(converted.title)
