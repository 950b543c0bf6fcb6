"""Writes a session to a file of the user's: private, whole or not at all, and never over what is there.

As JSON it is panpan's own form, that of Claude Code, or a trajectory for evaluation harnesses.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from anyio import to_thread

from panpan.errors import ConfigError, OutputError, ToolError
from panpan.session.budget.spending import made_at
from panpan.session.export.transcript import Transcript, compaction_told, without_secrets
from panpan.session.log.record_kinds import CompactionRecord
from panpan.session.log.records import record_of, viewer_fields
from panpan.system.files.atomic_write import FileChangedError, write_atomic
from panpan.system.text.redact import Redactor
from panpan.types.messages import AssistantMessage, Compaction, Message, SystemReminder, ToolResultMessage
from panpan.types.pattern import compile_late

DEFAULT_SUFFIX = ".md"
SUFFIX_BY_FORMAT = {"markdown": ".md", "html": ".html", "json": ".json", "claude": ".jsonl", "atif": ".atif.json"}
MAX_TRIES = 100


def exported_text(transcript: Transcript, redactor: Redactor, suffix: str) -> str:
    """Return a session without secrets in the format of a suffix; ConfigError if that names none."""
    return _format_of(suffix)(without_secrets(transcript, redactor))


async def export_session(
    transcript: Transcript, redactor: Redactor, *, folder: Path, wanted: str = "", suffix: str = ""
) -> Path:
    """Write a session, without secrets, to a file and return where it is.

    Args:
        transcript: The session.
        redactor: Knows the secrets.
        folder: Where a relative path begins.
        wanted: The file, whose suffix says the format; Markdown without one. Empty: a free name in `folder`. Beside a
            transcript of Claude Code's go those of the subagents.
        suffix: Says the format instead.

    Raises:
        ConfigError: The suffix names no format, or the file exists already.
        OutputError: It could not be written.
    """
    return await to_thread.run_sync(partial(_export, transcript, redactor, folder, wanted, suffix))


def _export(transcript: Transcript, redactor: Redactor, folder: Path, wanted: str, suffix: str) -> Path:
    path = _path(folder, wanted, suffix or DEFAULT_SUFFIX) if wanted else None
    suffix = suffix or (_suffix_of(path) if path else DEFAULT_SUFFIX)
    data = exported_text(transcript, redactor, suffix).encode(errors="replace")
    if path is not None:
        _write_new(path, data)
        if suffix.lower() == SUFFIX_BY_FORMAT["claude"]:
            for subagent in transcript.subagents:
                written = exported_text(subagent, redactor, suffix)
                _write_new(subagent_path(path, subagent.agent_id), written.encode(errors="replace"))
        return path
    stem = f"panpan-{transcript.exported_at.strftime('%Y-%m-%d-%H%M%S')}"
    for number in range(1, MAX_TRIES + 1):
        free = folder / f"{stem}{f'-{number}' if number > 1 else ''}{DEFAULT_SUFFIX}"
        if _is_written(free, data):
            return free
    raise ConfigError(f"{folder} holds {MAX_TRIES} exports of this second; name a file")


def subagent_path(path: Path, agent_id: str) -> Path:
    """Return the file of a subagent beside that of its session, where viewers of transcripts look for it."""
    return path.with_suffix("") / "subagents" / f"agent-{agent_id}.jsonl"


def _suffix_of(path: Path) -> str:
    atif = SUFFIX_BY_FORMAT["atif"]
    return atif if path.name.lower().endswith(atif) else path.suffix


def _write_new(path: Path, data: bytes) -> None:
    if not _is_written(path, data):
        raise ConfigError(f"{path} exists already; name another file")


def _path(folder: Path, wanted: str, default_suffix: str) -> Path:
    try:
        path = folder / Path(wanted).expanduser()
    except RuntimeError as exc:
        raise ConfigError(f"{wanted} names a home folder that does not exist; write the whole path") from exc
    if wanted.endswith("/") or path.is_dir():
        raise ConfigError(f"{path} is a folder; name a file in it, such as {path / 'session.md'}")
    return path if path.suffix else path.with_name(path.name + default_suffix)


def _is_written(path: Path, data: bytes) -> bool:
    try:
        write_atomic(path, data, mode=0o600, follow_symlinks=True, must_not_exist=True)
    except FileChangedError:
        return False
    except ToolError as exc:
        raise OutputError(str(exc)) from exc
    return True


def _format_of(suffix: str) -> Callable[[Transcript], str]:
    # imported where they are used: the Markdown parser takes a while
    match suffix.lower():
        case ".md" | ".markdown":
            from panpan.session.export.as_markdown import markdown_text

            return markdown_text
        case ".html" | ".htm":
            from panpan.session.export.as_html import html_text

            return html_text
        case ".json":
            return json_text
        case ".jsonl":
            return claude_text
        case ".atif.json":
            from panpan.session.export.as_atif import atif_text

            return atif_text
        case _:
            raise ConfigError(
                f"unknown format {suffix}; choose a name that ends in .md, .html, .json, .jsonl or .atif.json"
            )


FORMAT = "panpan-session"
FORMAT_VERSION = 1

_UNSEEN = compile_late("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that would drive a terminal, reorder text or cannot be encoded; JSON may write any of them as an
escape."""


