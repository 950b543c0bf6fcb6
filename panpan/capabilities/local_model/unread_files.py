"""Mends one fault of the small model: it edits a file that it has not looked at, is refused, and gives up.

A refusal that says "read it first" ends its work in words, though every example reads first. So the call becomes the
Read that was left out; with the file before its eyes it goes on to the edit, as it was shown.
"""

import os.path
from collections.abc import Iterable

from panpan.types.content import ToolUseBlock
from panpan.types.messages import AssistantMessage, Message

_KNOWING = ("Read", "Write", "Edit")
"""Tools after whose call a file is known, or the refusal says why not."""


def known_files(messages: Iterable[Message]) -> set[str]:
    """Return the files that the model has called for, as paths without detours."""
    replies = (message for message in messages if isinstance(message, AssistantMessage))
    return {path for reply in replies for use in reply.tool_uses if (path := file_of(use))}


def file_of(use: ToolUseBlock) -> str:
    """Return the file that a call makes known; "" for none."""
    path = use.input.get("file_path")
    return os.path.normpath(path) if use.name in _KNOWING and isinstance(path, str) and path else ""


def with_reading_first(use: ToolUseBlock, known: set[str]) -> ToolUseBlock:
    """Return the call, or the Read of its file where it edits one that is not `known`."""
    path = file_of(use)
    if use.name != "Edit" or use.input_error or not path or path in known:
        return use
    return use.model_copy(update={"name": "Read", "input": {"file_path": use.input["file_path"]}})
