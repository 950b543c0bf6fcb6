"""What of a record is searched: what the user, the model and the tools said, and titles."""

from collections.abc import Iterator, Mapping
from typing import Any

from panpan.system.text.terminal_text import without_controls

MAX_CHARS = 20_000
"""Of one record; of longer ones, such as large outputs of tools, the beginning."""


def said_in(record: Mapping[str, Any]) -> str:
    """Return what a record says, whatever it holds; empty where that is nothing that people search for."""
    match record:
        case {"type": "summary", "summary": str(title)}:
            return title[:MAX_CHARS]
        case {"type": "user" | "assistant", "message": {"content": content}}:
            return without_controls("\n".join(_texts(content))[:MAX_CHARS])  # colours would be parts of words
        case _:
            return ""


def _texts(content: Any) -> Iterator[str]:
    """Yield the texts of content: those of blocks, of results and of the arguments of calls."""
    match content:
        case str():
            yield content
        case [*blocks]:
            for block in blocks:
                yield from _texts_of_block(block)
        case _:
            pass


def _texts_of_block(block: Any) -> Iterator[str]:
    match block:
        case {"type": "text", "text": str(text)}:
            yield text
        case {"type": "tool_result", "content": content}:
            yield from _texts(content)
        case {"type": "tool_use", "name": str(name), "input": dict(arguments)}:
            yield name
            yield from (value for value in arguments.values() if isinstance(value, str))
        case _:
            pass
