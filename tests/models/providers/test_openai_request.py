import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.models.providers.openai_request import OpenAIEncoder, adapted_schema
from panpan.models.providers.vendor_profiles import (
    DEEPSEEK,
    GENERIC,
    GLM,
    GPT,
    KIMI,
    LLAMA_CPP,
    LM_STUDIO,
    OLLAMA,
    PROFILES,
    QWEN,
    VLLM,
    VendorProfile,
    profile_for,
)
from panpan.models.wire import WireHistory, joined_body
from panpan.types.content import Base64Source, DocumentBlock, ImageBlock, ThinkingBlock, ToolUseBlock
from panpan.types.llm import Effort, ModelOptions, ToolDefinition
from panpan.types.messages import Message, SystemReminder, UserMessage
from tests.models.wire import ODD_TEXT, reply, result, use

OPTIONS = ModelOptions("claude-sonnet-4-5", 1000)  # the model that `reply` names
READ = ToolDefinition("Read", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
PNG = ImageBlock(source=Base64Source(media_type="image/png", data="iVBORw0KGgo="))
PDF = DocumentBlock(source=Base64Source(media_type="application/pdf", data="JVBERi0="), title="paper.pdf")
PNG_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}

PDF_FILE = {"filename": "paper.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}


def body_bytes(
    messages: Sequence[Message],
    profile: VendorProfile = GENERIC,
    options: ModelOptions = OPTIONS,
    system: str = "",
    tools: Sequence[ToolDefinition] = (),
) -> bytes:
    encoder = OpenAIEncoder(profile)
    history = WireHistory(partial(encoder.encode_reply, model=options.model), encoder.encode_user_side)
    head = encoder.encode_head(options, system, tools, is_stream=True)
    return joined_body(head, [group.data for group in history.groups(messages)])


def body(*messages: Message, **fields: Any) -> Any:
    return json.loads(body_bytes(messages, **fields))


def test_request_with_tools_follows_chat_completions() -> None:
    # https://platform.openai.com/docs/guides/function-calling?api-mode=chat
    sent = body(
        UserMessage.of("What does a.py say?"),
        SystemReminder(text="Today is Saturday."),
        reply("I look.", use("call_1", path="a.py"), use("call_2", path="b.py")),
        result("call_1", "print(1)"),
        result("call_2", "b.py does not exist", is_error=True),
        SystemReminder(text="a.py changed."),
        UserMessage.of("Hurry."),
        profile=GPT,
        system="You are panpan.",
        tools=(READ,),
    )

    assert sent == {
        "model": "claude-sonnet-4-5",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": 1000,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "Read",
                    "description": "Reads a file.",
                    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
                },
            }
        ],
        "messages": [
            {"role": "system", "content": "You are panpan."},
            {
                "role": "user",
                "content": "What does a.py say?\n\n<system-reminder>\nToday is Saturday.\n</system-reminder>",
            },
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "Read", "arguments": '{"path":"a.py"}'},
                    },
                    {
                        "id": "call_2",
                        "type": "function",
                        "function": {"name": "Read", "arguments": '{"path":"b.py"}'},
                    },
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "print(1)"},
            {"role": "tool", "tool_call_id": "call_2", "content": "Error: b.py does not exist"},
            {
                "role": "user",
                "content": "<system-reminder>\na.py changed.\n</system-reminder>\n\nHurry.",
            },
        ],
    }


def test_pictures_of_results_follow_in_a_user_message() -> None:
    sent = body(
        UserMessage(content=(PNG,)),
        reply(use("c1"), use("c2")),
        result("c1", "a picture:", PNG),
        result("c2", "text"),
        profile=GPT,
    )["messages"]

    assert sent[0] == {"role": "user", "content": [PNG_PART]}
    assert [message["role"] for message in sent[2:]] == ["tool", "tool", "user"]
    assert sent[2]["content"] == "a picture:"
    assert sent[4]["content"] == [{"type": "text", "text": "Output of the call c1:"}, PNG_PART]


