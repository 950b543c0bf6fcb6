"""Mends one fault of the small model: it reads a file, says that it has changed it, and has changed nothing.

A reminder does not help: it reads the file again, or edits something else. But a call that is begun for it, it finishes
well. So its reply goes on with that call, which needs the permission of the user like any other.
"""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any

from panpan.capabilities.local_model.mended_calls import file_of
from panpan.types.content import ToolUseBlock
from panpan.types.events import BlockFinished, BlockStarted, StreamEvent, ToolInputDelta
from panpan.types.messages import AssistantMessage, Message, Usage, UserMessage

_TOOL = "Edit"
_AS_WRITTEN = '```json\n{"name": "' + _TOOL + '", "arguments": '
"""How the model begins a call, as in `tool_calls.jinja`."""

_LOOKS = re.compile(
    r"\s*(?:what|which|who|whose|where|when|why|how|is|are|was|were|does|do|did|has|have|should|must|tell|show|explain"
    r"|describe|read|list|find|look|check|count)\b",
    re.IGNORECASE,
)
"""How questions and orders begin that ask for no change, whatever else they say."""
_ASKS = re.compile(
    r"\b(?:change|replace|correct|fix|edit|update|swap|substitute|make|use|put|set|turn|write|add|append|insert|remove"
    r"|delete|should|must|needs?|has to|becomes?)\b",
    re.IGNORECASE,
)
_CLAIMS = re.compile(
    r"\b(?:now (?:says|reads|has|contains|holds|ends|uses|is|mentions|lists)|changed|replaced|corrected|fixed|edited"
    r"|updated|swapped|substituted|added|appended|inserted|removed|deleted)\b",
    re.IGNORECASE,
)


async def with_claimed_call(
    events: AsyncIterator[StreamEvent],
    messages: Sequence[Message],
    ask: Callable[[str], AsyncGenerator[StreamEvent, None]],
) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events of a reply to `messages`, and behind them those of the call that it claims to have made.

    Args:
        events: The reply.
        messages: The conversation so far.
        ask: Asks the model for another reply, which it has begun with a text already.
    """
    async for event in events:
        arguments = _claimed(messages, event) if isinstance(event, AssistantMessage) else ""
        if not arguments or not isinstance(event, AssistantMessage):
            yield event
            continue
        async with aclosing(ask(_AS_WRITTEN + arguments)) as more:
            call, output_tokens = await _finished(more, arguments)
        if call is None:
            yield event
            continue
        index = len(event.content)
        yield BlockStarted(index, "tool_use", call.id, call.name)
        yield ToolInputDelta(index, json.dumps(call.input))
        yield BlockFinished(index, call)
        usage = event.usage + Usage(output_tokens=output_tokens)  # what it read again, the server still knew
        content = (*event.content, call)
        yield event.model_copy(update={"content": content, "stop_reason": "tool_use", "usage": usage})


def _claimed(messages: Sequence[Message], reply: AssistantMessage) -> str:
    """Return the beginning of the arguments of the call that `reply` claims to have made; "" for none.

    That is an edit, where the user asked for a change, the reply says that it is made, and since his words nothing was
    done but read files.
    """
    start = next((n for n in range(len(messages) - 1, -1, -1) if isinstance(messages[n], UserMessage)), None)
    if start is None or reply.tool_uses or reply.stop_reason != "end_turn":
        return ""
    uses = [use for message in messages[start:] if isinstance(message, AssistantMessage) for use in message.tool_uses]
    if not uses or any(use.name != "Read" for use in uses):
        return ""
    words = messages[start].text
    if _LOOKS.match(words) or not _ASKS.search(words) or not _CLAIMS.search(reply.text):
        return ""
    return f'{{"file_path": {json.dumps(file_of(uses[-1]))}, "old_string": "'


async def _finished(events: AsyncIterator[StreamEvent], begun: str) -> tuple[ToolUseBlock | None, int]:
    """Return the call that was begun with these arguments, None where it was not finished, and the tokens it took.

    llama.cpp streams of a call what came behind its beginning; another version of it may stream all.
    """
    call: ToolUseBlock | None = None
    pieces: list[str] = []
    output_tokens = 0
    async for event in events:
        match event:
            case ToolInputDelta(json=piece):
                pieces.append(piece)
            case BlockFinished(block=ToolUseBlock() as block):
                call = block
            case AssistantMessage():
                output_tokens = event.usage.output_tokens
            case _:
                pass
    told = "".join(pieces)
    arguments = _object(told) or _object(begun + told)
    if call is None or call.name != _TOOL or arguments is None:
        return None, output_tokens
    return call.model_copy(update={"input": arguments, "input_error": None}), output_tokens


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
