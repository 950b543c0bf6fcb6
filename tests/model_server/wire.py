"""Common parts of both dialects: events, ids, and the refusal of a request."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from tests.model_server.script import HttpError, Reply, StreamFailure


@dataclass(frozen=True)
class WireEvent:
    """One server-sent event, with the kind of its delta: text or tool arguments."""

    data: bytes
    delta: Literal["", "text", "tool_arguments"] = ""


class RequestRefused(Exception):  # noqa: N818  (it is an answer, not a failure of the server)
    """The request breaks a rule of the real API, which answers it with this error."""

    def __init__(self, message: str, *, status: int = 400, kind: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.answer = HttpError(status, message, kind=kind, code=code)


class Dialect(Protocol):
    """Encoding of one of the two APIs: validates requests and encodes replies."""

    request_id_header: str

    def check(self, headers: dict[str, str], body: Any, api_key: str | None) -> None:
        """Raise `RequestRefused` if the real API would refuse the request."""
        ...

    def events(self, reply: Reply, body: dict[str, Any], unique: str) -> Iterator[WireEvent]:
        """Yield the events of a reply, in order; `unique` goes into the ids."""
        ...

    def error_body(self, error: HttpError, request_id: str) -> dict[str, Any]:
        """Return the JSON body of an error."""
        ...

    def failure_event(self, failure: StreamFailure) -> bytes:
        """Return the event that reports an error in the stream."""
        ...

    def unknown_event(self) -> bytes:
        """Return an event of a type that no client knows."""
        ...

    def malformed_event(self) -> bytes:
        """Return an event whose data is not JSON."""
        ...

    def ping(self) -> bytes:
        """Return the event that keeps an idle stream open."""
        ...


def unique_of(raw: bytes) -> str:
    """Return a part for the ids of a reply that differs between requests, but is the same for the same request."""
    return hashlib.blake2b(raw, digest_size=9).hexdigest()


def compact(value: Any) -> str:
    """Return JSON as the real servers write it: no blanks, characters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def pieces(text: str, chunk_chars: int) -> Iterator[str]:
    """Yield `text` in pieces of `chunk_chars` characters; 0: in one."""
    if not chunk_chars:
        yield text
        return
    for start in range(0, len(text), chunk_chars):
        yield text[start : start + chunk_chars]


def require(condition: object, message: str, **details: Any) -> None:
    """Refuse the request with `message` unless `condition` holds."""
    if not condition:
        raise RequestRefused(message, **details)
