"""Reads the JSON of one event of a stream."""

import json
from typing import Any

from pydantic_core import from_json

from panpan.errors import StreamError

_SHOWN_BYTES = 80


def read_event(data: bytes, *, provider: str) -> dict[str, Any]:
    """Return the object that an event carries.

    Raises:
        StreamError: It is no JSON object; the stream was damaged, or is not of the dialect that was expected.
    """
    try:
        document = from_json(data)
    except ValueError:
        document = _read_leniently(data)
    if isinstance(document, dict):
        return document
    start = data[:_SHOWN_BYTES].decode("utf-8", "replace")
    raise StreamError(f"{provider} sent an event that is no JSON object, beginning with {start!r}", provider=provider)


def _read_leniently(data: bytes) -> Any:
    """Return the document of an event with broken characters in it, which must not cost the whole reply.

    Undecodable bytes, and halves of surrogate pairs (an emoji that a server cut in two), become U+FFFD.
    """
    try:
        document = json.loads(data.decode("utf-8", "replace"), strict=False)
        whole = json.dumps(document, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return json.loads(whole)
    except (ValueError, RecursionError):
        return None
