"""Content blocks: what messages are made of.

Names and fields are those of the Messages API (https://platform.claude.com/docs/en/api/messages), which users, logs and
other programs already know; each provider's own file translates them where its wire says it differently.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field


class Frozen(BaseModel):
    """Base of everything that is kept or crosses a border: immutable, and strict about its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class TextBlock(Frozen):
    """Plain text, of the user or of the model."""

    type: Literal["text"] = "text"
    text: str


class ThinkingBlock(Frozen):
    """What the model thought before it answered; sent back unchanged to the model that thought it."""

    type: Literal["thinking"] = "thinking"
    thinking: str
    signature: str = ""
    """The provider's seal over the text; empty where the provider has none."""


class RedactedThinkingBlock(Frozen):
    """Thinking that the provider encrypted; opaque, and sent back as it came."""

    type: Literal["redacted_thinking"] = "redacted_thinking"
    data: str


class ToolUseBlock(Frozen):
    """The model asks for a tool; answered by exactly one tool_result."""

    type: Literal["tool_use"] = "tool_use"
    id: str
    """Unique in the conversation."""
    name: str
    input: dict[str, Any]
    """The arguments; empty where they did not arrive as a JSON object."""
    input_error: str | None = None
    """Why the arguments could not be read. A call with this set is never run; it is answered with this text."""


class Base64Source(Frozen):
    """Bytes that travel inside a message."""

    type: Literal["base64"] = "base64"
    media_type: str
    data: str


class ImageBlock(Frozen):
    """A picture."""

    type: Literal["image"] = "image"
    source: Base64Source


class DocumentBlock(Frozen):
    """A document that the model reads itself, such as a PDF."""

    type: Literal["document"] = "document"
    source: Base64Source
    title: str | None = None


ResultContent: TypeAlias = Annotated[TextBlock | ImageBlock | DocumentBlock, Field(discriminator="type")]
"""What a tool_result may hold."""


class ToolResultBlock(Frozen):
    """The answer to one tool_use."""

    type: Literal["tool_result"] = "tool_result"
    tool_use_id: str
    content: tuple[ResultContent, ...]
    is_error: bool = False

    @property
    def text(self) -> str:
        """All of its text, pictures and documents left out."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextBlock))


UserContent: TypeAlias = Annotated[TextBlock | ImageBlock | DocumentBlock, Field(discriminator="type")]
"""What a user message may hold."""

AssistantContent: TypeAlias = Annotated[
    TextBlock | ThinkingBlock | RedactedThinkingBlock | ToolUseBlock, Field(discriminator="type")
]
"""What a reply of the model may hold."""
