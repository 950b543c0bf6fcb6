"""Writes what was imported as a session: whole, or not at all."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from panpan.session.importing.conversion import Converted
from panpan.session.record_kinds import CompactionRecord, ImportedRecord, title_record
from panpan.session.records import record_of
from panpan.session.whole_log import write_whole_log


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
    return write_whole_log(folder, _records(converted, source), cwd=Path(converted.cwd or "."))


def _records(converted: Converted, source: Path) -> Iterator[Mapping[str, Any]]:
    yield ImportedRecord(source=str(source)).as_json()
    for message in converted.messages:
        record = record_of(message)
        if at := converted.timestamps.get(message.uuid):
            record["timestamp"] = at
        yield record
        for compaction in converted.compactions.get(message.uuid, ()):
            yield CompactionRecord.of(compaction).as_json()
    if converted.title:
        yield title_record(converted.title)
