"""Mends what a session's log suffers from, in copies: the log itself is never rewritten, and nothing is deleted."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from panpan.errors import SessionError
from panpan.session.budget.opening import spent_beside
from panpan.session.examination import left_branches
from panpan.session.fold import path_to_newest, records_to_copy
from panpan.session.forking import copy_subagents
from panpan.session.log import read_records
from panpan.session.records import message_of
from panpan.session.store import newest_first
from panpan.session.whole_log import write_whole_log
from panpan.types.messages import new_id

MOST_BRANCHES = 20
"""That are copied, the newest ones; two writers make one or two."""


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

    Where that was done before, and the log has gained nothing since, those of then are returned. The first is the
    session as it goes on, with all snapshots of its files, and the newest of the project; there is one more for each of
    the newest branches beside it that two writers have made.

    Args:
        log: The damaged one; stays as it is.
        folder: Where the copies go: the session folder of a project.

    Raises:
        SessionError: The log cannot be read, or a copy not be written.
        SessionLogError: The disk is full.
    """
    if copies := _earlier_copies(log, folder):
        return copies
    records = list(read_records(log))
    ends = left_branches(records)[-MOST_BRANCHES:]
    branches = [records_to_copy(records), *(path_to_newest(records[: end + 1]) for end in ends)]
    branches = [[*branch, *spent_beside(log, records, branch)] for branch in branches if branch]
    copies = [_written(branch, log, folder) for branch in map(_sound, branches) if branch]
    for copy in copies:
        copy_subagents(log, copy)
    if copies:
        newest_ns = max(copy.stat().st_mtime_ns for copy in copies) + 1
        os.utime(copies[0], ns=(newest_ns, newest_ns))
    return copies


def _earlier_copies(log: Path, folder: Path) -> list[Path]:
    """Return the copies that were written since something was written into a log, in their order."""
    written_at = log.stat().st_mtime_ns
    since = [path for path in newest_first(folder.glob("*.jsonl")) if path.lstat().st_mtime_ns >= written_at]
    return sorted(path for path in since if path != log and _origin(path) == (log.stem, log.stem))


def _origin(log: Path) -> tuple[object, object]:
    """Return which session a log is a mended copy of, and not a fork of such a copy."""
    with suppress(SessionError):
        for record in read_records(log):
            return record.get("mendedFrom"), record.get("forkedFrom")
    return None, None


def _written(records: Sequence[Mapping[str, Any]], log: Path, folder: Path) -> Path:
    cwd = next((cwd for record in records if isinstance(cwd := record.get("cwd"), str)), ".")
    origin = {"forkedFrom": log.stem, "mendedFrom": log.stem}
    unlinked = ({name: record[name] for name in record if name != "parentUuid"} for record in records)
    return write_whole_log(folder, ({**record, **origin} for record in unlinked), cwd=Path(cwd))


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
