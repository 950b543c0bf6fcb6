"""Calls and their results, in both dialects, and a whole session; only a model that can use tools will do."""

import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

import panpan
from panpan.config.models import Dialect
from panpan.types.content import TextBlock, ToolResultBlock, ToolUseBlock
from panpan.types.events import BlockFinished, BlockStarted, ToolInputDelta
from panpan.types.llm import ToolDefinition
from panpan.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from tests.peers.asking import DIALECTS, Peer, client_of, prompt_tokens, reply_events, request_of

pytestmark = [
    pytest.mark.timeout(600),  # on a busy machine it writes a word a second
    pytest.mark.xdist_group("model"),  # one server for all of them
]

PATH = {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]}
READ = ToolDefinition("Read", "Show a file.", PATH)
QUESTION = UserMessage.of("Which number is in notes.txt?")


def _example() -> tuple[Message, ...]:
    """Return a turn of before, without which so small a model calls the tool again and again."""
    use = ToolUseBlock(id="example_1", name="Read", input={"file_path": "config.ini"})
    return (
        UserMessage.of("Which port is in config.ini?"),
        AssistantMessage(content=(use,), model="example", stop_reason="tool_use"),
        _result(use, "     1\tport = 8123"),
        AssistantMessage(content=(TextBlock(text="config.ini has the port 8123."),), model="example"),
    )


def _result(use: ToolUseBlock, text: str, *, is_error: bool = False) -> ToolResultMessage:
    block = ToolResultBlock(tool_use_id=use.id, content=(TextBlock(text=text),), is_error=is_error)
    return ToolResultMessage(result=block)


BEFORE = (*_example(), QUESTION)

both_dialects = pytest.mark.parametrize("dialect", DIALECTS)


@both_dialects
async def test_call_has_its_arguments_and_its_result_is_used(tool_peer: Peer, dialect: Dialect) -> None:
    async with client_of(tool_peer, dialect) as client:
        # when it is asked what only the tool can tell
        *events, asked = await reply_events(client, *BEFORE, tools=(READ,))

        # then it calls the tool, and the pieces of the arguments are the arguments
        (use,) = asked.tool_uses
        assert (use.name, use.input, use.input_error) == ("Read", {"file_path": "notes.txt"}, None)
        assert asked.stop_reason == "tool_use"
        assert asked.usage.output_tokens > 0
        (started,) = [event for event in events if isinstance(event, BlockStarted) and event.kind == "tool_use"]
        pieces = [event.json for event in events if isinstance(event, ToolInputDelta)]
        assert (started.tool_use_id, started.tool_name) == (use.id, "Read")
        assert json.loads("".join(pieces)) == use.input
        assert BlockFinished(started.index, use) in events

        # and when the result is sent back
        result = _result(use, "     1\tthe number is 4711")
        *_, answer = await reply_events(client, *BEFORE, asked, result, tools=(READ,))

    # then it answers from it, and the server had read the beginning of the request before
    assert "4711" in answer.text
    assert (answer.tool_uses, answer.stop_reason) == ((), "end_turn")
    assert answer.usage.cache_read_input_tokens >= prompt_tokens(asked)


async def test_history_with_a_failed_call_is_accepted(tool_peer: Peer) -> None:
    use = ToolUseBlock(id="toolu_1", name="Read", input={"file_path": "none.txt"})
    history = (
        QUESTION,
        AssistantMessage(content=(TextBlock(text="Let me look."), use), model="peer", stop_reason="tool_use"),
        _result(use, "none.txt is not there", is_error=True),
        UserMessage.of("Never mind. Say hello."),
    )
    for dialect in DIALECTS:
        async with client_of(tool_peer, dialect, max_output_tokens=4) as client:
            *_, message = await reply_events(client, *history, tools=(READ,))
        assert message.usage.output_tokens == 4


async def test_tools_and_calls_are_counted_too(tool_peer: Peer) -> None:
    async with client_of(tool_peer, "anthropic", max_output_tokens=1) as client:
        alone = await client.count_tokens(request_of(QUESTION))
        counted = await client.count_tokens(request_of(QUESTION, tools=(READ,)))
        *_, message = await reply_events(client, QUESTION, tools=(READ,))

    assert alone is not None
    assert counted is not None
    assert alone < counted == prompt_tokens(message)


@both_dialects
async def test_session_runs_a_call_and_sends_its_result(tool_peer: Peer, dialect: Dialect, tmp_path: Path) -> None:
    # given a folder, and settings that name the server
    workspace, home = tmp_path / "work", tmp_path / "home"
    for folder in (workspace, home):
        folder.mkdir()
    (workspace / "notes.txt").write_text("the number is 4711\n")
    (home / "settings.toml").write_text(
        f'model = "peer/any"\ntemperature = 0.0\nmax_output_tokens = 60\n[providers.peer]\nkind = "{dialect}"\n'
        f'base_url = "{tool_peer.base_url}"\napi_key = "{tool_peer.api_key}"\n'
    )
    others = ("Write", "Edit", "MultiEdit", "Patch", "LS", "Glob", "Grep", "Bash")
    opening = panpan.open_session(
        workspace,
        overrides={f"tools.enabled.{name}": False for name in others},
        system_prompt="You answer questions about files. Read a file with the tool before you speak of it.",
        env={"HOME": str(tmp_path), "PANPAN_HOME": str(home)},
    )

    # when it has answered twice; with no example of an answer, so small a model may well read the file again
    events: list[Any] = []
    async with opening as session, aclosing(session.submit("Which number is in notes.txt?")) as turn:
        async for event in turn:
            events.append(event)
            if sum(isinstance(event, AssistantMessage) for event in events) == 2:
                break

    # then it had called the tool, and its second answer came from a request with the result
    first, second = (event for event in events if isinstance(event, AssistantMessage))
    (result,) = (event.result for event in events if isinstance(event, ToolResultMessage))
    assert [use.name for use in first.tool_uses] == ["Read"]
    assert (result.tool_use_id, result.is_error) == (first.tool_uses[0].id, False)
    assert "the number is 4711" in result.text
    assert second.content
    assert prompt_tokens(second) > prompt_tokens(first) + first.usage.output_tokens
    assert second.usage.cache_read_input_tokens >= prompt_tokens(first)
