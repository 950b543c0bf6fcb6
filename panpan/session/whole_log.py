"""Writes a session that is made of records which are there already: a fork, an import, a mended copy.

The rule: such a session is whole or not there.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from panpan.errors import SessionError, SessionLogError
from panpan.session.log import SessionLog
from panpan.session.store import session_path
from panpan.system.files.file_lock import is_held
from panpan.types.messages import new_id

_UNFINISHED = ".unfinished"


def write_whole_log(
    folder: Path, records: Iterable[Mapping[str, Any]], *, cwd: Path, session_id: str | None = None
) -> Path:
    """Write a new session and return its log.

    Args:
        folder: Where it goes: the session folder of a project.
        records: What it consists of; a record without a parent follows the one before it.
        cwd: Where the session works, for records that do not say it.
        session_id: Its id; None: a new one.

    Raises:
        SessionError: It cannot be written, or there is a session of that id.
        SessionLogError: The disk is full.
    """
    session_id = session_id or new_id()
    target = session_path(folder, session_id)
    unfinished = session_path(folder, new_id()).with_suffix(_UNFINISHED)
    log = SessionLog(unfinished, session_id=session_id, cwd=cwd)
    try:
        try:
            for record in records:
                log.append({**record, "sessionId": session_id})
            log.sync()
        finally:
            log.close()
        if target.exists():
            raise SessionError(f"the session {session_id} exists already; choose another id or name for the copy")
        unfinished.rename(target)
    except SessionLogError as error:
        raise SessionLogError(f"{_reason(error)}; the new session {target} was not kept") from error
    except OSError as error:
        raise SessionError(f"the session cannot be written to {target}: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return target


def left_unfinished(folders: Iterable[Path]) -> list[Path]:
    """Return what panpans that were killed left of sessions that they did not write to the end.

    Args:
        folders: The session folders of projects.
    """
    files = (path for folder in folders for path in sorted(folder.glob(f"*{_UNFINISHED}")))
    return [path for path in files if not is_held(path)]


def _reason(error: BaseException) -> str:
    """Return what the system said, without what is said of a session that goes on."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (error.strerror if isinstance(error, OSError) else "") or str(error)
