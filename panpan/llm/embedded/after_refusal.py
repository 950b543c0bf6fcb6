"""Mends one fault of the small model: it takes a refusal for the end, whatever the refusal advises.

It reads a folder, is refused, and tells what it imagines to be in there; it takes the new name for the old one, is
refused, and says that it is done. Where it is plain what comes next, that call is made in its name, without asking it.
A call that changes something is still put to the user, with its diff.
"""

import json
import re
import shlex
from collections.abc import Sequence
from typing import Any

from panpan.llm.reply import ReplyBuilder
from panpan.types.content import ToolUseBlock
from panpan.types.events import StreamEvent
from panpan.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage

_FOLDER = "is a folder, not a file"


def reply_after_refusal(messages: Sequence[Message], model: str) -> list[StreamEvent]:
    """Return a reply with the call that follows from the refusal that came last; nothing where none does.

    Args:
        messages: The conversation so far.
        model: The model that the reply is said to be of.
    """
    if not messages or not isinstance(refusal := messages[-1], ToolResultMessage) or not refusal.is_error:
        return []
    uses = {use.id: use for reply in messages if isinstance(reply, AssistantMessage) for use in reply.tool_uses}
    use = uses.get(refusal.tool_use_id)
    if use is None:
        return []
    words = next((message.text for message in reversed(messages) if isinstance(message, UserMessage)), "")
    earlier = [other for other in uses.values() if other is not use]
    arguments = _listing(use, refusal.text) or _exchanged(use, refusal.text, words, earlier)
    if not arguments:
        return []
    reply = ReplyBuilder(model=model, taken_ids=frozenset(uses))
    name = "Bash" if use.name == "Read" else use.name
    reply.open_block("tool_use", tool_use_id="after_refusal", tool_name=name).parts.append(json.dumps(arguments))
    reply.finish("tool_use")
    return reply.take()


def _listing(use: ToolUseBlock, refusal: str) -> dict[str, Any]:
    """Return the arguments for Bash that list a folder which was read as a file."""
    path = use.input.get("file_path")
    if use.name != "Read" or _FOLDER not in refusal or not isinstance(path, str) or not path:
        return {}
    return {"command": f"ls {shlex.quote(f'./{path}' if path[0] == '-' else path)}"}


def _exchanged(use: ToolUseBlock, refusal: str, words: str, earlier: Sequence[ToolUseBlock]) -> dict[str, Any]:
    """Return the arguments for Rename with the two names exchanged, where that is what the user can only mean.

    It is not where he says "old to new" himself, or where the same names were renamed before: then it is done already.
    """
    old, new = use.input.get("old_name"), use.input.get("new_name")
    if use.name != "Rename" or f" has {new} and no {old}, so no file was changed" not in refusal:
        return {}
    if re.search(rf"\b{old}\b\W*(?:to|into|by|with|[-=]+>)\W*\b{new}\b", words):
        return {}
    if any({old, new} == {other.input.get("old_name"), other.input.get("new_name")} for other in earlier):
        return {}
    return {**use.input, "old_name": new, "new_name": old}
