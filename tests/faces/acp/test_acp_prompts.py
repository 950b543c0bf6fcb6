"""The user's message from content blocks: words and mentions of the user first, the editor's data behind them."""

import base64
from io import BytesIO
from typing import Any

import anyio
import pytest
from acp.exceptions import RequestError
from acp.schema import PromptRequest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from panpan.faces.acp.prompts import message_of
from panpan.types.attachments import find_mentions
from panpan.types.content import ImageBlock, TextBlock


def png() -> str:
    buffer = BytesIO()
    Image.new("RGB", (4, 4)).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


async def read(*blocks: dict[str, Any]) -> Any:
    """Return the message of blocks as a client sends them."""
    return await message_of(PromptRequest.model_validate({"sessionId": "s", "prompt": list(blocks)}).prompt)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def link(uri: str, name: str = "name") -> dict[str, Any]:
    return {"type": "resource_link", "uri": uri, "name": name}


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("file:///a/b.py", "@/a/b.py"),
        ("file://localhost/a/b.py", "@/a/b.py"),
        ("file:///a/with%20blank.py", '@"/a/with blank.py"'),
        ("file:///a/b.py#L3", "@/a/b.py:3-3"),
        ("file:///a/b.py#L3-L9", "@/a/b.py:3-9"),
        ("file:///a/b.py#L3:9", "@/a/b.py:3-9"),
        ("file:///a/b.py#heading", "@/a/b.py"),
        ("https://example.org/x", "name (https://example.org/x)"),
        ("file://server/a", "name (file://server/a)"),
        ("file:///a%0a%2fcompact", "name (file:///a%0a%2fcompact)"),
        ("file:///a%22b", "name (file:///a%22b)"),
        ("http://[", "name (http://[)"),
        ("", "name ()"),
    ],
)
async def test_link_is_a_mention_if_it_is_a_file_here(uri: str, said: str) -> None:
    message = await read(text("look at "), link(uri), text(" please"))

    assert message.typed == f"look at {said} please"
    assert len(message.content) == 1


async def test_link_is_a_word_of_its_own() -> None:
    message = await read(text("see:"), link("file:///a.py"), link("file:///b.py"), text("and ("), link("file:///c.py"))

    assert message.typed == "see: @/a.py @/b.py and (@/c.py"
    assert [one.name for one in find_mentions(message.typed)] == ["/a.py", "/b.py", "/c.py"]


async def test_embedded_resource_is_data() -> None:
    resource = {"uri": "file:///a/notes.md", "text": "/compact\n@secret.txt"}

    message = await read(text("sum up "), {"type": "resource", "resource": resource})

    assert message.typed == "sum up [notes.md]"
    assert message.content[1] == TextBlock(text="[the resource file:///a/notes.md]\n/compact\n@secret.txt")


@pytest.mark.parametrize("words", ["@/etc/passwd", "/compact now", "a @.env", "(@.env)", "@x@.env"])
@pytest.mark.parametrize("part", ["name", "uri", "resource"])
async def test_names_of_the_editor_are_no_mentions_and_no_commands(words: str, part: str) -> None:
    resource = {"type": "resource", "resource": {"uri": f"file:///a/{words.replace('/', '%2F')}", "text": "x"}}
    block = {"name": link("https://example.org", words), "uri": link(words), "resource": resource}[part]

    message = await read(block)

    assert not find_mentions(message.typed)
    assert not message.typed.startswith("/")


async def test_pictures_go_along() -> None:
    message = await read(
        text("what is it"),
        {"type": "image", "data": png(), "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "file:///a.png", "blob": png(), "mimeType": "image/png"}},
        {"type": "resource", "resource": {"uri": "file:///a.bin", "blob": "AAAA"}},
    )

    assert [type(block) for block in message.content] == [TextBlock, ImageBlock, ImageBlock, TextBlock]
    assert message.content[3].text == "[the resource file:///a.bin: 3 bytes that are no text and no picture, left out]"


@pytest.mark.parametrize(
    ("block", "error"),
    [
        ({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}, "panpan takes no audio"),
        ({"type": "image", "data": "AAAA", "mimeType": "image/png"}, "the picture is of no format that models read"),
        ({"type": "image", "data": "%", "mimeType": "image/png"}, "the picture is not Base64"),
        ({"type": "image", "data": png()[:60], "mimeType": "image/png"}, "the picture is"),
        (text("  \n"), "the prompt is empty"),
        (text("x" * 1_000_001), "the prompt has more than 1,000,000 characters"),
    ],
)
async def test_part_that_no_model_gets_is_refused(block: dict[str, Any], error: str) -> None:
    with pytest.raises(RequestError, match=error):
        await read(block)


@given(st.text(), st.text(max_size=60))
def test_data_never_becomes_words_of_the_user(content: str, name: str) -> None:
    try:
        message = anyio.run(
            read, text("look"), {"type": "resource", "resource": {"uri": f"file:///{name}", "text": content}}
        )
    except ValueError:  # no text that JSON has
        return
    assert message.typed.startswith("look [")
    assert "\n" not in message.typed
    assert not [one for one in find_mentions(message.typed) if one.name in content and len(one.name) > len(name)]
