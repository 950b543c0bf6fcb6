"""Old output of tools: it leaves the context first, since it can be read again.

The rule: a note stays in its place and says how. What the user answered is no output.
"""

from collections.abc import Collection, Mapping, Sequence

from panpan.types.content import TextBlock, ToolUseBlock
from panpan.types.messages import AssistantMessage, Message, ToolResultMessage

LEAST_CHARS = 600
"""Of an output that is worth a note."""
_SHOWN_CHARS = 60
"""Of the argument that a note names."""
_AGAIN = {"Read": "file_path", "Grep": "pattern", "Glob": "pattern", "LS": "path"}
"""Tools that show the present state when they are called again, with the argument that names it."""


def output_notes(messages: Sequence[Message], history_tool: str, answering: Collection[str]) -> dict[str, str]:
    """Return a note for each output that is long enough, by the id of its message.

    Args:
        messages: Whole blocks of a conversation.
        history_tool: Name of the tool that shows what was said; empty where the model has none.
        answering: Names of the tools whose results are the user's answers.
    """
    uses = {use.id: use for message in messages if isinstance(message, AssistantMessage) for use in message.tool_uses}
    return {
        message.uuid: _note(message, uses.get(message.tool_use_id), history_tool)
        for message in messages
        if isinstance(message, ToolResultMessage)
        and _is_long(message)
        and not ((use := uses.get(message.tool_use_id)) is not None and use.name in answering)
    }


def notes_for(notes: Mapping[str, str], messages: Sequence[Message]) -> dict[str, str]:
    """Return the notes for those of the messages that have one."""
    return {message.uuid: notes[message.uuid] for message in messages if message.uuid in notes}


def _is_long(message: ToolResultMessage) -> bool:
    has_others = any(not isinstance(block, TextBlock) for block in message.result.content)
    return has_others or len(message.text) > LEAST_CHARS


def _note(message: ToolResultMessage, use: ToolUseBlock | None, history_tool: str) -> str:
    ways = []
    name = use.name if use is not None else "tool"
    argument = use.input.get(_AGAIN[name]) if use is not None and name in _AGAIN else None
    if isinstance(argument, str):
        shown = argument if len(argument) <= _SHOWN_CHARS else f"{argument[:_SHOWN_CHARS]}…"
        ways.append(f"as it is now: {name} {shown}")
    elif not history_tool:
        ways.append("make the call again if it changes nothing")
    if history_tool:
        ways.append(f"as it was: {history_tool} with call {message.tool_use_id}")
    size = f"{len(message.text):,} characters of output" if message.text else "the output"
    return f"[{size} left out to save room. If you need it again: {'; '.join(ways)}]"
