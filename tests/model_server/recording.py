"""Requests to the model server, for assertions in tests."""

import json
from dataclasses import dataclass
from functools import cached_property
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
