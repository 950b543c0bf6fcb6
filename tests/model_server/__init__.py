"""A loopback server that speaks both model APIs, plays scripts and injects faults.

    with serving([call("Read", {"file_path": "a.py"}), say("done")]) as server:
        ...                                     # let the program talk to server.url or server.openai_url
    assert server.requests[1].messages[-1]["content"][0]["type"] == "tool_result"

`python -m tests.model_server --help` runs it as a process, with the script in a file.
"""

from tests.model_server.recording import RecordedRequest, assert_prefixes
from tests.model_server.script import (
    Block,
    Cut,
    Fault,
    Hangup,
    Hold,
    HttpError,
    Inject,
    RedactedThinking,
    Reply,
    Script,
    Stall,
    Step,
    StreamFailure,
    Text,
    Thinking,
    Tokens,
    ToolCall,
    call,
    calls,
    say,
)
from tests.model_server.server import ModelServer, serving

__all__ = [
    "Block",
    "Cut",
    "Fault",
    "Hangup",
    "Hold",
    "HttpError",
    "Inject",
    "ModelServer",
    "RecordedRequest",
    "RedactedThinking",
    "Reply",
    "Script",
    "Stall",
    "Step",
    "StreamFailure",
    "Text",
    "Thinking",
    "Tokens",
    "ToolCall",
    "assert_prefixes",
    "call",
    "calls",
    "say",
    "serving",
]
