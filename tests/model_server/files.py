"""Scripts as JSON files, for servers that run as a process.

    {"repeat": 1,
     "replies": [
       {"blocks": [{"type": "text", "text": "Let me look."},
                   {"type": "tool_use", "name": "Read", "input": {"file_path": "a.py"}}],
        "chunk_chars": 4, "tokens": {"input": 100}, "faults": [{"type": "cut", "at": "tool_arguments"}]},
       {"text": "Done."},
       {"error": 529, "headers": {"retry-after": "1"}},
       {"hangup": "reset"}]}

`repeat` is the number of times to play the list; true: for ever. Other fields are those of the classes in `script`.
"""

import json
from collections.abc import Iterator
from itertools import chain, cycle, repeat
from pathlib import Path
from typing import Any

from tests.model_server.script import (
    Block,
    Cut,
    Fault,
    Hangup,
    HttpError,
    Inject,
    RedactedThinking,
    Reply,
    Stall,
    Step,
    StreamFailure,
    Text,
    Thinking,
    Tokens,
    ToolCall,
)

_BLOCKS: dict[str, type[Block]] = {
    "text": Text,
    "thinking": Thinking,
    "redacted_thinking": RedactedThinking,
    "tool_use": ToolCall,
}
_FAULTS: dict[str, type[Fault]] = {"cut": Cut, "stall": Stall, "error": StreamFailure, "inject": Inject}


def read_script(path: Path) -> Iterator[Step]:
    """Return the steps of a script file.

    Raises:
        ValueError: The file is not a script.
    """
    content = json.loads(path.read_text())
    unknown = content.keys() - {"repeat", "replies"}
    if unknown:
        raise ValueError(f"unknown fields in the script: {', '.join(sorted(unknown))}")
    steps = [_step(entry) for entry in content["replies"]]
    times = content.get("repeat", 1)
    return cycle(steps) if times is True else chain.from_iterable(repeat(steps, times))


def _step(entry: dict[str, Any]) -> Step:
    fields = dict(entry)
    try:
        if "error" in fields:
            return HttpError(fields.pop("error"), **fields)
        if "hangup" in fields:
            return Hangup(fields.pop("hangup"), **fields)
        return _reply(fields)
    except (TypeError, KeyError) as exc:
        raise ValueError(f"not a step of a script: {json.dumps(entry)} ({exc})") from exc


def _reply(fields: dict[str, Any]) -> Reply:
    text = fields.pop("text", None)
    blocks = [_made(_BLOCKS, block) for block in fields.pop("blocks", ())]
    if text is not None:
        blocks.insert(0, Text(text))
    return Reply(
        tuple(blocks),
        tokens=Tokens(**fields.pop("tokens", {})),
        faults=tuple(_made(_FAULTS, fault) for fault in fields.pop("faults", ())),
        quirks=frozenset(fields.pop("quirks", ())),
        **fields,
    )


def _made(classes: dict[str, Any], fields: dict[str, Any]) -> Any:
    return classes[fields["type"]](**{name: value for name, value in fields.items() if name != "type"})
