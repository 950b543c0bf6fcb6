import json
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given

from panpan.models.providers import anthropic_request as wire
from panpan.models.wire import WireHistory
from panpan.types.content import (
    Base64Source,
    DocumentBlock,
    ImageBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from panpan.types.llm import ModelOptions, ToolDefinition
from panpan.types.messages import Message, SystemReminder, UserMessage
from tests.models.wire import ODD_TEXT, OPTIONS, reply, result, use

MARK = {"cache_control": {"type": "ephemeral"}}
READ = ToolDefinition("Read", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
PNG = Base64Source(media_type="image/png", data="iVBORw0KGgo=")
PDF = Base64Source(media_type="application/pdf", data="JVBERi0=")


def body_bytes(
    messages: Sequence[Message],
    options: ModelOptions = OPTIONS,
    system: str = "",
    tools: Sequence[ToolDefinition] = (),
    is_stream: bool = True,
) -> bytes:
    history = WireHistory(partial(wire.encode_reply, model=options.model), wire.encode_user_side)
    return wire.join_body(wire.encode_head(options, system, tools, is_stream=is_stream), history.groups(messages))


def body(*messages: Message, **fields: Any) -> Any:
    return json.loads(body_bytes(messages, **fields))


def messages_of(*messages: Message, **fields: Any) -> Any:
    """The messages of the body without cache marks."""
    return json.loads(without_marks(body_bytes(messages, **fields)))["messages"]


def without_marks(data: bytes) -> bytes:
    return data.replace(b',"cache_control":{"type":"ephemeral"}', b"")


def test_request_with_tools_follows_the_messages_api() -> None:
    # https://platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use
    sent = body(
        UserMessage.of("What does a.py say?"),
        SystemReminder(text="Today is Saturday."),
        reply("I look.", use("toolu_1", path="a.py"), use("toolu_2", path="b.py")),
        result("toolu_1", "print(1)"),
        result("toolu_2", "b.py does not exist", is_error=True),
        SystemReminder(text="a.py changed."),
        UserMessage.of("Hurry."),
        system="You are panpan.",
        tools=(READ,),
    )

    assert sent == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 1000,
        "stream": True,
        "tools": [
            {
                "name": "Read",
                "description": "Reads a file.",
                "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
            }
        ],
        "system": [{"type": "text", "text": "You are panpan.", **MARK}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What does a.py say?"},
                    {
                        "type": "text",
                        "text": "<system-reminder>\nToday is Saturday.\n</system-reminder>",
                        **MARK,
                    },
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a.py"}},
                    {"type": "tool_use", "id": "toolu_2", "name": "Read", "input": {"path": "b.py"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_1",
                        "content": [{"type": "text", "text": "print(1)"}],
                    },
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_2",
                        "content": [{"type": "text", "text": "b.py does not exist"}],
                        "is_error": True,
                    },
                    {"type": "text", "text": "<system-reminder>\na.py changed.\n</system-reminder>"},
                    {"type": "text", "text": "Hurry.", **MARK},
                ],
            },
        ],
    }


def test_pictures_and_documents_are_sent_in_messages_and_results() -> None:
    # https://platform.claude.com/docs/en/build-with-claude/vision and …/pdf-support
    picture, document = ImageBlock(source=PNG), DocumentBlock(source=PDF, title="Paper")
    note = DocumentBlock(source=Base64Source(media_type="text/plain", data="aGk="))

    sent = messages_of(UserMessage(content=(picture, document, note)), reply(use("t1")), result("t1", "see:", picture))

    png = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
    assert sent[0]["content"] == [
        png,
        {"type": "document", "source": pdf, "title": "Paper"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hi"}},
    ]
    assert sent[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "see:"}, png]}
    ]


def test_thinking_is_sent_back_signed_and_to_its_own_model_only() -> None:
    thoughts = (
        ThinkingBlock(thinking="hm", signature="c2ln"),
        ThinkingBlock(thinking="of another vendor"),
        RedactedThinkingBlock(data="ZW5j"),
    )
    messages = (UserMessage.of("a"), reply(*thoughts, "yes"), UserMessage.of("b"))

    same = messages_of(*messages)
    other = messages_of(*messages, options=ModelOptions("claude-opus-4-5", 1000))

    assert same[1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "ZW5j"},
        {"type": "text", "text": "yes"},
    ]
    assert other[1]["content"] == [{"type": "text", "text": "yes"}]


def test_unacceptable_content_is_not_sent() -> None:
    broken = ToolUseBlock(id="functions.Read:0", name="functions.Read", input={"half": 1}, input_error="cut off")

    sent = messages_of(
        UserMessage.of("a"),
        reply("\n\n", broken),
        result(broken.id, " "),
        reply(" "),
        reply(ThinkingBlock(thinking="only thinking", signature="s")),
        UserMessage.of(" "),
        UserMessage.of("b"),
    )

    (call,) = sent[1]["content"]
    answer, words = sent[2]["content"]
    assert len(sent) == 3
    assert re.fullmatch("[a-zA-Z0-9_-]+", call["id"])
    assert call == {"type": "tool_use", "id": call["id"], "name": "functions_Read", "input": {}}
    assert answer == {"type": "tool_result", "tool_use_id": call["id"]}
    assert words == {"type": "text", "text": "b"}


