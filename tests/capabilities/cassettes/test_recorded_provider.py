"""A recorded cassette as a model: `cassette:PATH` with a file of JSON lines."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from panpan.app import PROVIDER_KINDS
from panpan.capabilities.cassettes.recorded_file import is_recorded, read_recorded
from panpan.capabilities.cassettes.recorded_reply import RecordedProvider, RecordedReply
from panpan.core.conversation import Conversation
from panpan.errors import CassetteError, ConfigError, ProviderError, StreamError
from panpan.models.factory import create_client, resolve_model
from panpan.models.model_choice import ModelRequirement
from panpan.types.content import TextBlock, ToolResultBlock, ToolUseBlock
from panpan.types.events import TextDelta
from panpan.types.llm import ModelOptions, ToolDefinition
from panpan.types.messages import AssistantMessage, ToolResultMessage, UserMessage

OPTIONS = ModelOptions(model="tape", max_output_tokens=100)
TOOLS = [ToolDefinition("Read", "", {"type": "object"})]
USE = ToolUseBlock(id="call_1", name="Read", input={"file_path": "a"})
CALLS = AssistantMessage(content=(USE,), stop_reason="tool_use")
SAYS = AssistantMessage(content=(TextBlock(text="Read."),))
HEADER = {"type": "cassette", "version": 1}


def conversation(tools: Sequence[ToolDefinition] = TOOLS) -> Conversation:
    return Conversation("system", tools, [UserMessage.of("read it")])


def replies(*events: Any, failure: ProviderError | None = None) -> RecordedReply:
    return RecordedReply(tuple((number * 1.5, event) for number, event in enumerate(events)), failure)


async def play(provider: RecordedProvider, one: Conversation) -> list[Any]:
    events = [event async for event in provider.stream(one.request(), OPTIONS)]
    one.append(events[-1])
    return events


def written(path: Path, *lines: Any) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


async def test_recorded_model_keeps_its_pace_with_bounded_waits() -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    slow = RecordedReply(((0.0, TextDelta(0, "I")), (0.5, TextDelta(0, " see")), (90.0, SAYS)))
    events = await play(RecordedProvider([slow], sleep=sleep), conversation())

    assert events == [TextDelta(0, "I"), TextDelta(0, " see"), SAYS]
    assert waited == [0.5, 2.0]


async def test_recorded_reply_with_a_missing_tool_is_not_played() -> None:
    with pytest.raises(CassetteError, match="calls Read in reply 1, which is not offered"):
        await play(RecordedProvider([replies(CALLS)]), conversation([]))


@pytest.mark.parametrize("has_failed", [True, False])
async def test_recorded_model_goes_on_only_after_equal_outcomes(has_failed: bool) -> None:
    provider = RecordedProvider([replies(CALLS), replies(SAYS)], outcomes={"call_1": False}, place="tape.jsonl")
    one = conversation()
    await play(provider, one)
    result = ToolResultBlock(tool_use_id="call_1", content=(TextBlock(text="gone"),), is_error=has_failed)
    one.append(ToolResultMessage(result=result))

    if not has_failed:
        assert (await play(provider, one))[-1] == SAYS
        return
    with pytest.raises(CassetteError, match=r"before reply 2: the call call_1 succeeded when .* failed now: 'gone'"):
        await play(provider, one)


async def test_recorded_model_skips_retries_and_repeats_last_failures() -> None:
    provider = RecordedProvider([replies(failure=StreamError("cut")), replies(SAYS), replies(failure=StreamError("x"))])
    one = conversation()

    assert (await play(provider, one))[-1] == SAYS
    one.append(UserMessage.of("again"))
    with pytest.raises(ProviderError, match="x") as raised:
        await play(provider, one)
    assert not isinstance(raised.value, StreamError)
    with pytest.raises(CassetteError, match="is over: it has 2 replies"):
        await play(provider, one)


async def test_factory_tells_a_recording_from_a_tape(tmp_path: Path) -> None:
    reply = {"type": "cassette_reply", "number": 1, **replies(SAYS).as_json()}
    path = written(tmp_path / "recorded.jsonl", HEADER, reply)
    toml = tmp_path / "tape.toml"
    toml.write_text("version = 1\n[[reply]]\ntext = 'hello'\n")

    client = create_client(
        resolve_model([ModelRequirement("here", model=f"cassette:{path}")], {}, kinds=PROVIDER_KINDS)
    )
    events = [event async for event in client.stream(conversation().request())]

    assert isinstance(events[-1], AssistantMessage)
    assert events[-1].text == "Read."
    assert (is_recorded(path), is_recorded(toml), is_recorded(tmp_path / "none")) == (True, False, False)


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ([{"type": "user"}], "is not a recorded cassette"),
        ([{**HEADER, "version": 2}], "has format version 2 and this panpan plays 1; update panpan"),
        ([HEADER, [1]], ":2 is not a JSON object"),
    ],
)
def test_unplayable_recording_is_named(tmp_path: Path, lines: list[Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        read_recorded(written(tmp_path / "a.jsonl", *lines))


def test_damage_is_named_but_a_torn_end_is_not(tmp_path: Path) -> None:
    whole = json.dumps(HEADER).encode()
    (tmp_path / "torn.jsonl").write_bytes(whole + b'\n{"type":"cassette_re')
    (tmp_path / "damaged.jsonl").write_bytes(whole + b"\n{\n" + whole + b"\n")

    assert read_recorded(tmp_path / "torn.jsonl").lines == []
    with pytest.raises(ConfigError, match=r"damaged\.jsonl:2 is not valid JSON"):
        read_recorded(tmp_path / "damaged.jsonl")