@pytest.mark.parametrize(
    ("profile", "parts"),
    [
        (GPT, [PNG_PART, {"type": "file", "file": PDF_FILE}]),
        (QWEN, [PNG_PART, {"type": "text", "text": "[document left out: this provider takes none]"}]),
        (DEEPSEEK, "[image left out: this provider takes none]\n\n[document left out: this provider takes none]"),
    ],
    ids=["gpt", "qwen", "deepseek"],
)
def test_unsupported_content_is_replaced_by_a_note(profile: VendorProfile, parts: Any) -> None:
    assert body(UserMessage(content=(PNG, PDF)), profile=profile)["messages"][0]["content"] == parts


def test_picture_of_an_unsupported_type_is_replaced_by_a_note() -> None:
    gif = ImageBlock(source=Base64Source(media_type="image/gif", data="R0lGOA=="))
    history = (UserMessage.of("look"), reply(use("c1")), result("c1", gif, PNG))

    ollama, gpt, deepseek = (body(*history, profile=profile)["messages"][-1] for profile in (OLLAMA, GPT, DEEPSEEK))

    note = {"type": "text", "text": "[image left out: this provider takes no image/gif; a PNG would be seen]"}
    assert ollama["content"][1:] == [note, PNG_PART]
    assert gpt["content"][1]["image_url"]["url"] == "data:image/gif;base64,R0lGOA=="
    assert deepseek["content"].count("[image left out: this provider takes none]") == 2


def test_result_without_text_says_so() -> None:
    sent = body(UserMessage.of("a"), reply(use("c1"), use("c2")), result("c1"), result("c2", PNG))["messages"]

    assert [message["content"] for message in sent[2:4]] == ["(no output)", "(the output follows in the next message)"]


