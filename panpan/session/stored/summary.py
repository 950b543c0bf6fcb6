"""What a list tells of a session, without folding its log.

The rule: a log may be large, torn or damaged, and each is listed with what can be read of it; nothing here raises over
what a log holds.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from panpan.session.log.session_log import open_to_read, parsed
from panpan.types.dataclass import dataclass

MAX_BYTES = 20_000_000
"""Of one log; read in some 20 ms, and more than most sessions write."""

MAX_PROMPT_CHARS = 500

LATEST_TIME = 253_402_000_000.0
"""In seconds since 1970, at the end of the year 9999; file systems take later ones, which no calendar has."""

_TYPE = b'"type":'
"""In each record before all that may hold another one, as `records.encoded` writes it; in text of the model its quotes
would be escaped."""

_REPLY = b'"type":"assistant","uuid":'
"""In each record of a reply, in the same way."""

_OPENED = b'"type":"system","subtype":"opened","uuid":'

_TITLE = b'"type":"summary","uuid":'


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One session of a list."""

    id: str
    path: Path
    written_at: float
    """When its log was written last, in seconds since 1970."""
    cwd: str
    """The folder that it was begun in; empty where the log does not say."""
    prompt: str
    """First line of what the user said first; empty where the log does not say. Not cleaned for a terminal."""
    title: str
    """What it is called; empty where nobody has given it one, or the log does not say. Not cleaned for a terminal."""
    rounds: int
    is_counted: bool
    """True if all of the log was read; if not, there may be more rounds."""
    is_interactive: bool = True
    """True if it was ever open on a terminal; False if only runs with -p, a pipe or from Python used it."""


def summary_of(path: Path) -> SessionSummary | None:
    """Return what the log tells; None if it is no regular file, or cannot be read any more."""
    cwd = prompt = title = ""
    rounds = read = 0
    is_interactive = True
    try:
        with open_to_read(path) as file:
            status = os.fstat(file.fileno())
            while line := file.readline(MAX_BYTES - read):
                read += len(line)
                rounds += _is_of(_REPLY, line)
                if _is_of(_OPENED, line):
                    is_interactive = _record(line).get("interactive") is not False
                if _is_of(_TITLE, line):
                    title = _text(_record(line), "summary")[:MAX_PROMPT_CHARS] or title
                if not (cwd and prompt):
                    record = _record(line)
                    cwd = cwd or _text(record, "cwd")
                    prompt = prompt or _first_line(record)
    except OSError:
        return None
    is_counted = read >= status.st_size
    written_at = min(max(status.st_mtime, 0.0), LATEST_TIME)
    return SessionSummary(path.stem, path, written_at, cwd, prompt, title, rounds, is_counted, is_interactive)


def _is_of(kind: bytes, line: bytes) -> bool:
    """Return True if a record is of a kind, and does not only hold one that is, as a title holds a reply."""
    place = line.find(kind)
    return place >= 0 and place == line.find(_TYPE)


def _record(line: bytes) -> Mapping[str, Any]:
    return parsed(line) or {}


def _text(record: Mapping[str, Any], name: str) -> str:
    text = record.get(name)
    return text if isinstance(text, str) else ""


def _first_line(record: Mapping[str, Any]) -> str:
    match record:
        case {"type": "user", "message": {"content": [*blocks]}}:
            texts = [
                block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)
            ]
            lines = [line.strip() for text in texts for line in text.splitlines()]
            return next((line[:MAX_PROMPT_CHARS] for line in lines if line), "")
        case _:
            return ""
