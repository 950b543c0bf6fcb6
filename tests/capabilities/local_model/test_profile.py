"""The embedded model's profile is true of panpan: its tools, arguments and results are the real ones."""

import re
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest

from panpan.capabilities.local_model.embedded import room_tokens, tokens_of
from panpan.capabilities.local_model.server import (
    CONTEXT_TOKENS,
    MAX_OUTPUT_TOKENS,
    embedded_profile,
    prefix_key,
    warm_up_request,
)
from panpan.core.conversation import Conversation
from panpan.core.tool import Tool
from panpan.core.tool_call import prepare_call
from panpan.models.providers.openai_request import OpenAIEncoder
from panpan.models.providers.vendor_profiles import LLAMA_CPP
from panpan.types.content import ToolUseBlock
from panpan.types.events import Output
from panpan.types.llm import ModelOptions
from panpan.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from tests.fakes.context import context_in
from tests.fakes.every_tool import every_tool

PROFILE = embedded_profile()
TOOLS = {tool.name: tool for tool in every_tool()}
GIVEN = PROFILE.model.tools or {}
LINE = re.compile(r" *\d+\t(.*)")


def stories() -> list[list[Message]]:
    """The examples, each from the words of the user to the answer."""
    starts = [number for number, message in enumerate(PROFILE.examples) if isinstance(message, UserMessage)]
    return [list(PROFILE.examples[a:b]) for a, b in zip(starts, [*starts[1:], None], strict=True)]


def calls_and_results(story: list[Message]) -> list[tuple[ToolUseBlock, str]]:
    results = {message.tool_use_id: message.text for message in story if isinstance(message, ToolResultMessage)}
    uses = [use for message in story if isinstance(message, AssistantMessage) for use in message.tool_uses]
    return [(use, results[use.id]) for use in uses]


def test_profile_has_three_to_five_existing_tools() -> None:
    assert 3 <= len(GIVEN) <= 5
    assert set(GIVEN) <= set(TOOLS)


def test_profile_tools_are_in_the_order_of_a_request() -> None:
    assert list(GIVEN) == [name for name in TOOLS if name in GIVEN]


@pytest.mark.parametrize("name", GIVEN)
def test_profile_tool_arguments_are_real(name: str) -> None:
    told, real = GIVEN[name].input_schema, TOOLS[name].definition.input_schema

    assert set(real["required"]) <= set(told["properties"]) <= set(real["properties"])
    assert set(real["required"]) <= set(told["required"])
    assert {key: schema["type"] for key, schema in told["properties"].items()} == {
        key: real["properties"][key]["type"] for key in told["properties"]
    }
    assert GIVEN[name].description


def test_examples_are_a_valid_history() -> None:
    conversation = Conversation(messages=PROFILE.examples)

    assert not conversation.open_tool_uses
    assert not conversation.awaits_model, "the last one ends with an answer"


@pytest.mark.parametrize("story", stories())
def test_example_goes_from_prompt_over_calls_to_an_answer(story: list[Message]) -> None:
    prompt, *_, last = story

    assert isinstance(prompt, UserMessage)
    assert isinstance(last, AssistantMessage)
    assert last.text
    assert calls_and_results(story)
    for use, result in calls_and_results(story):
        assert result
        assert set(use.input) <= set(GIVEN[use.name].input_schema["properties"])
        assert prepare_call(use, TOOLS).problem == ""


@pytest.mark.parametrize("story", stories())
def test_example_reads_before_editing_and_touches_named_files(story: list[Message]) -> None:
    seen: set[Any] = set()
    for use, _ in calls_and_results(story):
        path = use.input.get("file_path")
        assert use.name != "Edit" or path in seen
        assert path is None or str(path) in str(story[0].text)
        seen.add(path)