def json_text(transcript: Transcript) -> str:
    """Return the whole file."""
    exported = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "panpanVersion": transcript.panpan_version,
        "exportedAt": transcript.exported_at.isoformat(timespec="seconds"),
        "sessionId": transcript.session_id,
        "title": transcript.title,
        "model": transcript.model,
        "cwd": transcript.cwd,
        "messages": [
            CompactionRecord.of(part).as_json() if isinstance(part, Compaction) else record_of(part)
            for part in transcript.parts
        ],
    }
    return harmless_json(exported)


def harmless_json(value: object) -> str:
    """Return a value as the JSON of a file that drives no terminal."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


_NAMES = ("type", "message", "toolUseResult", "costUSD")
_OWN_STOP_REASONS = frozenset({"interrupted", "unknown"})


def claude_text(transcript: Transcript) -> str:
    """Return the whole file."""
    return "".join(f"{json.dumps(record, separators=(',', ':'))}\n" for record in _records(transcript))


def _records(transcript: Transcript) -> Iterator[Mapping[str, Any]]:
    agent_by_call = {call: subagent.agent_id for subagent in transcript.subagents for call in subagent.begun_by}
    if transcript.title and not transcript.agent_id:
        leaf = transcript.messages[-1].uuid if transcript.messages else None
        yield {"type": "summary", "summary": transcript.title, "leafUuid": leaf}
    parent = None
    at = transcript.exported_at
    for message in transcript.parts:
        at = _made_at(message.uuid) or at
        yield {
            "parentUuid": parent,
            **viewer_fields(transcript.agent_id),
            "cwd": transcript.cwd,
            "sessionId": transcript.session_id,
            "version": transcript.panpan_version,
            "gitBranch": transcript.git_branch,
            **_said(message, agent_by_call),
            "uuid": message.uuid,
            "timestamp": at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
        parent = message.uuid


def _said(message: Message | Compaction, agent_by_call: Mapping[str, str]) -> Mapping[str, Any]:
    if isinstance(message, Compaction):
        trigger = "manual" if message.trigger == "manual" else "auto"
        metadata = {"trigger": trigger, "preTokens": message.tokens_before}
        return {
            "type": "system",
            "subtype": "compact_boundary",
            "content": compaction_told(message)[0],
            "compactMetadata": metadata,
            "isMeta": False,
        }
    if isinstance(message, SystemReminder):
        body = {"role": "user", "content": [{"type": "text", "text": message.tagged_text}]}
        return {"type": "user", "message": body, "isMeta": True}
    record = record_of(message)
    said: dict[str, Any] = {name: record[name] for name in _NAMES if name in record}
    if isinstance(message, ToolResultMessage) and (agent_id := agent_by_call.get(message.result.tool_use_id)):
        said["toolUseResult"] = {**said.get("toolUseResult", {}), "agentId": agent_id}
    if isinstance(message, AssistantMessage):
        reason = None if message.stop_reason in _OWN_STOP_REASONS else message.stop_reason
        said["message"] = {**said["message"], "stop_reason": reason, "stop_sequence": None}
    return said


def _made_at(uuid: str) -> datetime | None:
    try:
        return None if (at := made_at(uuid)) is None else datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError, OSError):  # a time that no calendar has
        return None
