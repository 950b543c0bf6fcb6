"""JSON on the wire: requests are compact, UTF-8 and always valid; answers may hold anything anywhere."""

import json
import math
import re
from collections.abc import Sequence
from hashlib import blake2s
from typing import Any

from panpan.types.llm import ModelOptions

MAX_TOOL_NAME_CHARS = 64
"""OpenAI's limit; Anthropic allows 128."""

_MOST_DIGITS = 15

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


def sampling_fields(options: ModelOptions) -> dict[str, float]:
    """Return `top_p` and `top_k`, as far as they are set: both dialects call them so, and refuse them by name."""
    values = {"top_p": options.top_p, "top_k": options.top_k}
    return {name: value for name, value in values.items() if value is not None}


def joined_body(head: bytes, messages: Sequence[bytes]) -> bytes:
    """Return a whole body.

    Args:
        head: The body up to where the messages begin, with the bracket that opens them.
        messages: Each as JSON, or several with commas between; at least one.
    """
    pieces = list(messages)
    pieces[0] = head + pieces[0]
    pieces[-1] += b"]}"
    return b",".join(pieces)


def text_in(value: object) -> str:
    """Return a value of a server's JSON that should be text; empty where it is something else."""
    return value if isinstance(value, str) else ""


def list_in(value: object) -> list[Any]:
    """Return a value of a server's JSON that should be a list; empty where it is something else."""
    return value if isinstance(value, list) else []


def count_in(value: object) -> int:
    """Return a count of a server's JSON, which some write as a float or as text; 0 where it is none."""
    if isinstance(value, str):
        value = int(value) if len(value) <= _MOST_DIGITS and value.isascii() and value.isdigit() else 0
    if isinstance(value, float):
        value = math.ceil(value) if math.isfinite(value) else 0
    is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return value if is_count else 0  # type: ignore[return-value]


def has_text(text: str) -> bool:
    """Whether the text holds more than blanks; providers refuse blocks that do not."""
    return bool(text) and not text.isspace()
