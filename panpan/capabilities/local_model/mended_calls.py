"""Mends the calls of the small model before anything above sees them.

The rule: a call is held back until it is whole, so that its pieces and the final message tell of the same call.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from panpan.capabilities.local_model.lost_blanks import with_blank_kept
from panpan.capabilities.local_model.plain_sed import with_edit_for_sed
from panpan.capabilities.local_model.said_direction import with_direction_as_said
from panpan.capabilities.local_model.unread_files import file_of, known_files, with_reading_first
from panpan.types.content import ToolUseBlock
from panpan.types.events import BlockFinished, BlockStarted, StreamEvent, ToolInputDelta
from panpan.types.messages import AssistantMessage, Message, UserMessage


async def with_calls_mended(
    events: AsyncIterator[StreamEvent], messages: Sequence[Message]
) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events of a reply to `messages` with its calls mended; text passes as it comes."""
    known, mended = known_files(messages), dict[str, ToolUseBlock]()
    words = next((message.text for message in reversed(messages) if isinstance(message, UserMessage)), "")

    async for event in events:
        match event:
            case BlockStarted(kind="tool_use") | ToolInputDelta():
                pass  # told when the call is whole
            case BlockFinished(index=index, block=ToolUseBlock() as use):
                call = mended[use.id] = _mended(use, known, words)
                known.add(file_of(call))
                yield BlockStarted(index, "tool_use", call.id, call.name)
                yield ToolInputDelta(index, json.dumps(call.input))
                yield BlockFinished(index, call)
            case AssistantMessage():
                content = tuple(mended.get(b.id, b) if isinstance(b, ToolUseBlock) else b for b in event.content)
                yield event.model_copy(update={"content": content})
            case _:
                yield event


def _mended(use: ToolUseBlock, known: set[str], words: str) -> ToolUseBlock:
    meant = with_direction_as_said(with_blank_kept(with_edit_for_sed(use)), words)
    return with_reading_first(meant, known)
