"""A conversation as text, for a model that shall read of it rather than go on with it."""

import json
from collections.abc import Iterator, Sequence
from typing import assert_never

from panpan.types.content import TextBlock, ToolUseBlock
from panpan.types.dataclass import dataclass
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, UserMessage


@dataclass(frozen=True, slots=True)
class ToldMessage:
    """One message, or a call in one."""

    number: int
    """Of the message in the conversation, from 1."""
    heading: str
    """Who says it, or what it is."""
    text: str
    tool_use_id: str = ""
    """Of the call that it is or answers; empty for other messages."""

    @property
    def whole(self) -> str:
        """All of it, as it is shown."""
        return f"[{self.number}] {self.heading}:\n{self.text}"


def told_messages(messages: Sequence[Message], *, first: int = 1) -> Iterator[ToldMessage]:
    """Yield what messages say, without thinking; pictures and documents are only mentioned.

    Args:
        messages: The conversation, or a part of it in which each result has its call.
        first: Number of the first message.
    """
    names: dict[str, str] = {}
    for number, message in enumerate(messages, first):
        match message:
            case UserMessage():
                yield ToldMessage(number, "The user", _text_of(message.content))
            case SystemReminder():
                yield ToldMessage(number, "panpan", message.text)
            case AssistantMessage():
                if text := message.text.strip():
                    yield ToldMessage(number, "The model", text)
                for use in message.tool_uses:
                    names[use.id] = use.name
                    yield ToldMessage(number, f"Call of {use.name} ({use.id})", _arguments(use), use.id)
            case ToolResultMessage(result=result):
                name = names.get(message.tool_use_id, "a tool")
                what = "Error" if message.is_error else "Result"
                yield ToldMessage(
                    number,
                    f"{what} of {name} ({message.tool_use_id})",
                    _text_of(result.content),
                    message.tool_use_id,
                )
            case _:
                assert_never(message)


def _text_of(blocks: Sequence[object]) -> str:
    texts = [
        block.text if isinstance(block, TextBlock) else f"[a {type(block).__name__.removesuffix('Block').lower()}]"
        for block in blocks
    ]
    return "\n".join(texts)


def _arguments(use: ToolUseBlock) -> str:
    return json.dumps(use.input, ensure_ascii=False)
