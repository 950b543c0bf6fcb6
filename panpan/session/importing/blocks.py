"""Blocks of foreign messages as blocks of ours: what panpan has no place for becomes a note, or is left out."""

from collections.abc import Iterator
from typing import Any

from pydantic import TypeAdapter, ValidationError

from panpan.types.content import (
    AssistantContent,
    Base64Source,
    DocumentBlock,
    ImageBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserContent,
)

_source = TypeAdapter(Base64Source)


def user_blocks(content: Any) -> Iterator[UserContent]:
    """Yield what a user, or a tool, said; texts of nothing are left out, as no provider takes them."""
    match content:
        case str():
            yield from _text(content)
        case [*blocks]:
            for block in blocks:
                yield from _user_block(block)
        case _:
            pass


def assistant_blocks(content: Any) -> Iterator[AssistantContent]:
    """Yield what a model said."""
    match content:
        case str():
            yield from _text(content)
        case [*blocks]:
            for block in blocks:
                yield from _assistant_block(block)
        case _:
            pass


def result_block(block: Any) -> ToolResultBlock | None:
    """Return the answer to a call that a block is; None where it is none."""
    match block:
        case {"type": "tool_result", "tool_use_id": str(id_)}:
            content = tuple(user_blocks(block.get("content")))
            return ToolResultBlock(tool_use_id=id_, content=content, is_error=block.get("is_error") is True)
        case _:
            return None


def _text(text: str) -> Iterator[TextBlock]:
    if text.strip():
        yield TextBlock(text=text)


def _user_block(block: Any) -> Iterator[UserContent]:
    match block:
        case {"type": "text", "text": str(text)}:
            yield from _text(text)
        case {"type": "image", "source": source} if (bytes_ := _bytes(source)) is not None:
            yield ImageBlock(source=bytes_)
        case {"type": "document", "source": source} if (bytes_ := _bytes(source)) is not None:
            title = block.get("title")
            yield DocumentBlock(source=bytes_, title=title if isinstance(title, str) else None)
        case {"type": "document", "source": {"data": str(text)}}:
            yield from _text(text)
        case {"type": "tool_result"}:
            pass  # a message of its own
        case {"type": str(kind)}:
            yield TextBlock(text=f"[a block of the kind {kind[:40]}, which was not imported]")
        case _:
            pass


def _assistant_block(block: Any) -> Iterator[AssistantContent]:
    match block:
        case {"type": "text", "text": str(text)}:
            yield from _text(text)
        case {"type": "thinking", "thinking": str(thinking)}:
            signature = block.get("signature")
            yield ThinkingBlock(thinking=thinking, signature=signature if isinstance(signature, str) else "")
        case {"type": "redacted_thinking", "data": str(data)}:
            yield RedactedThinkingBlock(data=data)
        case {"type": "tool_use", "id": str(id_), "name": str(name)}:
            arguments = block.get("input")
            yield ToolUseBlock(id=id_, name=name, input=arguments if isinstance(arguments, dict) else {})
        case {"type": str(kind)}:
            yield TextBlock(text=f"[a block of the kind {kind[:40]}, which was not imported]")
        case _:
            pass


def _bytes(source: Any) -> Base64Source | None:
    """Return the bytes of a picture or document; None where they are elsewhere, or no bytes."""
    if not isinstance(source, dict):
        return None
    try:
        return _source.validate_python({name: source.get(name) for name in ("type", "media_type", "data")})
    except ValidationError:
        return None
