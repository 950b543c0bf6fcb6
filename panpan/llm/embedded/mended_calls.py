"""Mends the calls of the small model before anything above sees them.

The rule: a call is held back until it is whole, so that its pieces and the final message tell of the same call.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from panpan.llm.embedded.lost_blanks import with_blank_kept
from panpan.llm.embedded.unread_files import file_of, known_files, with_reading_first
from panpan.types.content import ToolUseBlock
from panpan.types.events import BlockFinished, BlockStarted, StreamEvent, ToolInputDelta
from panpan.types.messages import AssistantMessage, Message


async def with_calls_mended(
    events: AsyncIterator[StreamEvent], messages: Sequence[Message]
) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events of a reply to `messages` with its calls mended; text passes as it comes."""
    known, mended = known_files(messages), dict[str, ToolUseBlock]()

    async for event in events:
        match event:
            case BlockStarted(kind="tool_use") | ToolInputDelta():
                pass  # told when the call is whole
            case BlockFinished(index=index, block=ToolUseBlock() as use):
                call = mended[use.id] = with_reading_first(with_blank_kept(use), known)
                known.add(file_of(call))
                yield BlockStarted(index, "tool_use", call.id, call.name)
                yield ToolInputDelta(index, json.dumps(call.input))
                yield BlockFinished(index, call)
            case AssistantMessage():
                content = tuple(mended.get(b.id, b) if isinstance(b, ToolUseBlock) else b for b in event.content)
                yield event.model_copy(update={"content": content})
            case _:
                yield event