def test_reply_is_sent_without_trailing_blanks_wherever_it_is() -> None:
    paused = reply("I look. ", "Half a sentence \n")
    calling = reply("I look. ", use("t1"))

    at_the_end = messages_of(UserMessage.of("a"), paused)[-1]
    further_up = messages_of(UserMessage.of("a"), paused, reply("and on"), UserMessage.of("b"))[1]

    assert [block["text"] for block in at_the_end["content"]] == ["I look. ", "Half a sentence"]
    assert at_the_end == further_up
    assert messages_of(UserMessage.of("a"), calling, result("t1", "x"))[1]["content"][0]["text"] == "I look. "


def test_cache_marks_are_on_the_prompt_and_two_user_messages() -> None:
    messages: list[Message] = [UserMessage.of("start")]
    for number in range(4):
        messages += [reply(use(f"t{number}")), result(f"t{number}", "x")]

    sent = body(*messages, system="sys", tools=(READ,))

    marked = [number for number, message in enumerate(sent["messages"]) if "cache_control" in message["content"][-1]]
    assert marked == [6, 8]
    assert json.dumps(sent).count("cache_control") == 3
    assert "cache_control" in sent["system"][0]


def test_cache_mark_is_on_the_tools_without_a_system_prompt() -> None:
    sent = body(UserMessage.of("a"), tools=(READ, READ))

    assert "system" not in sent
    assert ["cache_control" in tool for tool in sent["tools"]] == [False, True]


def test_request_starts_with_the_whole_previous_one() -> None:
    messages: list[Message] = [UserMessage.of("start"), SystemReminder(text="r")]
    previous = without_marks(body_bytes(messages, system="s", tools=(READ,)))
    for number in range(50):
        thinking = ThinkingBlock(thinking="hm", signature="s")
        messages += [reply(thinking, "t", use(f"t{number}")), result(f"t{number}", "x"), SystemReminder(text="r")]
        now = without_marks(body_bytes(messages, system="s", tools=(READ,)))

        assert now.startswith(previous.removesuffix(b"]}"))
        previous = now


@pytest.mark.parametrize(
    ("model", "thinking", "max_tokens"),
    [
        ("claude-3-7-sonnet-20250219", {"type": "enabled", "budget_tokens": 4000}, 8096),
        ("claude-sonnet-4-20250514", {"type": "enabled", "budget_tokens": 4000}, 8096),
        ("claude-opus-4-1-20250805", {"type": "enabled", "budget_tokens": 4000}, 8096),
        ("claude-haiku-4-5", {"type": "enabled", "budget_tokens": 4000}, 8096),
        ("glm-4.7", {"type": "enabled", "budget_tokens": 4000}, 8096),
        ("anthropic/claude-sonnet-4.5", {"type": "enabled", "budget_tokens": 4000}, 8096),
        ("claude-opus-4-6", {"type": "adaptive", "display": "summarized"}, 1000),
        ("claude-sonnet-4-6-20260101", {"type": "adaptive", "display": "summarized"}, 1000),
        ("claude-opus-4-8", {"type": "adaptive", "display": "summarized"}, 1000),
        ("claude-sonnet-5", {"type": "adaptive", "display": "summarized"}, 1000),
        ("claude-mythos-preview", {"type": "adaptive", "display": "summarized"}, 1000),
        ("anthropic.claude-opus-5-5-v1:0", {"type": "adaptive", "display": "summarized"}, 1000),
    ],
)
def test_thinking_is_requested_as_the_model_wants_it(model: str, thinking: Any, max_tokens: int) -> None:
    sent = body(UserMessage.of("a"), options=ModelOptions(model, 1000, thinking_budget_tokens=4000))

    assert (sent["thinking"], sent["max_tokens"]) == (thinking, max_tokens)


@pytest.mark.parametrize(
    ("budget", "limit", "expected"), [(100, 500, (1024, 5120)), (4000, 4001, (4000, 4001)), (4000, 4000, (4000, 8096))]
)
def test_thinking_budget_is_between_its_minimum_and_the_output(
    budget: int, limit: int, expected: tuple[int, int]
) -> None:
    sent = body(UserMessage.of("a"), options=ModelOptions("claude-opus-4-5", limit, thinking_budget_tokens=budget))

    assert (sent["thinking"]["budget_tokens"], sent["max_tokens"]) == expected


def test_effort_and_temperature_are_sent_if_set() -> None:
    options = ModelOptions("claude-opus-4-5", 1000, effort="low", temperature=0.5)
    thinking = ModelOptions("claude-opus-4-5", 9000, thinking_budget_tokens=2000, temperature=0.5)

    assert body(UserMessage.of("a"), options=options)["output_config"] == {"effort": "low"}
    assert body(UserMessage.of("a"), options=options)["temperature"] == 0.5
    assert "temperature" not in body(UserMessage.of("a"), options=thinking)  # any but 1 is refused with thinking
    assert body(UserMessage.of("a")).keys() == {"model", "max_tokens", "stream", "messages"}


def test_count_request_has_neither_limit_nor_stream() -> None:
    options = ModelOptions("claude-opus-4-5", 1000, temperature=0.5)

    assert body(UserMessage.of("a"), options=options, is_stream=False).keys() == {"model", "messages"}


def test_choice_at_the_top_of_a_schema_is_left_out() -> None:
    schema = {"$schema": "x", "anyOf": [{"required": ["a"]}], "properties": {"a": {"anyOf": [{"type": "string"}]}}}

    assert wire.tool_schema(schema) == {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}]}}}


@given(ODD_TEXT, ODD_TEXT)
def test_body_of_any_text_is_valid(system: str, text: str) -> None:
    messages = [UserMessage.of(text), UserMessage.of("end")]

    json.loads(body_bytes(messages, system=system).decode())
    assert TextBlock(text=text).text == text
