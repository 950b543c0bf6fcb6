"""A fork: the same conversation once more, in a log of its own, so that two ways can be tried from one point.

The rule: the first session is only read, and a fork is whole or not there.
"""

import os
from pathlib import Path

from panpan.errors import SessionError
from panpan.services.sessions.fold import path_to_newest
from panpan.services.sessions.log import read_records
from panpan.services.sessions.records import encoded
from panpan.services.sessions.store import session_path
from panpan.system.private import make_private_folder, open_private_file
from panpan.types.ids import new_id


def fork(log: Path, folder: Path) -> Path:
    """Copy what a session consists of now into a new one, and return the log of that.

    Args:
        log: Of the session; it may be open.
        folder: Where the fork goes: the session folder of a project.

    Raises:
        SessionError: The log cannot be read, or the fork not be written.
    """
    records = path_to_newest(list(read_records(log)))
    fork_id = new_id()
    target = session_path(folder, fork_id)
    unfinished = target.with_suffix(".fork")
    lines = [encoded({**record, "sessionId": fork_id, "forkedFrom": log.stem}) for record in records]
    try:
        make_private_folder(folder)
        fd = open_private_file(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with os.fdopen(fd, "wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(target)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise SessionError(f"the session cannot be copied to {target}: {error.strerror}") from error
    return target
