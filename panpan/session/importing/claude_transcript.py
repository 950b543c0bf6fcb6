"""A transcript of Claude Code that was read from a file: its records, and their blocks as blocks of ours."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import TypeAdapter, ValidationError

from panpan.errors import SessionError
from panpan.session.export.export import FORMAT
from panpan.session.log.records import FORMAT_VERSION
from panpan.session.log.session_log import lines_of, parse_line
from panpan.types.content import (
    AssistantContent,
    Base64Source,
    DocumentBlock,
    ImageBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserContent,
)
from panpan.types.dataclass import dataclass

Record: TypeAlias = Mapping[str, Any]

MAX_BYTES = 1_000_000_000

_SPOKEN = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class Transcript:
    """Content of a transcript's file."""

    records: Sequence[Record]
    damaged_lines: int = 0
    """Lines that are no records."""
    title: str = ""
    """Title in an export; a transcript has records for it."""


def read_transcript(path: Path) -> Transcript:
    """Return a transcript in JSON lines, a log of panpan, or what it exported as JSON; SessionError if it is none."""
    try:
        if not path.is_file():
            raise SessionError(f"{path} is not a file")
        if path.stat().st_size > MAX_BYTES:
            raise SessionError(f"{path} has more than {MAX_BYTES // 1_000_000_000} GB, so it is not a transcript")
        with path.open("rb") as file:
            lines = [parse_line(line) for line, _ in lines_of(file) if line.strip()]
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
    """Return the id of the reply of which a record is a part; None if it is of none, or does not say."""
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
    match record:
        case {"message": {"content": [*blocks]}}:
            name = "id" if kind == "tool_use" else "tool_use_id"
            for block in blocks:
                if isinstance(block, dict) and block.get("type") == kind and isinstance(block.get(name), str):
                    yield block[name]
        case _:
            pass


def _exported(path: Path) -> Transcript:
    whole = parse_line(path.read_bytes()) or {}
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
            raise SessionError(f"{path} is not a transcript: it has no records of a conversation")


_source = TypeAdapter(Base64Source)


def user_blocks(content: Any) -> Iterator[UserContent]:
    """Yield what a user, or a tool, said; texts of nothing are left out, as no provider takes them."""
    match content:
        case str():
            yield from _text(content)
        case [*blocks]:
            for block in blocks:
                yield from _user_block(block)
        case _:
            pass


def assistant_blocks(content: Any) -> Iterator[AssistantContent]:
    """Yield what a model said."""
    match content:
        case str():
            yield from _text(content)
        case [*blocks]:
            for block in blocks:
                yield from _assistant_block(block)
        case _:
            pass


def result_block(block: Any) -> ToolResultBlock | None:
    """Return the answer to a call that a block is; None if it is none."""
    match block:
        case {"type": "tool_result", "tool_use_id": str(id_)}:
            content = tuple(user_blocks(block.get("content")))
            return ToolResultBlock(tool_use_id=id_, content=content, is_error=block.get("is_error") is True)
        case _:
            return None


def _text(text: str) -> Iterator[TextBlock]:
    if text.strip():
        yield TextBlock(text=text)


def _user_block(block: Any) -> Iterator[UserContent]:
    match block:
        case {"type": "text", "text": str(text)}:
            yield from _text(text)
        case {"type": "image", "source": source} if (bytes_ := _bytes(source)) is not None:
            yield ImageBlock(source=bytes_)
        case {"type": "document", "source": source} if (bytes_ := _bytes(source)) is not None:
            title = block.get("title")
            yield DocumentBlock(source=bytes_, title=title if isinstance(title, str) else None)
        case {"type": "document", "source": {"data": str(text)}}:
            yield from _text(text)
        case {"type": "tool_result"}:
            pass  # a message of its own
        case {"type": str(kind)}:
            yield TextBlock(text=f"[a block of the kind {kind[:40]}, which was not imported]")
        case _:
            pass


def _assistant_block(block: Any) -> Iterator[AssistantContent]:
    match block:
        case {"type": "text", "text": str(text)}:
            yield from _text(text)
        case {"type": "thinking", "thinking": str(thinking)}:
            signature = block.get("signature")
            yield ThinkingBlock(thinking=thinking, signature=signature if isinstance(signature, str) else "")
        case {"type": "redacted_thinking", "data": str(data)}:
            yield RedactedThinkingBlock(data=data)
        case {"type": "tool_use", "id": str(id_), "name": str(name)}:
            arguments = block.get("input")
            yield ToolUseBlock(id=id_, name=name, input=arguments if isinstance(arguments, dict) else {})
        case {"type": str(kind)}:
            yield TextBlock(text=f"[a block of the kind {kind[:40]}, which was not imported]")
        case _:
            pass


def _bytes(source: Any) -> Base64Source | None:
    """Return the bytes of a picture or document; None if they are elsewhere, or no bytes."""
    if not isinstance(source, dict):
        return None
    try:
        return _source.validate_python({name: source.get(name) for name in ("type", "media_type", "data")})
    except ValidationError:
        return None
