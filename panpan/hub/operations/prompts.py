"""Prompts of other programs: parts that become one message of the user."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from panpan.hub.operations.table import Params
from panpan.hub.wire import WireError, require_usable
from panpan.types.attachments import quote_path
from panpan.types.content import Base64Source, DocumentBlock, ImageBlock, TextBlock, UserContent
from panpan.types.messages import UserMessage, new_id

MAX_TEXT_CHARS = 4_000_000
"""Most characters of one text; models read less."""
MAX_PARTS = 200
_MAX_NAME_CHARS = 4_096
_AGENT = r"^[\w.:-]{1,200}$"
SUBTASK = "Let the subagent @{agent} do this:\n{prompt}"
"""Words for a subtask."""


def _require_type(schema: dict[str, Any]) -> None:
    """Say in the schema that the type is needed, since it tells what the rest is."""
    schema["required"] = ["type", *schema.get("required", ())]


class _Part(Params):
    model_config = ConfigDict(json_schema_extra=_require_type)


class TextPart(_Part):
    """Words of the user."""

    type: Literal["text"] = "text"
    text: str = Field(max_length=MAX_TEXT_CHARS)


class FilePart(_Part):
    """A file of the workspace, which goes along as a mention does."""

    type: Literal["file"] = "file"
    path: str = Field(min_length=1, max_length=_MAX_NAME_CHARS)
    first: int | None = Field(default=None, ge=1, le=9_999_999)
    """First line, from 1; None for the whole file."""
    last: int | None = Field(default=None, ge=1, le=9_999_999)


class DataPart(_Part):
    """A picture or a PDF."""

    type: Literal["data"] = "data"
    media_type: str = Field(max_length=100)
    data: str
    """Its bytes in Base64."""


class AgentPart(_Part):
    """A kind of subagent that the model is to use, as a mention names it."""

    type: Literal["agent"] = "agent"
    name: str = Field(pattern=_AGENT)


class SubtaskPart(_Part):
    """Work for a subagent."""

    type: Literal["subtask"] = "subtask"
    agent: str = Field(pattern=_AGENT)
    prompt: str = Field(min_length=1, max_length=MAX_TEXT_CHARS)


Part = Annotated[TextPart | FilePart | DataPart | AgentPart | SubtaskPart, Field(discriminator="type")]
"""Part of a prompt."""


def message_of(parts: Sequence[Part], message_id: str = "") -> UserMessage:
    """Return the message that parts make up: all words in their order, and behind them the pictures and documents.

    Mentions count in the first text of a message alone, so that there is one.

    Args:
        parts: The parts.
        message_id: Id of the message; empty for a new one.

    Raises:
        WireError: It is empty, a name cannot be mentioned, or a picture is of no kind that models read.
    """
    words = " ".join(_words_of(part) for part in parts if not isinstance(part, DataPart))
    content: list[UserContent] = [TextBlock(text=words)] if words else []
    content += [_block_of(part) for part in parts if isinstance(part, DataPart)]
    require_usable(content)
    return UserMessage(uuid=message_id or new_id(), content=tuple(content))


def _words_of(part: TextPart | FilePart | AgentPart | SubtaskPart) -> str:
    match part:
        case TextPart(text=text):
            return text
        case FilePart(path=path, first=first, last=last):
            if '"' in path or not path.isprintable():
                raise WireError("a file with quotes or invisible characters in its name cannot be sent as a part")
            lines = "" if first is None else f":{first}-{last if last is not None else first}"
            return f"{quote_path(path)}{lines}"
        case AgentPart(name=name):
            return f"@{name}"
        case SubtaskPart(agent=agent, prompt=prompt):
            return SUBTASK.format(agent=agent, prompt=prompt)


def _block_of(part: DataPart) -> UserContent:
    source = Base64Source(media_type=part.media_type, data=part.data)
    is_document = part.media_type == "application/pdf"
    return DocumentBlock(source=source) if is_document else ImageBlock(source=source)
