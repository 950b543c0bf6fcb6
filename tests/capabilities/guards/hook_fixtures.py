"""Rounds, replies and calls for tests of hooks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round, ToolCall
from panpan.types.content import TextBlock, ToolUseBlock
from panpan.types.messages import AssistantMessage, StopReason, UserMessage
from tests.fakes.context import context_in
from tests.fakes.tools import FakeTool


def round_of(*messages: Any, number: int = 1, max_rounds: int = 10) -> Round:
    return Round(number, max_rounds, Conversation(messages=[UserMessage.of("go"), *messages]))


def reply(
    text: str = "", *, stop_reason: StopReason = "end_turn", has_tool: bool = False, **fields: Any
) -> AssistantMessage:
    use = (ToolUseBlock(id="1", name="Look", input={}),) if has_tool else ()
    words = (TextBlock(text=text),) if text else ()
    return AssistantMessage(content=(*words, *use), stop_reason=stop_reason, **fields)


def call_in(root: Path, *, name: str = "Look", tool_use_id: str = "1", **arguments: Any) -> ToolCall:
    tool = FakeTool(name)
    args = tool.input_model.model_validate(arguments)
    return ToolCall(tool_use_id, tool, args, arguments, context_in(root), tool.told)


async def after(hook: Hook, *replies: AssistantMessage, number: int = 1) -> list[Sequence[Addition]]:
    """Return what the hook adds after each of the replies."""
    return [await hook.after_round(round_of(number=number), one) for one in replies]
