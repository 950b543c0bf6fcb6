from pathlib import Path

import pytest

from panpan.models.providers.openai_compatible import OpenAIReply
from panpan.models.providers.vendor_profiles import PROFILES
from panpan.models.reply import ReplyBuilder
from panpan.models.transport import SseParser, Transport
from panpan.types.content import ThinkingBlock
from panpan.types.events import StreamEvent
from panpan.types.messages import AssistantMessage, Usage

FIXTURES = Path(__file__).parent.parent / "fixtures"

READ_A = ("Read", {"file_path": "a.py"})
READ_B = ("Read", {"file_path": "b.py"})

EXPECTED = {
    "gpt": ("", "", [("call_Xy1", *READ_A), ("call_Xy2", "Glob", {"pattern": "*.py"})], (176, 46, 1024)),
    "glm": ("The user wants the file.", "I read it.", [("call_-790512", *READ_A)], (44, 50, 256)),
    "deepseek": (
        "First look at a.py.",
        "Looking.",
        [("call_00_kw66qNnNto11bSfJVIdlV5Oo", *READ_A)],
        (116, 70, 384),
    ),
    "qwen": ("I need a.py.", "", [("call_deb0063d", *READ_A)], (240, 30, 0)),
    "kimi": (
        "Two files to read.",
        "Reading both.",
        [("functions.Read:0", *READ_A), ("functions.Read:1", *READ_B)],
        (80, 80, 320),
    ),
    "ollama": ("Read it.", "", [("call_vl0m2fgr", *READ_A), ("call_9hq2ck1x", *READ_B)], (120, 25, 0)),
    "llama.cpp": ("Check a.py", "Let me look.", [("NlpCbfJBkCK8", *READ_A)], (30, 33, 180)),
    "vllm": ("Hm, a.py", "", [("chatcmpl-tool-1a", *READ_A)], (90, 30, 0)),
    "lmstudio": ("It is in a.py.", "One moment.", [("365174485", *READ_A)], (263, 34, 0)),
}


def unopened() -> None:
    raise AssertionError("nothing is sent")


def read_stream(data: bytes, chunk_bytes: int) -> list[StreamEvent]:
    transport = Transport(provider="vendor", open_client=unopened)
    reply = OpenAIReply(ReplyBuilder(model="m"), transport)
    parser = SseParser()
    events: list[StreamEvent] = []
    for start in range(0, len(data), chunk_bytes):
        reply.read(parser.feed(data[start : start + chunk_bytes]))
        events += reply.builder.take()
    assert reply.is_over
    reply.finish()
    return events + reply.builder.take()


@pytest.mark.parametrize("vendor", EXPECTED)
@pytest.mark.parametrize("chunk_bytes", [7, 100_000])
def test_vendor_stream_becomes_the_expected_message(vendor: str, chunk_bytes: int) -> None:
    data = (FIXTURES / f"{vendor}.sse").read_bytes()

    message = read_stream(data, chunk_bytes)[-1]

    thinking, text, calls, (prompt, completion, cached) = EXPECTED[vendor]
    assert isinstance(message, AssistantMessage)
    assert "".join(block.thinking for block in message.content if isinstance(block, ThinkingBlock)) == thinking
    assert message.text == text
    assert [(use.id, use.name, use.input) for use in message.tool_uses] == calls
    assert all(use.input_error is None for use in message.tool_uses)
    assert message.stop_reason == "tool_use"
    assert message.usage == Usage(input_tokens=prompt, output_tokens=completion, cache_read_input_tokens=cached)


def test_vendor_fixtures_name_the_pages_they_follow() -> None:
    assert EXPECTED.keys() == PROFILES.keys() - {"generic"}
    for vendor in EXPECTED:
        first = (FIXTURES / f"{vendor}.sse").read_text().splitlines()[0]
        assert first.startswith(": Written by hand after https://")
