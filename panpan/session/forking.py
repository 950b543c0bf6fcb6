"""A fork: the same conversation once more, in a log of its own, so that two ways can be tried from one point.

Its subagents come along: results name them by their ids, and a fork goes on with them by itself.
"""

from contextlib import suppress
from pathlib import Path

from panpan.errors import SessionError, SessionLogError
from panpan.session.agent_log import agent_logs, agents_folder
from panpan.session.budget.opening import spent_beside
from panpan.session.fold import records_to_copy
from panpan.session.log import SessionLog, read_records
from panpan.session.whole_log import write_whole_log
from panpan.system.files.folder_tree import remove_tree


def fork(log: Path, folder: Path, session_id: str | None = None) -> Path:
    """Copy what a session consists of now into a new one, and return the log of that.

    What the session has spent on other branches and by subagents counts as spent in the fork, too.

    Args:
        log: Of the session; it is only read, and may be open.
        folder: Where the fork goes: the session folder of a project.
        session_id: Id of the fork; None: a new one.

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
    """Remove a fork in which nothing was said, with what came along.

    Args:
        copy: Its log.
    """
    copy.unlink(missing_ok=True)
    with suppress(OSError):
        remove_tree(agents_folder(copy.parent, copy.stem))
        agents_folder(copy.parent, copy.stem).parent.rmdir()


def copy_subagents(log: Path, copy: Path) -> None:
    """Copy the logs of a session's subagents beside those of its copy; what they have spent stays where it counts.

    One that cannot be copied is as one that the session never had: it cannot be gone on with.

    Args:
        log: Of the session.
        copy: Log of its copy.
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
