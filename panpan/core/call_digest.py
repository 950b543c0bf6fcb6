"""What a call is, to the byte: so that what runs is what was decided about."""

import json
from hashlib import sha256

from panpan.core.hooks import ToolCall


def digest_of(call: ToolCall) -> str:
    """Return SHA-256 of what a call would run: the tool, its arguments as they were written, and as they were read."""
    text = json.dumps([call.tool.name, call.input, call.args.model_dump()], sort_keys=True, default=repr)
    return sha256(text.encode(errors="surrogatepass")).hexdigest()
