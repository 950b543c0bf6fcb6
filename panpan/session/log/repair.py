"""Finds what is wrong with a session's log, and repairs it in copies: the log itself is never rewritten."""

import os
import stat
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias

from panpan.errors import SessionError
from panpan.session.budget.session_budget import spent_beside
from panpan.session.log.fold import fold_records, is_new_root, parents_of, path_to_newest, records_to_copy
from panpan.session.log.record_kinds import SYSTEM_RECORDS, SystemRecord, session_record, subtypes_of
from panpan.session.log.recorder import copy_subagents, write_whole_log
from panpan.session.log.records import FORMAT_VERSION, format_version, message_of
from panpan.session.log.session_log import ends_in_mid_line, open_to_read, read_records
from panpan.session.stored.store import newest_first
from panpan.types.dataclass import dataclass
from panpan.types.messages import new_id

Remedy: TypeAlias = Literal["none", "mode", "copy"]
"""Remedy for a finding: nothing, setting the modes right, or writing a repaired copy."""

_MOST_LINES = 5
_MOST_CHARS = 60


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be, or that the user should know."""

    kind: str
    """Kind in one or two words, for programs."""
    text: str
    """Sentence for people."""
    remedy: Remedy = "none"


def validate(log: Path, further: Iterable[type[SystemRecord]] = ()) -> list[Finding]:
    """Return the findings about a session's log; none if all is well.

    `further` are kinds of record that features write, beside the session's own.
    """
    try:
        status = log.lstat()
    except OSError as error:
        return [Finding("unreadable", f"the log cannot be looked at: {error.strerror}")]
    if not stat.S_ISREG(status.st_mode):
        return [Finding("no file", "the log is not a regular file, so it is not read")]
    found = list(_of_modes(log, status))
    damaged: list[int] = []
    try:
        records = list(read_records(log, note_damage=damaged.append))
        is_torn = _is_torn(log)
    except SessionError as error:
        return [*found, Finding("unreadable", str(error))]
    if not records:
        return [*found, Finding("empty", "the log has no record that can be read")]
    found += _of_lines(damaged, is_torn=is_torn)
    found += _of_tree(records)
    found += _of_kinds(records, log.stem, subtypes_of((*SYSTEM_RECORDS, *further)) | {"system_reminder"})
    found += _of_calls(records)
    return found


def abandoned_branches(records: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return where each branch ends that the session went on beside, without a rewind that says so.

    That happens where two panpans wrote at once, as on a file system without locks. A branch without a message does
    not count.
    """
    parents = parents_of(records)
    children = Counter(parents)
    rewound = {str(record.get("leftUuid")) for record in records if record.get("subtype") == "rewind"}
    ends = [index for index in range(len(records) - 1) if not children[index] and records[index]["uuid"] not in rewound]
    return [end for end in ends if _says_something(end, records, parents, children)]


def _says_something(
    end: int, records: Sequence[Mapping[str, Any]], parents: Sequence[int | None], children: Mapping[int | None, int]
) -> bool:
    """Return True if a branch has a message between its end and where it leaves the others."""
    index: int | None = end
    while index is not None and children[index] <= 1:
        if records[index].get("type") in ("user", "assistant"):
            return True
        index = parents[index]
    return False


def _of_modes(log: Path, status: os.stat_result) -> Iterator[Finding]:
    if status.st_mode & 0o077:
        yield Finding("file mode", f"others may read the log (mode {status.st_mode & 0o777:04o})", "mode")
    if status.st_uid != os.geteuid():
        yield Finding("owner", "the log belongs to another user")
    elif not os.access(log, os.R_OK | os.W_OK):
        yield Finding("file mode", "you may not read and write the log, so the session cannot go on", "mode")
    folder = log.parent.stat()
    if folder.st_mode & 0o077:
        yield Finding("folder mode", f"others may look into {log.parent} (mode {folder.st_mode & 0o777:04o})", "mode")


def _of_lines(damaged: Sequence[int], *, is_torn: bool) -> Iterator[Finding]:
    if damaged:
        lines = ", ".join(map(str, damaged[:_MOST_LINES])) + (" …" if len(damaged) > _MOST_LINES else "")
        what = "a line that is not a record" if len(damaged) == 1 else f"{len(damaged)} lines that are not records"
        yield Finding("damaged lines", f"{what} ({lines}): skipped, and their content is lost", "copy")
    if is_torn:
        yield Finding(
            "torn end",
            "the last line has no end, since a crash cut it off: passed over; the next one begins a new line",
        )


