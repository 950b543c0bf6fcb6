"""The JSON that requests are made of: compact, UTF-8, and always valid."""

import json
import re
from hashlib import blake2s
from typing import Any

MAX_TOOL_NAME_CHARS = 64
"""OpenAI's limit; Anthropic allows 128."""

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


def to_json(value: Any) -> bytes:
    """Return `value` as JSON; half of a surrogate pair, as undecodable file names bring, becomes a question mark."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")


def wire_tool_name(name: str) -> str:
    """Return a name that providers accept.

    Models sometimes call tools that cannot exist, such as "functions.Read". The call stays in the history, and a
    provider would refuse every later request because of its name.
    """
    return _NOT_IN_NAMES.sub("_", name)[:MAX_TOOL_NAME_CHARS] or "unnamed"


def wire_id(tool_use_id: str, *, max_chars: int) -> str:
    """Return an id that providers accept: unchanged where it can be, else shortened and made unique by a digest.

    A conversation may hold ids of another provider, such as Kimi's "functions.Read:0".
    """
    if len(tool_use_id) <= max_chars and not _NOT_IN_NAMES.search(tool_use_id):
        return tool_use_id
    digest = blake2s(tool_use_id.encode("utf-8", "replace"), digest_size=6).hexdigest()
    return f"{_NOT_IN_NAMES.sub('_', tool_use_id)[: max_chars - 13]}-{digest}"


def has_text(text: str) -> bool:
    """Whether the text holds more than blanks; providers refuse blocks that do not."""
    return bool(text) and not text.isspace()
