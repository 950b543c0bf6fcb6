"""A fork: the same conversation once more, in a log of its own, so that two ways can be tried from one point."""

from pathlib import Path

from panpan.errors import SessionError, SessionLogError
from panpan.services.budgets.opening import spent_beside
from panpan.services.sessions.fold import records_to_copy
from panpan.services.sessions.log import read_records
from panpan.services.sessions.whole_log import write_whole_log


def fork(log: Path, folder: Path) -> Path:
    """Copy what a session consists of now into a new one, and return the log of that.

    What the session has spent on other branches and by subagents counts as spent in the fork, too.

    Args:
        log: Of the session; it is only read, and may be open.
        folder: Where the fork goes: the session folder of a project.

    Raises:
        SessionError: The log cannot be read, or the fork not be written.
    """
    whole = list(read_records(log))
    records = records_to_copy(whole)
    if not records:
        raise SessionError(f"the session {log.stem} has no record that can be read, so that there is nothing to copy")
    records += spent_beside(log, whole, records)
    try:
        return write_whole_log(folder, ({**record, "forkedFrom": log.stem} for record in records), cwd=Path())
    except SessionLogError as error:
        raise SessionError(f"the session cannot be copied: {error}") from error
