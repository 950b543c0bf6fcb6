"""A transcript that was read from a file: its records, and which of them are the conversation.

The shapes are those that Claude Code writes: a tree by `parentUuid`, in which a reply is spread over several records
with the same `message.id`, calls made together are answered beside each other, and what subagents said (`isSidechain`)
stands between. Nothing of a record is trusted to be as it should.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from panpan.errors import SessionError
from panpan.session.export.as_json import FORMAT
from panpan.session.log_lines import lines_of, parsed
from panpan.session.records import FORMAT_VERSION
from panpan.types.dataclass import dataclass

Record: TypeAlias = Mapping[str, Any]

MAX_BYTES = 1_000_000_000
"""Of a file; no transcript comes near."""

_SPOKEN = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class Transcript:
    """What a file holds."""

    records: Sequence[Record]
    damaged_lines: int = 0
    """Lines that are no records."""
    title: str = ""
    """Of an export; a transcript says it in records."""


def read_transcript(path: Path) -> Transcript:
    """Return what a file holds: a transcript in JSON lines, a log of panpan, or what it exported as JSON.

    Raises:
        SessionError: It cannot be read, or is none of these.
    """
    try:
        if not path.is_file():
            raise SessionError(f"{path} is not a file")
        if path.stat().st_size > MAX_BYTES:
            raise SessionError(f"{path} has more than {MAX_BYTES // 1_000_000_000} GB, so it is no transcript")
        with path.open("rb") as file:
            lines = [parsed(line) for line, _ in lines_of(file) if line.strip()]
        records = [line for line in lines if line is not None]
        if not any(isinstance(record.get("type"), str) for record in records):
            return _exported(path)
    except OSError as error:
        raise SessionError(f"cannot read {path}: {error.strerror}") from error
    return Transcript(records, len(lines) - len(records))


def conversation_in(records: Sequence[Record]) -> list[Record]:
    """Return the records of the conversation, in their order: the path to the newest one, and what belongs to it."""
    own = [
        record for record in records if isinstance(record.get("uuid"), str) and record.get("isSidechain") is not True
    ]
    path = _path(own)
    replies = {id_ for record in own if record["uuid"] in path and (id_ := reply_id(record))}
    chosen = [record["uuid"] in path or reply_id(record) in replies for record in own]
    calls = {
        id_ for record, is_chosen in zip(own, chosen, strict=True) if is_chosen for id_ in _ids(record, "tool_use")
    }
    return [
        record
        for record, is_chosen in zip(own, chosen, strict=True)
        if is_chosen or not calls.isdisjoint(_ids(record, "tool_result"))
    ]


def reply_id(record: Record) -> str | None:
    """Return the id of the reply of which a record is a part; None where it is of none, or does not say."""
    match record:
        case {"type": "assistant", "message": {"id": str(id_)}}:
            return id_
        case _:
            return None


def _path(records: Sequence[Record]) -> set[str]:
    """Return the ids of the records from the newest message, or compaction, up to the root, also across compactions."""
    index_by_uuid = {record["uuid"]: index for index, record in enumerate(records)}
    index = next((index for index in range(len(records) - 1, -1, -1) if _is_of_conversation(records[index])), None)
    path: set[str] = set()
    while index is not None and records[index]["uuid"] not in path:
        record = records[index]
        path.add(record["uuid"])
        parent = record.get("parentUuid") or record.get("logicalParentUuid")
        # one whose parent was lost follows the record before it
        index = None if parent is None else index_by_uuid.get(str(parent), index - 1 if index else None)
    return path


def _is_of_conversation(record: Record) -> bool:
    return record.get("type") in _SPOKEN or record.get("subtype") == "compact_boundary"


def _ids(record: Record, kind: str) -> Iterator[str]:
    """Yield the ids of the calls that a record makes, or answers."""
    match record:
        case {"message": {"content": [*blocks]}}:
            name = "id" if kind == "tool_use" else "tool_use_id"
            for block in blocks:
                if isinstance(block, dict) and block.get("type") == kind and isinstance(block.get(name), str):
                    yield block[name]
        case _:
            pass


def _exported(path: Path) -> Transcript:
    whole = parsed(path.read_bytes()) or {}
    match whole:
        case {"format": str(format_), "messages": [*messages]} if format_ == FORMAT:
            title = whole.get("title")
            cwd = whole.get("cwd")
            known = {"cwd": cwd, "formatVersion": FORMAT_VERSION}
            records = [{**known, **message} for message in messages if isinstance(message, dict)]
            linked = [
                {**record, "parentUuid": before.get("uuid") if before else None}
                for before, record in zip([None, *records], records, strict=False)
            ]
            return Transcript(linked, len(messages) - len(records), title if isinstance(title, str) else "")
        case _:
            raise SessionError(f"{path} is no transcript: it has no records of a conversation")