@pytest.mark.parametrize(
    ("profile", "fields"),
    [
        (GENERIC, {}),
        (GPT, {}),
        (QWEN, {}),
        (LM_STUDIO, {}),
        (GLM, {"reasoning_content": "hm"}),
        (DEEPSEEK, {"reasoning_content": "hm"}),
        (KIMI, {"reasoning_content": "hm"}),
        (LLAMA_CPP, {"reasoning_content": "hm"}),
        (OLLAMA, {"reasoning": "hm"}),
        (VLLM, {"reasoning": "hm"}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_thinking_is_sent_back_if_the_vendor_wants_it(profile: VendorProfile, fields: dict[str, str]) -> None:
    sent = body(UserMessage.of("a"), reply(ThinkingBlock(thinking="hm"), "yes"), UserMessage.of("b"), profile=profile)

    assert sent["messages"][1] == {"role": "assistant", "content": "yes", **fields}


@pytest.mark.parametrize(("profile", "field"), [(DEEPSEEK, " "), (KIMI, " "), (GLM, None), (VLLM, None)])
def test_thinking_of_another_model_leaves_only_a_required_field(profile: VendorProfile, field: str | None) -> None:
    foreign = reply(ThinkingBlock(thinking="hm", signature="s"), "yes", model="another")

    sent = body(UserMessage.of("a"), foreign, UserMessage.of("b"), profile=profile)

    assert sent["messages"][1].get(profile.reasoning_field) == field


@pytest.mark.parametrize(
    ("profile", "fields"),
    [
        (GPT, {}),
        (GLM, {"thinking": {"type": "enabled", "clear_thinking": False}}),
        (DEEPSEEK, {"thinking": {"type": "enabled"}}),
        (KIMI, {"thinking": {"type": "enabled"}}),
        (QWEN, {"enable_thinking": True, "thinking_budget": 2000}),
        (OLLAMA, {}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_thinking_is_requested_in_the_vendors_way(profile: VendorProfile, fields: dict[str, Any]) -> None:
    plain = body(UserMessage.of("a"), profile=profile)
    thinking = body(UserMessage.of("a"), profile=profile, options=ModelOptions("m", 1000, thinking_budget_tokens=2000))

    assert {key: value for key, value in thinking.items() if key not in plain} == fields


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_limits_and_usage_are_requested_in_the_vendors_way(profile: VendorProfile) -> None:
    sent = body(UserMessage.of("a"), profile=profile, options=ModelOptions("m", 7, effort="high", temperature=0.5))

    limits = {name: value for name, value in sent.items() if "tokens" in name}
    assert limits == {"max_completion_tokens" if profile in (GPT, QWEN, KIMI) else "max_tokens": 7}
    assert ("stream_options" in sent) == (profile is not GLM)
    assert (sent["reasoning_effort"], sent["temperature"]) == ("xhigh" if profile is QWEN else "high", 0.5)


@pytest.mark.parametrize(
    ("profile", "wanted", "sent"),
    [
        (GPT, "xhigh", "xhigh"),
        (KIMI, "low", "low"),
        (KIMI, "medium", "high"),  # of two that are as near, the higher
        (KIMI, "xhigh", "max"),
        (GLM, "medium", "high"),
        (QWEN, "high", "xhigh"),
        (QWEN, "max", "xhigh"),
        (OLLAMA, "medium", "medium"),
        (OLLAMA, "xhigh", "max"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_unsupported_effort_becomes_the_nearest_supported(profile: VendorProfile, wanted: Effort, sent: Effort) -> None:
    options = ModelOptions("m", 7, effort=wanted)

    assert body(UserMessage.of("a"), profile=profile, options=options)["reasoning_effort"] == sent


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_call_options_follow_the_vendor_and_need_tools(profile: VendorProfile) -> None:
    with_tools = body(UserMessage.of("a"), profile=profile, tools=(READ,))
    without = body(UserMessage.of("a"), profile=profile)

    assert ("tool_stream" in with_tools) == (profile is GLM)
    assert ("parallel_tool_calls" in with_tools) == (profile is QWEN)
    assert not {"tool_stream", "parallel_tool_calls", "tools"} & without.keys()


@pytest.mark.parametrize(
    ("profile", "name"), [(GPT, "LS"), (KIMI, "LS_")], ids=lambda value: getattr(value, "name", value)
)
def test_too_short_tool_name_is_lengthened_everywhere(profile: VendorProfile, name: str) -> None:
    tools = (ToolDefinition("LS", "Lists.", {"type": "object"}), READ)

    sent = body(UserMessage.of("a"), reply(use("c1", "LS")), result("c1", "x"), profile=profile, tools=tools)

    assert [tool["function"]["name"] for tool in sent["tools"]] == [name, "Read"]
    assert sent["messages"][1]["tool_calls"][0]["function"]["name"] == name
    assert OpenAIEncoder(profile).names_of(tools) == ({} if name == "LS" else {name: "LS"})


def test_unacceptable_content_is_not_sent() -> None:
    broken = ToolUseBlock(id="functions.Read:0", name="functions.Read", input={"half": 1}, input_error="cut off")
    history = (
        UserMessage.of("a"),
        reply("\n", broken),
        result(broken.id, "x"),
        reply(" "),
        reply(ThinkingBlock(thinking="only thinking")),
        UserMessage.of(" "),
    )

    gpt, kimi = body(*history, profile=GPT)["messages"], body(*history, profile=KIMI)["messages"]

    (call,) = gpt[1]["tool_calls"]
    assert len(gpt) == 3
    assert gpt[1]["content"] == ""
    assert call["function"] == {"name": "functions_Read", "arguments": "{}"}
    assert call["id"] == gpt[2]["tool_call_id"] != broken.id
    assert len(call["id"]) <= 40
    assert kimi[1]["tool_calls"][0]["id"] == kimi[2]["tool_call_id"] == broken.id  # Kimi wants its own ids back


def test_request_starts_with_the_whole_previous_one() -> None:
    messages: list[Message] = [UserMessage.of("start"), SystemReminder(text="r")]
    previous = body_bytes(messages, system="s", tools=(READ,), profile=DEEPSEEK)
    for number in range(50):
        messages += [reply(ThinkingBlock(thinking="hm"), use(f"c{number}")), result(f"c{number}", "x", PNG)]
        now = body_bytes(messages, system="s", tools=(READ,), profile=DEEPSEEK)

        assert now.startswith(previous.removesuffix(b"]}"))
        previous = now


def test_unsupported_keywords_are_removed_but_properties_stay() -> None:
    schema = {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "pattern": "a+", "description": "d"},
            "nested": {"type": "array", "items": {"anyOf": [{"type": "string", "format": "uri"}]}},
            "kind": {"enum": ["pattern"], "default": {"format": 1}},
        },
        "required": ["pattern"],
    }

    assert adapted_schema(schema, LLAMA_CPP) == {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "d"},
            "nested": {"type": "array", "items": {"anyOf": [{"type": "string"}]}},
            "kind": {"enum": ["pattern"], "default": {"format": 1}},
        },
        "required": ["pattern"],
    }
    assert adapted_schema(schema, GENERIC) == schema


def test_moonshot_schemas_hold_only_supported_keywords() -> None:
    # https://github.com/MoonshotAI/walle/blob/main/docs/mfjs-walle-vs-draft-2020-12.md
    schema = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "default": ".", "minLength": 1},
            "ignore": {"type": "array", "items": {"type": "string", "pattern": "a"}, "default": []},
            "range": {"anyOf": [{"type": "integer", "default": 1}, {"type": "null"}], "default": None},
            "where": {"type": "object", "properties": {"default": {"type": "string"}}, "default": {}},
        },
    }

    assert adapted_schema(schema, KIMI) == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "default": ".", "minLength": 1},
            "ignore": {"type": "array", "items": {"type": "string"}},
            "range": {"anyOf": [{"type": "integer", "default": 1}, {"type": "null"}]},
            "where": {"type": "object", "properties": {"default": {"type": "string"}}, "required": []},
        },
        "required": [],
    }


