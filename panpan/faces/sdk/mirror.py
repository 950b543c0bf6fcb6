"""The mirror of a session's logs in a store of the program, and the way back from the store.

The rule: the program gets every record once, in the order of its log, before the result of the turn. To go on with a
session of the store, the SDK writes what the store has into a folder, and names that in `CLAUDE_CONFIG_DIR`. panpan
joins it with its own log by the ids of the records, so that neither place loses what only the other one has.
"""

import os
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import get_ident
from typing import Any
from uuid import UUID

from anyio import from_thread

from panpan.config.locations import Locations
from panpan.errors import SessionError
from panpan.session.log.agent_log import agent_log_path, agent_logs, agents_folder
from panpan.session.log.recorder import write_whole_log
from panpan.session.log.records import format_version
from panpan.session.log.session_log import SessionLog, read_records
from panpan.session.stored.finding import chosen_session
from panpan.types.dataclass import dataclass

CONFIG_DIR = "CLAUDE_CONFIG_DIR"
"""Variable that names the folder in which the SDK looks for transcripts, and puts those of its store."""
_ENTRY = "CLAUDE_CODE_ENTRYPOINT"
_BATCH_BYTES = 200_000
"""Size of the records that are told at once, above which a further line begins; the SDK has a limit for one line."""
_MAX_KEY_CHARS = 200
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"

Put = Callable[[Mapping[str, Any]], None]
Records = Iterable[Mapping[str, Any]]


def project_key(cwd: Path, env: Mapping[str, str]) -> str:
    """Return the name by which the SDK knows a folder: its letters and digits, shortened where it is long.

    The SDK for Python counts characters, and the one for TypeScript units of UTF-16.
    """
    path = unicodedata.normalize("NFC", os.path.realpath(cwd))
    is_python = env.get(_ENTRY) == "sdk-py"
    units = [ord(char) for char in path] if is_python else array("H", path.encode("utf-16-le", "surrogatepass"))
    key = "".join(chr(unit) if unit < 128 and chr(unit).isalnum() else "-" for unit in units)
    return key if len(key) <= _MAX_KEY_CHARS else f"{key[:_MAX_KEY_CHARS]}-{_hashed(units)}"


def _hashed(units: Iterable[int]) -> str:
    value = 0
    for unit in units:
        value = (value * 31 + unit) & 0xFFFFFFFF
    value = abs(value - (1 << 32) if value >= 1 << 31 else value)
    digits = ""
    while value:
        value, rest = divmod(value, 36)
        digits = _DIGITS[rest] + digits
    return digits or "0"


@dataclass(frozen=True, slots=True)
class StoreFolder:
    """The folder in which the SDK has the transcripts of one project."""

    path: Path
    session_id: str | None = None
    """The session that the SDK has put there from the store; None if it has put none."""

    @classmethod
    def of(cls, cwd: Path, env: Mapping[str, str], resume: str | None) -> "StoreFolder":
        """Return the folder for a run in `cwd` that goes on with the session `resume`."""
        given = unicodedata.normalize("NFC", env.get(CONFIG_DIR, ""))
        projects = (Path(given) if given else Path.home() / ".claude") / "projects"
        own = cls(projects / project_key(cwd, env))
        if not given or resume is None or not _is_uuid(resume):
            return own
        places = (own.path, *sorted(log.parent for log in projects.glob(f"*/{resume}.jsonl")))
        return next((cls(one, resume) for one in places if (one / f"{resume}.jsonl").is_file()), own)

    def bring_in(self, locations: Locations, warn: Callable[[str], None]) -> None:
        """Add to panpan's log of the session, and those of its subagents, what only the store has; blocks.

        Raises:
            SessionError: Another program wrote the session, it is open elsewhere, or it cannot be written.
        """
        if self.session_id is None:
            return
        stored = list(_records_of(self.path / f"{self.session_id}.jsonl"))
        if not stored:
            raise SessionError(
                f"the session {self.session_id} in the program's store was not written by panpan; begin a new session"
            )
        log = chosen_session(locations, self.session_id).log
        if log is None:
            log = write_whole_log(locations.sessions_folder, stored, cwd=Path(), session_id=self.session_id)
        elif _join(stored, log, self.session_id):
            warn("this session went on both here and in the program's store; it continues as in the store")
        for source in agent_logs(agents_folder(self.path, self.session_id)):
            target = agent_log_path(agents_folder(log.parent, self.session_id), source.stem.removeprefix("agent-"))
            if target is not None:
                _join(list(_records_of(source)), target, self.session_id)


def _is_uuid(text: str) -> bool:
    with suppress(ValueError):
        return str(UUID(text)) == text
    return False


def _records_of(file: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the records of panpan's in a file of the SDK, whose store may have changed the order of their names."""
    seen: set[str] = set()
    for record in read_records(file):
        if format_version(record) and record["uuid"] not in seen:
            seen.add(record["uuid"])  # a store may have a batch twice
            first: dict[str, Any] = {name: record[name] for name in ("type", "subtype", "uuid") if name in record}
            yield {**first, **record}


def _join(stored: Sequence[Mapping[str, Any]], target: Path, session_id: str) -> bool:
    """Append to a log what it does not have; True if it also had records that the store does not have."""
    present = _ids(target)
    missing = [record for record in stored if record["uuid"] not in present]
    if not missing:
        return False
    log = SessionLog(target, session_id=session_id, cwd=Path())
    try:
        for record in missing:
            log.append(record)
        log.sync()
    finally:
        log.close()
    return bool(present - {record["uuid"] for record in stored})


def _ids(file: Path) -> set[str]:
    return {record["uuid"] for record in read_records(file)} if file.is_file() else set()


class Mirror:
    """Tells the program the records of a session and of its subagents; made in the thread of the event loop.

    Args:
        put: Takes a line for the program.
        folder: The folder of the SDK, in which the records are said to be.
    """

    def __init__(self, put: Put, folder: Path) -> None:
        self._put = put
        self._folder = folder
        self._thread = get_ident()
        self._told: set[Path] = set()
        """Logs whose earlier records the program has."""

    def follow(self, log: SessionLog) -> None:
        """Tell what a log has and the store has not, and from now on each of its records; blocks.

        With the log of a session come those of its earlier subagents.
        """
        place = self._catch_up(log.path)
        if log.path.parent.name != "subagents":
            for path in agent_logs(agents_folder(log.path.parent, log.path.stem)):
                self._catch_up(path)
        log.listen(lambda record: self._tell(place, [record]))

    def _catch_up(self, log: Path) -> Path:
        parts = log.parts[-3:] if log.parent.name == "subagents" else log.parts[-1:]
        place = self._folder.joinpath(*parts)
        if place not in self._told:
            self._told.add(place)
            known = _ids(place)
            for batch in _batches(record for record in read_records(log) if record["uuid"] not in known):
                self._tell(place, batch)
        return place

    def _tell(self, place: Path, records: Sequence[Mapping[str, Any]]) -> None:
        line = {"type": "transcript_mirror", "filePath": str(place), "entries": list(records)}
        if get_ident() == self._thread:
            self._put(line)
        else:  # a rewind is written beside the event loop
            from_thread.run_sync(self._put, line)


def _batches(records: Records) -> Iterator[Sequence[Mapping[str, Any]]]:
    batch: list[Mapping[str, Any]] = []
    size = 0
    for record in records:
        length = len(str(record))
        if batch and size + length > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += length
    if batch:
        yield batch
