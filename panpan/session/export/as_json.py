"""A session as JSON: messages and compactions in the shape of the log's records, for programs."""

import json
import re

from panpan.session.export.transcript import Transcript
from panpan.session.record_kinds import CompactionRecord
from panpan.session.records import record_of
from panpan.types.compaction import Compaction

FORMAT = "panpan-session"
FORMAT_VERSION = 1

_UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What would drive a terminal, reorder what is read or cannot be encoded; JSON may write any character as an escape."""


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
    text = json.dumps(exported, ensure_ascii=False, indent=2)
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"
