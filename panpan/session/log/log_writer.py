"""Writes whole session logs: forks, imports and repaired copies. Such a session is whole or not there."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from panpan.errors import SessionError, SessionLogError
from panpan.session.budget.opening import spent_beside
from panpan.session.log.agent_log import agent_logs, agents_folder
from panpan.session.log.fold import records_to_copy
from panpan.session.log.session_log import SessionLog, read_records
from panpan.session.stored.store import session_path
from panpan.system.files.file_lock import is_held
from panpan.system.files.folder_tree import remove_tree
from panpan.types.messages import new_id

_UNFINISHED = ".unfinished"


def write_whole_log(
    folder: Path, records: Iterable[Mapping[str, Any]], *, cwd: Path, session_id: str | None = None
) -> Path:
    """Write a new session and return its log.

    Args:
        folder: Session folder of a project.
        records: All that it consists of; a record without a parent follows the one before it.
        cwd: Working directory, for records that do not say it.
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
    """Return the parts of sessions in these folders that panpans that were killed did not write to the end."""
    files = (path for folder in folders for path in sorted(folder.glob(f"*{_UNFINISHED}")))
    return [path for path in files if not is_held(path)]


def _reason(error: BaseException) -> str:
    """Return the system's own words, without what is said of a session that goes on."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (error.strerror if isinstance(error, OSError) else "") or str(error)


def fork(log: Path, folder: Path, session_id: str | None = None) -> Path:
    """Copy all that a session consists of now into a new one in `folder`, and return the log of that.

    The log is only read, and may be open. What the session has spent on other branches and by subagents counts as spent
    in the fork, too.

    Raises:
        SessionError: The log cannot be read, or the fork not be written, or there is a session of that id.
    """
    whole = list(read_records(log))
    records = records_to_copy(whole)
    if not records:
        raise SessionError(f"the session {log.stem} has no record that can be read, so that there is nothing to copy")
    records += spent_beside(log, whole, records)
    try:
        copied = ({**record, "forkedFrom": log.stem} for record in records)
        copy = write_whole_log(folder, copied, cwd=Path(), session_id=session_id)
    except SessionLogError as error:
        raise SessionError(f"the session cannot be copied: {error}") from error
    copy_subagents(log, copy)
    return copy


def discard_fork(copy: Path) -> None:
    """Remove a fork in which nothing was said, with what came along."""
    copy.unlink(missing_ok=True)
    with suppress(OSError):
        remove_tree(agents_folder(copy.parent, copy.stem))
        agents_folder(copy.parent, copy.stem).parent.rmdir()


def copy_subagents(log: Path, copy: Path) -> None:
    """Copy the logs of a session's subagents beside those of its copy; what they have spent stays where it counts.

    One that cannot be copied is as one that the session never had: it cannot be gone on with.
    """
    for source in agent_logs(agents_folder(log.parent, log.stem)):
        target = agents_folder(copy.parent, copy.stem) / source.name
        try:
            own = SessionLog(target, session_id=copy.stem, cwd=Path())
            try:
                for record in read_records(source):
                    own.append({**record, "sessionId": copy.stem, "forkedFrom": log.stem})
            finally:
                own.close()
        except (SessionError, SessionLogError):  # a full disk, or a damaged log: a part of a conversation would mislead
            with suppress(OSError):
                target.unlink(missing_ok=True)