@pytest.mark.parametrize("story", stories())
def test_example_results_are_those_of_the_tools(story: list[Message], tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    steps = calls_and_results(story)
    for use, result in reversed(steps):  # the first reading of a file tells how it was
        if use.name == "Read":
            lines = [LINE.fullmatch(line) for line in result.split("\n")]
            (workspace / str(use.input["file_path"])).write_text("".join(f"{found[1]}\n" for found in lines if found))
        if use.name == "Rename":
            _undo_rename(use, result, workspace)

    async def main() -> None:
        context = context_in(workspace)
        for use, told in steps:
            if use.name == "Bash" and not _is_runnable(str(use.input["command"]), workspace):
                continue
            assert await _result(TOOLS[use.name], use, context) == told

    anyio.run(main)


def _undo_rename(use: ToolUseBlock, result: str, workspace: Path) -> None:
    """Write the files of a rename, which need not be read before, as they were; its result shows them whole."""
    old, new = str(use.input["old_name"]), str(use.input["new_name"])
    parts = result.split("renamed ")[1:]
    for name, part in zip(use.input["file_paths"], parts, strict=True):
        lines = [found[1] for line in part.split("\n") if (found := LINE.fullmatch(line))]
        (workspace / name).write_text("".join(f"{line}\n" for line in lines).replace(new, old))


def _is_runnable(command: str, workspace: Path) -> bool:
    """True if the example makes the files that a command names known, so that it can be run."""
    program, _, rest = command.partition(" ")
    return program == "python3" and (workspace / rest).is_file()


async def _result(tool: Tool[Any], use: ToolUseBlock, context: Any) -> str:
    args = tool.input_model.model_validate(use.input)
    async with aclosing(tool.run(args, context)) as yields:
        (output,) = [item async for item in yields if isinstance(item, Output)]
    return "".join(block.text for block in output.blocks)


def test_profile_is_small_beside_the_context() -> None:
    tools = tuple(GIVEN.values())
    room = room_tokens(CONTEXT_TOKENS, MAX_OUTPUT_TOKENS, PROFILE.model.system_prompt or "", tools)

    told = CONTEXT_TOKENS - MAX_OUTPUT_TOKENS - room + tokens_of(PROFILE.examples)

    # by an estimate that is rather too high; the rest is for the conversation
    assert told < 2_500
    assert (PROFILE.model.max_result_chars or 0) / 2 < room - tokens_of(PROFILE.examples)


def test_banner_is_one_line() -> None:
    assert "small local model" in PROFILE.model.banner
    assert "\n" not in PROFILE.model.banner


def test_warm_up_begins_like_every_conversation() -> None:
    request = warm_up_request(PROFILE, "local")

    assert request["messages"][0] == {"role": "system", "content": PROFILE.model.system_prompt}
    assert [tool["function"]["name"] for tool in request["tools"]] == list(GIVEN)
    # of the examples nothing is missing: the words of the user are the last message
    assert request["messages"][-1] == {"role": "user", "content": "hello"}
    assert sum(message["role"] == "user" for message in request["messages"]) == len(stories()) + 1
    assert (request["max_tokens"], request["stream"]) == (1, False)


def test_other_beginning_has_another_key() -> None:
    request = warm_up_request(PROFILE, "local")
    names = {
        prefix_key("a.gguf", request, "template"),
        prefix_key("b.gguf", request, "template"),
        prefix_key("a.gguf", {**request, "max_tokens": 2}, "template"),
        prefix_key("a.gguf", request, "another"),
    }

    assert len(names) == 4
    assert prefix_key("a.gguf", warm_up_request(embedded_profile(), "local"), "template") in names


def test_request_starts_like_the_warm_up() -> None:
    encoder = OpenAIEncoder(LLAMA_CPP)
    tools = tuple(GIVEN[tool.name] for tool in every_tool() if tool.name in GIVEN)
    head = encoder.encode_head(
        ModelOptions("local", 1, temperature=0.0), PROFILE.model.system_prompt or "", tools, is_stream=False
    )

    warm_up = warm_up_request(PROFILE, "local")

    for part in (warm_up["messages"][0]["content"], *(tool["function"]["description"] for tool in warm_up["tools"])):
        assert part.encode()[:20] in head


def test_profile_is_read_once() -> None:
    assert embedded_profile() is embedded_profile()
