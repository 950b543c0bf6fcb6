"""Subagents in the headless faces: each message with the call that began it, and never as the answer."""

import json
from pathlib import Path
from typing import Any

from panpan.core.conversation import error_result
from panpan.faces.headless.face import Outcome, TurnSummary
from panpan.faces.headless.output_formats import JsonFace, StreamJsonFace, TextFace, init_line
from panpan.session.session import SessionInfo
from panpan.types.events import BlockStarted, Event, PermissionDecided, RetryScheduled, SubagentEvent, TextDelta
from panpan.types.messages import SystemReminder
from panpan.types.permission import Reason
from tests.faces.memory import Memory
from tests.fakes.scripted_llm import call, say
from tests.fakes.subagents import looks, of_agent, reply

INFO = SessionInfo("s1", Path("/w"), "scripted", "scripted, said so", "none", "default", ("Task",))
TASK = ("t1", "Task", {"description": "find it"})


async def lines_of(*events: Event, has_partial_messages: bool = False) -> list[dict[str, Any]]:
    out = Memory()
    face = StreamJsonFace(out, INFO, has_partial_messages=has_partial_messages)
    for event in events:
        await face.show(event)
    return [json.loads(line) for line in out.text.splitlines()]


def test_first_line_names_the_kinds_of_subagents() -> None:
    assert init_line(INFO, features={"agents": lambda: ["explore", "plan"]})["agents"] == ["explore", "plan"]


async def test_subagent_message_bears_the_call_that_began_it() -> None:
    inside = of_agent(reply("I look.", ("1", "Grep", {})), error_result("1", "no"))

    own, *lines = await lines_of(call(TASK), *inside)

    assert own["parent_tool_use_id"] is None
    assert [(line["type"], line["parent_tool_use_id"], line["agent_id"]) for line in lines] == [
        ("assistant", "t1", "a1b2c3d4"),
        ("user", "t1", "a1b2c3d4"),
    ]
    assert lines[0]["message"]["content"][0]["text"] == "I look."


async def test_project_context_is_printed_once_and_notes_each_time() -> None:
    context = SystemReminder(text="a long context", cause="session:start")
    inside = of_agent(context, SystemReminder(text="Plan mode is on.", cause="plan:on"))

    lines = await lines_of(context, *inside)

    assert [(line["cause"], line.get("agent_id")) for line in lines] == [
        ("session:start", None),
        ("plan:on", "a1b2c3d4"),
    ]


async def test_nested_subagent_has_its_innermost_call() -> None:
    (line,) = await lines_of(SubagentEvent("t1", "a", SubagentEvent("t2", "b", reply("deep"))))

    assert (line["parent_tool_use_id"], line["agent_id"]) == ("t2", "b")


async def test_subagent_reply_parts_come_on_request() -> None:
    parts = of_agent(BlockStarted(0, "text"), TextDelta(0, "I look."))

    assert await lines_of(*parts) == []
    lines = await lines_of(*parts, has_partial_messages=True)
    assert [(line["event"]["type"], line["parent_tool_use_id"]) for line in lines] == [
        ("content_block_start", "t1"),
        ("content_block_delta", "t1"),
    ]


async def test_subagent_refusals_and_retries_name_their_subagent() -> None:
    refused = PermissionDecided("1", "Bash", False, "it changes files", (Reason("it changes files"),))

    lines = await lines_of(*of_agent(refused, RetryScheduled(2, "overloaded", 1.0)))

    assert [(line["subtype"], line["parent_tool_use_id"], line["agent_id"]) for line in lines] == [
        ("permission_denied", "t1", "a1b2c3d4"),
        ("api_retry", "t1", "a1b2c3d4"),
    ]


async def test_result_is_the_sessions_answer_with_costs_and_denials() -> None:
    refused = PermissionDecided("1", "Bash", False, "it changes files")
    summary, out = TurnSummary(), Memory()
    for event in (
        call(TASK),
        *of_agent(reply("", ("1", "Bash", {"command": "make"})), refused, reply("I could not.")),
        say("It is 42.", cost_usd=0.25),
    ):
        summary.follow(event)
    summary.spent.add_reply(reply())
    summary.spent.add_reply(reply())

    await JsonFace(out, "s1").end(summary, Outcome(), 0.0)

    line = json.loads(out.text)
    assert (line["result"], line["num_turns"]) == ("It is 42.", 2)
    assert line["usage"]["input_tokens"] == 200
    assert line["modelUsage"]["small"]["costUSD"] == 1.0
    assert line["permission_denials"] == [{"tool_name": "Bash", "tool_use_id": "1", "tool_input": {"command": "make"}}]


async def test_refused_call_counts_for_the_agent_that_made_it() -> None:
    summary = TurnSummary()
    for event in (
        call(("1", "Task", {})),
        *of_agent(reply("", ("1", "Bash", {"command": "a"})), call="1", agent="a"),
        *of_agent(reply("", ("1", "Write", {"file_path": "b"})), call="1", agent="b"),
        *of_agent(PermissionDecided("1", "Bash", False, "no"), call="1", agent="a"),
    ):
        summary.follow(event)

    assert [use.name for use in summary.denials] == ["Bash"]


async def test_subagent_text_is_no_answer_and_its_calls_are_progress() -> None:
    out, notes = Memory(), list[str]()
    face = TextFace(out, notes.append)

    for event in (call(TASK), *of_agent(BlockStarted(0, "text"), TextDelta(0, "mine"), *looks("1", "loss"))):
        await face.show(event)
    for event in (BlockStarted(0, "text"), TextDelta(0, "It is 42."), say("It is 42.")):
        await face.show(event)

    assert out.text == "It is 42."
    assert notes == ["    ● Grep loss"]
