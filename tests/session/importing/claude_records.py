"""Records in the shapes that Claude Code writes, for the tests of importing."""

import json
from itertools import count
from pathlib import Path
from typing import Any


class ClaudeTranscript:
    """Writes records one after the other, each following the one before unless it says otherwise."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self._numbers = count(1)
        self.newest: str | None = None

    def add(self, record: dict[str, Any], **fields: Any) -> str:
        """Add a record with the fields that all have, and return its id."""
        uuid = f"00000000-0000-4000-8000-{next(self._numbers):012}"
        whole = {
            "parentUuid": self.newest,
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/ada/project",
            "sessionId": "5f1c",
            "version": "2.1.277",
            "gitBranch": "main",
            **record,
            "uuid": uuid,
            "timestamp": f"2026-01-02T03:04:{len(self.records):02}.000Z",
            **fields,
        }
        self.records.append(whole)
        if not whole["isSidechain"]:
            self.newest = uuid
        return uuid

    def bare(self, record: dict[str, Any]) -> None:
        """Add a record without an id, as some kinds are."""
        self.records.append(record)

    def user(self, content: Any, **fields: Any) -> str:
        return self.add({"type": "user", "message": {"role": "user", "content": content}}, **fields)

    def assistant(self, message_id: str, *blocks: dict[str, Any], stop: str | None = None, **fields: Any) -> str:
        body = {
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "model": fields.pop("model", "claude-sonnet-5-5"),
            "content": list(blocks),
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {
                "input_tokens": 4,
                "cache_creation_input_tokens": 100,
                "cache_read_input_tokens": 2000,
                "output_tokens": fields.pop("output", 7),
                "service_tier": "standard",
                "cache_creation": {"ephemeral_5m_input_tokens": 100},
            },
        }
        return self.add({"type": "assistant", "message": body, "requestId": f"req_{message_id}"}, **fields)

    def result(self, call: str, content: Any, **fields: Any) -> str:
        block = {"tool_use_id": call, "type": "tool_result", "content": content}
        shown = {"stdout": "whatever", "interrupted": False}
        return self.user([block], toolUseResult=shown, **fields)

    def written(self, path: Path) -> Path:
        path.write_text("".join(f"{json.dumps(record)}\n" for record in self.records))
        return path


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def call(id_: str, name: str = "Bash", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": name, "input": arguments, "caller": {"type": "direct"}}