@pytest.mark.parametrize(
    ("url", "name", "profile"),
    [
        (None, None, GPT),
        ("https://api.openai.com/v1", None, GPT),
        ("https://my.openai.azure.com/openai/v1", None, GPT),
        ("https://api.z.ai/api/paas/v4", None, GLM),
        ("https://open.bigmodel.cn/api/paas/v4", None, GLM),
        ("https://api.deepseek.com", None, DEEPSEEK),
        ("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", None, QWEN),
        ("https://api.moonshot.ai/v1", None, KIMI),
        ("https://API.Moonshot.CN/v1", "mine", KIMI),
        ("http://localhost:11434/v1", None, OLLAMA),
        ("http://127.0.0.1:1234/v1", None, LM_STUDIO),
        ("http://127.0.0.1:8080/v1", None, LLAMA_CPP),
        ("http://[::1]:8000/v1", None, VLLM),
        ("http://gpu-box:8000/v1", "vllm", VLLM),
        ("https://gateway.example/v1", "deepseek", DEEPSEEK),
        ("http://gpu-box:8080/v1", None, GENERIC),
        ("https://notopenai.com/v1", None, GENERIC),
        ("https://openai.com.evil.example/v1", None, GENERIC),
        ("http://host:99999999/v1", None, GENERIC),
    ],
)
def test_profile_is_found_by_address_or_name(url: str | None, name: str | None, profile: VendorProfile) -> None:
    assert profile_for(url, name) is profile


@given(ODD_TEXT, ODD_TEXT, st.sampled_from(list(PROFILES.values())))
def test_body_of_any_text_is_valid(system: str, text: str, profile: VendorProfile) -> None:
    json.loads(body_bytes([UserMessage.of(text), UserMessage.of("end")], profile, system=system).decode())
