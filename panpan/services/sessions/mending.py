"""Mends what a session's log suffers from, in copies: the log itself is never rewritten, and nothing is deleted."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from panpan.errors import SessionError
from panpan.services.sessions.examination import left_branches
from panpan.services.sessions.fold import path_to_newest
from panpan.services.sessions.log import SessionLog, read_records
from panpan.services.sessions.records import message_of
from panpan.services.sessions.store import session_path
from panpan.types.ids import new_id


def set_modes(log: Path) -> None:
    """Let only the user read and write a log and its folder.

    Raises:
        SessionError: The system does not let him.
    """
    try:
        log.parent.chmod(0o700)
        log.chmod(0o600)
    except OSError as error:
        raise SessionError(f"the modes of {log} cannot be set: {error.strerror}") from error


def mended_copies(log: Path, folder: Path) -> list[Path]:
    """Write what can be read of a log as sessions of their own, and return their logs.

    The first is the session as it goes on; there is one more for each branch beside it that two writers have made.

    Args:
        log: The damaged one; stays as it is.
        folder: Where the copies go: the session folder of a project.

    Raises:
        SessionError: The log cannot be read, or a copy not be written.
        SessionLogError: The disk is full.
    """
    records = list(read_records(log))
    ends = [len(records) - 1, *left_branches(records)]
    branches = [_sound(path_to_newest(records[: end + 1])) for end in ends] if records else []
    return [_written(branch, log, folder) for branch in branches if branch]


def _written(records: Sequence[Mapping[str, Any]], log: Path, folder: Path) -> Path:
    session_id = new_id()
    target = session_path(folder, session_id)
    unfinished = target.with_suffix(".mended")
    cwd = next((cwd for record in records if isinstance(cwd := record.get("cwd"), str)), ".")
    copy = SessionLog(unfinished, session_id=session_id, cwd=Path(cwd))
    try:
        try:
            for record in records:
                copy.append({**record, "parentUuid": copy.parent_uuid, "sessionId": session_id, "forkedFrom": log.stem})
            copy.sync()
        finally:
            copy.close()
        unfinished.rename(target)
    except OSError as error:
        raise SessionError(f"the copy {target} cannot be written: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    os.utime(target)
    return target


def _sound(path: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the records that can be read, each with an id of its own."""
    taken: set[str] = set()
    sound = []
    for record in path:
        if record.get("type") in ("user", "assistant") and message_of(record) is None:
            continue
        sound.append(record if record["uuid"] not in taken else {**record, "uuid": new_id()})
        taken.add(record["uuid"])
    return sound