def _of_tree(records: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    seen: set[str] = set()
    lost = repeated = 0
    for record in records:
        is_root = not seen or is_new_root(record)
        lost += not is_root and str(record.get("parentUuid")) not in seen
        repeated += record["uuid"] in seen
        seen.add(record["uuid"])
    if lost:
        what = "a record follows one that is" if lost == 1 else f"{lost} records follow ones that are"
        yield Finding("missing parents", f"{what} not there: taken for the one before it", "copy")
    if repeated:
        what = "a record has" if repeated == 1 else f"{repeated} records have"
        yield Finding("repeated ids", f"{what} the id of an earlier one", "copy")
    if branches := len(abandoned_branches(records)):
        what = "a branch of what was said is" if branches == 1 else f"{branches} branches of what was said are"
        yield Finding("two writers", f"two panpans wrote at once, and {what} not part of the session", "copy")


def _of_kinds(records: Sequence[Mapping[str, Any]], session_id: str, known: Collection[str]) -> Iterator[Finding]:
    unread = sum(record.get("type") in ("user", "assistant") and message_of(record) is None for record in records)
    if unread:
        yield Finding(
            "unreadable messages", f"{unread} messages are not as panpan writes them, and are left out", "copy"
        )
    if unknown := Counter(filter(None, (_unknown_kind(record, known) for record in records))):
        kinds = ", ".join(f"{count} of {kind}" for kind, count in unknown.most_common(_MOST_LINES))
        yield Finding("unknown records", f"this panpan does not know some records, and leaves them out: {kinds}")
    if any(format_version(record) > FORMAT_VERSION for record in records):
        yield Finding(
            "newer version", "a newer panpan wrote some of it; records that this one does not know are left out"
        )
    if others := {str(record["sessionId"])[:_MOST_CHARS] for record in records if record.get("sessionId")} - {
        session_id
    }:
        yield Finding("other session", f"records say that they are of the session {', '.join(sorted(others)[:3])}")


def _unknown_kind(record: Mapping[str, Any], known: Collection[str]) -> str:
    """Return the kind of a record that this version does not know; empty if it knows it."""
    match record:
        case {"type": "user" | "assistant" | "summary"}:
            return ""
        case {"type": "system", "subtype": "compact_boundary"} if session_record(record) is None:
            return "a compaction of another program"
        case {"type": "system", "subtype": str(subtype)}:
            return "" if subtype in known else f"system/{subtype[:_MOST_CHARS]}"
        case _:
            return str(record.get("type"))[:_MOST_CHARS]


def _of_calls(records: Iterable[Mapping[str, Any]]) -> Iterator[Finding]:
    calls = fold_records(records).unfinished
    if calls:
        names = ", ".join(call.tool_use.name for call in calls[:_MOST_LINES])
        yield Finding(
            "open calls",
            f"calls are open ({names}): the session is in the midst of them, or ended there; what became of them is "
            "settled when it goes on",
        )


def _is_torn(log: Path) -> bool:
    try:
        with open_to_read(log) as file:
            return ends_in_mid_line(file.fileno())
    except OSError:
        return False


MOST_BRANCHES = 20
"""Most branches that are copied, newest first; two writers make one or two."""


def set_modes(log: Path) -> None:
    """Let only the user read and write a log and its folder; SessionError if the system refuses."""
    try:
        log.parent.chmod(0o700)
        log.chmod(0o600)
    except OSError as error:
        raise SessionError(f"the modes of {log} cannot be set: {error.strerror}") from error


def repaired_copies(log: Path, folder: Path) -> list[Path]:
    """Write what can be read of a log as sessions of their own in `folder`, and return their logs.

    The log stays as it is. Where that was done before, and it has gained nothing since, those of then are returned. The
    first is the session as it goes on, with all snapshots of its files, and the newest of the project; there is one
    more for each of the newest branches beside it that two writers have made.

    Raises:
        SessionError: The log cannot be read, or a copy not be written.
        SessionLogError: The disk is full.
    """
    if copies := _earlier_copies(log, folder):
        return copies
    records = list(read_records(log))
    ends = abandoned_branches(records)[-MOST_BRANCHES:]
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
