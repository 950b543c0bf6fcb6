"""What the model is told before the first conversation: its prompt, tools and examples, read once."""

import json
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from typing import Any

from panpan.models.provider_kind import ModelProfile
from panpan.models.providers.openai_request import OpenAIEncoder
from panpan.models.providers.vendor_profiles import LLAMA_CPP
from panpan.models.wire import WireHistory, joined_body
from panpan.types.content import TextBlock, ToolResultBlock, ToolUseBlock
from panpan.types.dataclass import dataclass
from panpan.types.llm import ModelOptions, ToolDefinition
from panpan.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage

# What the embedded model is told: a prompt, a few tools and worked examples, all from `profile.toml`. The file is data,
# so that it can be changed and measured (`make eval`) without touching code.

MODEL_NAME = "local"

CONTEXT_TOKENS = 8_192
"""What the server is started for: more would take more memory than a laptop has to spare."""

MAX_OUTPUT_TOKENS = 1_500
"""Of one reply; a minute on two cores, and a small model that writes more has lost its way."""

BANNER = (
    "small local model: good for look-ups, small edits and renames; it does not find bugs, and its word is no proof"
)

_MAX_RESULT_CHARS = 6_000  # a quarter of the context


@dataclass(frozen=True, slots=True)
class EmbeddedProfile:
    """What is sent to the embedded model besides the conversation."""

    model: ModelProfile
    examples: tuple[Message, ...]
    """Sent before the conversation, in every request; never in its log."""


@cache
def embedded_profile() -> EmbeddedProfile:
    """Return the profile that panpan ships."""
    table = tomllib.loads(files(__package__).joinpath("profile.toml").read_text(encoding="utf-8"))
    tools = {tool["name"]: _definition(tool) for tool in table["tools"]}
    model = ModelProfile(
        name="small",
        system_prompt=table["system"],
        tools=tools,
        max_result_chars=_MAX_RESULT_CHARS,
        fits_window=True,
        temperature=0.0,
        banner=BANNER,
    )
    examples = [
        message for number, example in enumerate(table["examples"]) for message in _conversation(number, example)
    ]
    return EmbeddedProfile(model, tuple(examples))


def _definition(tool: Mapping[str, Any]) -> ToolDefinition:
    parameters: Mapping[str, str] = tool["parameters"]
    schema = {
        "type": "object",
        "properties": {name: _type(kind) for name, kind in parameters.items()},
        "required": [name for name, kind in parameters.items() if kind != "boolean"],
    }
    return ToolDefinition(tool["name"], tool["description"], schema)


def _type(kind: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}} if kind == "strings" else {"type": kind}


def _conversation(number: int, example: Mapping[str, Any]) -> Iterator[Message]:
    yield UserMessage.of(example["prompt"])
    for position, step in enumerate(example["steps"]):
        if "answer" in step:
            yield AssistantMessage(content=(TextBlock(text=step["answer"]),), model="example", stop_reason="end_turn")
            continue
        call = step["call"]
        use = ToolUseBlock(id=f"example_{number}_{position}", name=call["name"], input=dict(call["arguments"]))
        yield AssistantMessage(content=(use,), model="example", stop_reason="tool_use")
        result = ToolResultBlock(tool_use_id=use.id, content=(TextBlock(text=step["result"]),))
        yield ToolResultMessage(result=result)


# The request that makes the server read what every conversation begins with, before the first one does. What it read is
# kept in a file beside the weights, so that a later start takes it from there: some 100 ms in place of the 15 s that a
# thousand tokens cost on two cores. The file holds panpan's own words only, never a user's.


def warm_up_request(profile: EmbeddedProfile, model: str) -> dict[str, Any]:
    """Return a request with the beginning that a new conversation has, for a reply of one token."""
    encoder = OpenAIEncoder(LLAMA_CPP)
    options = ModelOptions(model=model, max_output_tokens=1, temperature=0.0)
    tools = tuple((profile.model.tools or {}).values())
    head = encoder.encode_head(options, profile.model.system_prompt or "", tools, is_stream=False)
    history = WireHistory(lambda reply: encoder.encode_reply(reply, model=model), encoder.encode_user_side)
    groups = history.groups([*profile.examples, UserMessage.of("hello")])
    request: dict[str, Any] = json.loads(joined_body(head, [group.data for group in groups]))
    return request


def prefix_key(weights: str, request: dict[str, Any], template: str) -> str:
    """Return what tells what a model read of a request from what it, or another one, read of others."""
    return blake2b(json.dumps([weights, request, template]).encode(), digest_size=8).hexdigest()
