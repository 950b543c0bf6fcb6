"""One conversation, sent to each vendor: the whole body against one written by hand after the vendor's own pages.

The files name these pages, and in a note what is particular and what is from memory. What differs between the body by
the pages and the one that is sent stands under `sent_today` (null: not sent), so that a change of either is noticed.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from panpan.models.providers.openai_compatible import OpenAICompatibleProvider
from panpan.models.providers.vendor_profiles import PROFILES
from panpan.types.content import Base64Source, ImageBlock, ThinkingBlock
from panpan.types.llm import ModelOptions, ModelRequest, ToolDefinition
from panpan.types.messages import Message, UserMessage
from tests.model_server import say, serving
from tests.models.wire import ask, reply, result, use

GOLDEN = Path(__file__).parent.parent / "golden"
VENDORS = sorted(PROFILES.keys() - {"generic"})

READ = ToolDefinition(
    "Read",
    "Reads a file.",
    {
        "type": "object",
        "properties": {
            "file_path": {"type": "string", "description": "Path of the file", "pattern": "\\S"},
            "range": {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {
                            "first": {"type": "integer", "minimum": 1, "default": 1},
                            "last": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
                        },
                        "required": ["first"],
                    },
                    {"type": "null"},
                ],
                "default": None,
                "description": "Lines to read",
            },
        },
        "required": ["file_path"],
    },
)
FETCH = ToolDefinition(
    "Fetch",
    "Fetches a page.",
    {
        "type": "object",
        "properties": {
            "url": {"type": "string", "format": "uri"},
            "format": {"type": "string", "enum": ["text", "html"], "default": "text"},
            "since": {"type": ["string", "null"], "format": "date-time"},
        },
        "required": ["url"],
        "additionalProperties": False,
    },
)
PNG = ImageBlock(source=Base64Source(media_type="image/png", data="iVBORw0KGgo="))


def golden_of(vendor: str) -> dict[str, Any]:
    golden: dict[str, Any] = json.loads((GOLDEN / f"{vendor}.json").read_text())
    return golden


def conversation(model: str) -> list[Message]:
    calls = (
        use("call_1", "Read", file_path="plot.png"),
        use("call_2", "Fetch", url="https://example.org/", format="text"),
    )
    thinking = ThinkingBlock(thinking="The plot and the page belong together.", signature="made by another API")
    return [
        UserMessage.of("Compare plot.png with the page."),
        reply(thinking, "I look at both.", *calls, model=model),
        result("call_1", "plot.png, 640 x 480", PNG),
        result("call_2", "example.org does not answer", is_error=True),
        UserMessage.of("Which of the two is newer?"),
    ]


def without_nulls(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


@pytest.mark.parametrize("vendor", VENDORS)
async def test_golden_body_is_sent_to_the_vendor(vendor: str) -> None:
    golden = golden_of(vendor)
    options = ModelOptions(**golden["options"])
    request = ModelRequest("You are panpan.", (READ, FETCH), conversation(options.model))

    with serving([say("The page.")], api_key="k") as server:
        provider = OpenAICompatibleProvider(api_key="k", base_url=server.openai_url, name=vendor)
        await ask(provider, request, options)
        await provider.aclose()

    (sent,) = server.requests
    assert sent.path == "/v1/chat/completions"
    assert sent.body == without_nulls(golden["body"] | golden.get("sent_today", {}))
    assert list(sent.body)[-1] == "messages"  # what grows stands at the end


@pytest.mark.parametrize("vendor", VENDORS)
def test_golden_body_names_its_pages_and_marks_differences(vendor: str) -> None:
    golden = golden_of(vendor)

    differences = golden.get("sent_today", {})

    assert golden["follows"]
    assert all(page.startswith("https://") for page in golden["follows"])
    assert golden["note"]
    assert all(golden["body"].get(name) != value for name, value in differences.items())


def test_golden_bodies_cover_every_vendor() -> None:
    assert sorted(path.name.removesuffix(".json") for path in GOLDEN.iterdir()) == VENDORS
