"""Results of servers, as the model gets them: cleaned, within bounds, and in marks."""

import json
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from panpan.system.text.terminal_text import clean_for_terminal, clean_line
from panpan.system.text.untrusted import mark_untrusted
from panpan.types.content import Base64Source, ImageBlock, ResultContent, TextBlock
from panpan.types.content import text as shown_text
from panpan.types.events import Output

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from panpan.system.files.output_store import OutputStore

MAX_RESULT_CHARS = 50_000
"""Most characters of a result that the model gets, unless its tool says otherwise; the whole is in a file."""
_MOST_PICTURES = 20
_MAX_SHOWN_CHARS = 2_000
"""Longest result that people see without the marks around it; a longer one is folded as it is."""
_BEGINNINGS = {"image/png": b"\x89PNG\r\n", "image/jpeg": b"\xff\xd8", "image/gif": b"GIF8", "image/webp": b"RIFF"}
"""Types of pictures that models read, each with its first bytes."""
_MAX_PICTURE_CHARS = 7_000_000
"""Longest picture in Base64: providers take 5 MB."""


async def output_for_model(
    result: "CallToolResult", tool: str, server: str, outputs: "OutputStore", tool_use_id: str, most: int
) -> Output:
    """Return a result as the model gets it.

    Args:
        result: What the server sent.
        tool: Full name of the tool.
        server: Name of its server.
        outputs: Keeps what is too long.
        tool_use_id: Id of the call.
        most: Most characters of it.
    """
    shorten = partial(outputs.shorten, f"{tool}-{tool_use_id}", max_chars=most)
    source = f"{server}/{tool.removeprefix(f'mcp__{server}__')}"
    return await to_thread.run_sync(output_of, result, source, lambda text: shorten(text=text))


def output_of(result: "CallToolResult", source: str, shorten: Callable[[str], str]) -> Output:
    """Return a result of a server.

    Args:
        result: What the server sent.
        source: Its server and tool, for the mark around its text.
        shorten: Cuts text that is too long, and names the file with the whole.
    """
    words, pictures = words_of(result)
    short = clean_for_terminal(words) if len(words) <= _MAX_SHOWN_CHARS else ""
    marked = mark_untrusted(shorten(words), "mcp-content", source) if words else "[it returned no text]"
    content: tuple[ResultContent, ...] = (TextBlock(text=marked), *pictures)
    return Output(content, shown_text(short) if short else None, is_error=result.is_error)


def words_of(result: "CallToolResult") -> tuple[str, Sequence[ImageBlock]]:
    """Return the text of a result, which is its structured content where it has no other, and its pictures."""
    texts: list[str] = []
    pictures: list[ImageBlock] = []
    for block in result.content:
        for part in parts_of(block.model_dump(mode="json", by_alias=True)):
            if isinstance(part, str):
                texts.append(part)
            elif len(pictures) < _MOST_PICTURES:
                pictures.append(part)
            else:
                texts.append("[a picture, left out: there are too many]")
    if result.structured_content is not None and not any(texts):
        texts.append(json.dumps(result.structured_content, ensure_ascii=False, indent=1))
    return "\n".join(texts).strip(), pictures


def parts_of(block: Mapping[str, Any]) -> Iterator[str | ImageBlock]:
    """Yield the texts and pictures in a block of content, as a server sends it."""
    match block:
        case {"type": "text", "text": str(text)}:
            yield text
        case {"type": "image", "data": str(data), "mimeType": str(kind)}:
            yield _picture(data, kind)
        case {"type": "audio", "mimeType": str(kind), "data": str(data)}:
            yield f"[a sound of the type {clean_line(kind)}, {len(data) * 3 // 4:,} bytes, left out]"
        case {"type": "resource_link", "uri": str(uri)}:
            yield f"[a resource: {clean_line(str(block.get('title') or block.get('name') or ''))} {clean_line(uri)}]"
        case {"type": "resource", "resource": {"text": str(text), "uri": str(uri)}}:
            yield f"[the resource {clean_line(uri)}]\n{text}"
        case {"type": "resource", "resource": {"blob": str(data), "uri": str(uri)} as resource}:
            yield f"[the resource {clean_line(uri)}]"
            kind = clean_line(str(resource.get("mimeType") or "unknown"))
            yield _picture(data, kind) if kind in _BEGINNINGS else f"[{len(data) * 3 // 4:,} bytes, type {kind}]"
        case _:
            yield f"[something of the type {clean_line(str(block.get('type')))}, left out]"


def _picture(data: str, kind: str) -> str | ImageBlock:
    if kind not in _BEGINNINGS:
        return f"[a picture of the type {clean_line(kind)}, which models do not read]"
    if len(data) > _MAX_PICTURE_CHARS:
        return f"[a picture of {len(data) * 3 // 4:,} bytes, which is too large]"
    try:
        begins = b64decode(data, validate=True)[:16]
    except ValueError:
        return "[a picture that is not Base64, left out]"
    if not begins.startswith(_BEGINNINGS[kind]):
        return f"[a picture that is not of the type {kind} as it says, left out]"
    return ImageBlock(source=Base64Source(media_type=kind, data=data))
