"""The user's message from the content blocks of a prompt.

The rule: the words are what the user wrote, with the files that they mentioned in the editor. What the editor put in
beside them is data: nothing in it is a mention or a command.
"""

import re
from base64 import b64decode
from collections.abc import Sequence
from typing import TypeAlias
from urllib.parse import SplitResult, unquote, urlsplit

from acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)
from anyio import to_thread

from panpan.documents.read_image import image_format, prepare_image
from panpan.errors import ToolError
from panpan.faces.acp.connection import invalid
from panpan.system.text.terminal_text import clean_line
from panpan.types.attachments import quote_path
from panpan.types.content import ImageBlock, TextBlock, UserContent
from panpan.types.messages import UserMessage

Block: TypeAlias = (
    TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock
)

MAX_PROMPT_CHARS = 1_000_000
"""Longest words of the user."""
_LINES = re.compile(r"L?(\d{1,7})(?:(?::\d+)?[-:]L?(\d{1,7}))?(?::\d+)?")
"""Lines of a file behind the `#` of an address, as editors write them."""
_ACTS = re.compile(r"(?<![^\s(\[{])@|^/")
_NO_MENTION = re.compile(r'["\x00-\x1f\x7f]')


async def message_of(blocks: Sequence[Block]) -> UserMessage:
    """Return the message that a prompt is.

    Raises:
        RequestError: It says nothing, or has a part that no model gets.
    """
    words, data = "", list[UserContent]()
    for before, block in zip((None, *blocks), blocks, strict=False):
        is_behind_link = isinstance(before, ResourceContentBlock | EmbeddedResourceContentBlock)
        match block:
            case TextContentBlock(text=text):
                words += f" {text}" if is_behind_link and text[:1].isalnum() else text
            case ResourceContentBlock(uri=uri, name=name):
                words = _with_link(words, _link(uri, name))
            case EmbeddedResourceContentBlock(resource=TextResourceContents(uri=uri, text=text)):
                words = _with_link(words, _named(uri))
                data.append(TextBlock(text=f"[the resource {clean_line(uri)}]\n{text}"))
            case EmbeddedResourceContentBlock(resource=BlobResourceContents(uri=uri, blob=blob)):
                words = _with_link(words, _named(uri))
                data.append(await _blob(blob, clean_line(uri)))
            case ImageContentBlock(data=encoded):
                data.append(await _picture(encoded, "the picture"))
            case AudioContentBlock():
                raise invalid("panpan takes no audio; send text, pictures or files")
    if len(words) > MAX_PROMPT_CHARS:
        raise invalid(f"the prompt has more than {MAX_PROMPT_CHARS:,} characters; put them into a file and mention it")
    if not words.strip() and not data:
        raise invalid("the prompt is empty; say what panpan is to do")
    return UserMessage(content=(TextBlock(text=words), *data))


def _with_link(words: str, link: str) -> str:
    """Return the words with a link behind them, apart from the word before: a mention begins a word."""
    return f"{words} {link}" if words and not words[-1].isspace() and words[-1] not in "([{" else f"{words}{link}"


def _link(uri: str, name: str) -> str:
    """Return a link as the user would type it: a mention if it is a file here."""
    parts = _parts(uri)
    path = unquote(parts.path)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or _NO_MENTION.search(path) or not path:
        return f"{_plain(name)} ({_plain(uri)})"
    mention = quote_path(path)
    if found := _LINES.fullmatch(parts.fragment):
        mention += f":{found[1]}-{found[2] or found[1]}"
    return mention


def _parts(uri: str) -> SplitResult:
    try:
        return urlsplit(uri)
    except ValueError:  # such as an address with one bracket
        return SplitResult("", "", uri, "", "")


def _named(uri: str) -> str:
    """Return the name of a resource whose content goes along, for its place in the user's words."""
    return f"[{_plain(unquote(_parts(uri).path).rstrip('/').rpartition('/')[2] or uri)}]"


def _plain(name: str) -> str:
    """Return a name of the editor's on one line, with a quotation mark before what would be a mention or a command."""
    return _ACTS.sub(lambda found: f"'{found[0]}", clean_line(name))


async def _blob(encoded: str, uri: str) -> UserContent:
    data = _decoded(encoded, uri)
    if image_format(data) is None:
        return TextBlock(text=f"[the resource {uri}: {len(data):,} bytes that are no text and no picture, left out]")
    return await _picture(encoded, uri)


async def _picture(encoded: str, shown: str) -> ImageBlock:
    data = _decoded(encoded, shown)
    if image_format(data) is None:
        raise invalid(f"{shown} is of no format that models read; send PNG, JPEG, GIF or WebP")
    try:
        return (await to_thread.run_sync(prepare_image, data, shown)).block
    except ToolError as error:
        raise invalid(str(error)) from error


def _decoded(encoded: str, shown: str) -> bytes:
    try:
        return b64decode(encoded, validate=True)
    except ValueError as error:
        raise invalid(f"{shown} is not Base64") from error
