import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from panpan.errors import ConfigError
from panpan.session.export.as_atif import atif_text, trajectory
from panpan.session.export.export import export_session
from panpan.session.export.transcript import transcript_of
from panpan.session.log.agent_log import agents_folder
from panpan.session.log.records import record_of
from panpan.session.log.session_log import SessionLog
from panpan.system.text.redact import Redactor
from panpan.types.content import Base64Source, ImageBlock, TextBlock, ThinkingBlock
from panpan.types.messages import SystemReminder, Usage, UserMessage
from tests.fakes.agent_logs import keep_turn
from tests.session.export.export_fixtures import (
    call,
    compaction,
    everywhere,
    hostile_texts,
    reply,
    result,
    transcript,
)

USED = Usage(input_tokens=10, output_tokens=4, cache_read_input_tokens=100, cache_creation_input_tokens=20)
AGENT_ONLY = {"model_name", "reasoning_content", "tool_calls", "metrics"}


def assert_is_valid(found: Mapping[str, Any]) -> None:
    """Check the rules of the format that join fields; Harbor's own models check all of them in `tests/peers`."""
    assert [step["step_id"] for step in found["steps"]] == list(range(1, len(found["steps"]) + 1))
    subagents = {one["trajectory_id"] for one in found.get("subagent_trajectories", ())}
    for step in found["steps"]:
        assert step["source"] == "agent" or not AGENT_ONLY & step.keys()
        calls = {one["tool_call_id"] for one in step.get("tool_calls", ())}
        for answer in step.get("observation", {"results": ()})["results"]:
            assert answer.get("source_call_id") in {None, *calls}
            assert {one["trajectory_id"] for one in answer.get("subagent_trajectory_ref", ())} <= subagents


def test_steps_have_sources_calls_results_and_metrics() -> None:
    asks = reply(ThinkingBlock(thinking="the file first"), "Let me see.", call("Read", file_path="a.py"))
    asks = asks.model_copy(update={"usage": USED, "cost_usd": 0.25, "stop_reason": "tool_use"})
    said = (UserMessage.of("why?"), SystemReminder(text="today", cause="session:start"), asks, result("x = 1"))

    found = trajectory(transcript(*said, reply("since"), title="Why"))

    user, system, agent, last = found["steps"]
    assert_is_valid(found)
    assert [step["source"] for step in found["steps"]] == ["user", "system", "agent", "agent"]
    assert (user["message"], system["message"], agent["message"], last["message"]) == (
        "why?",
        "today",
        "Let me see.",
        "since",
    )
    assert agent["reasoning_content"] == "the file first"
    (made,) = agent["tool_calls"]
    assert (made["tool_call_id"], made["function_name"], made["arguments"]) == ("1", "Read", {"file_path": "a.py"})
    assert agent["observation"]["results"] == [{"source_call_id": "1", "content": "x = 1"}]
    assert agent["metrics"] == {
        "prompt_tokens": 130,
        "completion_tokens": 4,
        "cached_tokens": 100,
        "cost_usd": 0.25,
        "extra": {"cache_creation_input_tokens": 20},
    }
    assert found["agent"] == {"name": "panpan", "version": "1.2.3", "model_name": "scripted"}
    assert (found["session_id"], found["extra"]["title"]) == ("0199-s1", "Why")
    assert found["schema_version"].startswith("ATIF-v1.")


def test_times_of_steps_come_from_the_ids_of_messages() -> None:
    # the example of RFC 9562, appendix A.6
    prompt = UserMessage(uuid="017f22e2-79b0-7cc3-98c4-dc0c0c07398f", content=(TextBlock(text="hi"),))

    (step,) = trajectory(transcript(prompt))["steps"]

    assert step["timestamp"] == "2022-02-22T19:22:22.000Z"


def test_final_metrics_sum_tokens_and_cost_with_summaries() -> None:
    first = UserMessage.of("go")
    answer = reply("done").model_copy(update={"usage": USED, "cost_usd": 0.25})
    shortened = compaction(first)
    assert shortened.reply is not None
    summary = shortened.reply.model_copy(update={"usage": Usage(input_tokens=5, output_tokens=1), "cost_usd": 0.5})
    whole = replace(transcript(first, answer), compactions=[replace(shortened, reply=summary)])

    found = trajectory(whole)

    assert_is_valid(found)
    assert found["final_metrics"] == {
        "total_prompt_tokens": 135,
        "total_completion_tokens": 5,
        "total_cached_tokens": 100,
        "total_cost_usd": 0.75,
        "total_steps": 3,
    }


def test_cost_is_left_out_when_a_price_is_unknown() -> None:
    known = reply("a").model_copy(update={"usage": USED, "cost_usd": 0.25})
    unknown = reply("b").model_copy(update={"usage": USED})

    found = trajectory(transcript(UserMessage.of("go"), known, UserMessage.of("on"), unknown))

    assert "total_cost_usd" not in found["final_metrics"]
    assert "cost_usd" not in found["steps"][-1]["metrics"]


def test_failed_calls_and_pictures_are_told() -> None:
    picture = ImageBlock(source=Base64Source(media_type="image/png", data="AAAA"))
    prompt = UserMessage(content=(TextBlock(text="look"), picture))

    found = trajectory(transcript(prompt, reply(call()), result("no such file", is_error=True)))

    assert found["steps"][0]["message"] == "look\n[picture, image/png, 3 bytes]"
    assert found["steps"][1]["observation"]["results"][0]["extra"] == {"is_error": True}


def test_result_without_its_call_is_a_step_of_the_system() -> None:
    found = trajectory(transcript(UserMessage.of("go"), result("lost")))

    assert_is_valid(found)
    assert found["steps"][1]["observation"] == {"results": [{"content": "lost"}]}


def test_session_without_messages_is_refused() -> None:
    with pytest.raises(ConfigError, match="send a prompt first"):
        trajectory(transcript())


async def test_subagents_are_embedded_and_linked_to_their_call(tmp_path: Path) -> None:
    log = SessionLog(tmp_path / "s1.jsonl", session_id="s1", cwd=tmp_path)
    for message in (UserMessage.of("go"), reply(call("Task", prompt="look")), result("found")):
        log.append(record_of(message))
    log.close()
    keep_turn(agents_folder(tmp_path, "s1"), "aaaaaaaa", "1", UserMessage.of("look for hunter2222"))
    exported = transcript_of(log.path, panpan_version="1.2.3")

    path = await export_session(exported, Redactor(["hunter2222"]), folder=tmp_path, wanted="out/s1.atif.json")

    found = json.loads(path.read_text())
    assert_is_valid(found)
    (subagent,) = found["subagent_trajectories"]
    assert_is_valid(subagent)
    assert subagent["trajectory_id"] == "aaaaaaaa"
    assert subagent["steps"][0]["message"] == "look for [redacted]"
    (answer,) = found["steps"][1]["observation"]["results"]
    assert answer["subagent_trajectory_ref"] == [{"trajectory_id": "aaaaaaaa"}]


@given(hostile_texts)
def test_any_text_is_a_valid_and_harmless_trajectory(said: str) -> None:
    text = atif_text(everywhere(said))

    found = json.loads(text)
    assert_is_valid(found)
    found["steps"][0]["message"].encode()
    assert not {char for char in text if ord(char) < 32 or 127 <= ord(char) < 160} - {"\n"}
