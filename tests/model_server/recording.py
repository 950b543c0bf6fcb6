"""Requests to the model server, for assertions in tests."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any


@dataclass
class RecordedRequest:
    """One request, as it came. Times are seconds of the system-wide monotonic clock."""

    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    raw: bytes
    began_at: float
    """Time at which its first line was read."""
    arrived_at: float
    """Time at which its body was read to the end."""
    finished_at: float | None = None
    """Time at which the last byte of the answer was written; None: not yet, or never."""
    client_left: bool = False
    """True if the client closed the connection before the end of the answer."""

    @cached_property
    def body(self) -> Any:
        """Body as JSON; None if it is not JSON."""
        try:
            return json.loads(self.raw)
        except ValueError:
            return None

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Messages of the body."""
        return list(self.body["messages"])

    def as_json(self, *, with_body: bool) -> dict[str, Any]:
        """Return the request as JSON for a benchmark in another process."""
        line: dict[str, Any] = {
            "method": self.method,
            "path": self.path,
            "bytes": len(self.raw),
            "began_at": self.began_at,
            "arrived_at": self.arrived_at,
            "finished_at": self.finished_at,
            "client_left": self.client_left,
        }
        return line | {"headers": self.headers, "body": self.body} if with_body else line


def comparable(request: RecordedRequest) -> tuple[Any, Any, list[Any]]:
    """Return the tools, the system prompt, and the flat list of blocks, without cache marks."""
    body = json.loads(request.raw, object_hook=lambda o: {k: v for k, v in o.items() if k != "cache_control"})
    blocks = [(message["role"], block) for message in body["messages"] for block in message["content"]]
    return body["tools"], body["system"], blocks


def assert_prefixes(requests: Sequence[RecordedRequest]) -> None:
    """Assert that each request starts with the whole previous one."""
    for earlier, later in pairwise(requests):
        tools, system, blocks = comparable(earlier)
        tools_later, system_later, blocks_later = comparable(later)
        assert (tools, system) == (tools_later, system_later)
        assert blocks_later[: len(blocks)] == blocks
