"""Output for programs is complete, in the shapes that they expect."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from panpan.faces.headless.face import Outcome, TurnSummary, outcome_of_end
from panpan.faces.headless.output_formats import JsonFace, StreamJsonFace
from panpan.session.session import SessionInfo
from panpan.types.content import AssistantContent, RedactedThinkingBlock, TextBlock, ThinkingBlock
from panpan.types.events import BlockFinished, BlockStarted, Event, ThinkingDelta, TurnEnded, Verification, Waiting
from panpan.types.messages import AssistantMessage, StopReason, Usage
from tests.faces.memory import Memory
from tests.fakes.scripted_llm import call, say


async def lines_of(*events: Event) -> list[dict[str, Any]]:
    """Return the output of a face with partial messages."""
    out = Memory()
    info = SessionInfo("s1", Path("/w"), "scripted", "scripted, said so", "none", "default", ())
    face = StreamJsonFace(out, info, has_partial_messages=True)
    for event in events:
        await face.show(event)
    return [json.loads(line) for line in out.text.splitlines()]


async def raw_events(*events: Event) -> list[dict[str, Any]]:
    return [line["event"] for line in await lines_of(*events) if line["type"] == "stream_event"]


def summary_of(*events: Event) -> TurnSummary:
    summary = TurnSummary()
    for event in events:
        summary.follow(event)
    return summary


async def test_result_has_the_evidence_for_the_answer() -> None:
    out = Memory()
    found = Verification(["2 tests passed"], stale=["build"], unverified=["works on GPU"])
    woken = TurnEnded(0, Usage(), None, 0.1, 0.0)  # for nothing new
    await JsonFace(out, "s1").end(
        summary_of(TurnEnded(1, Usage(), None, 1.0, 0.0, verification=found), woken), Outcome(), 0.0
    )

    assert json.loads(out.text)["verification"] == {
        "verified": ["2 tests passed"],
        "failed": [],
        "stale": ["build"],
        "unverified": ["works on GPU"],
        "line": 'verified: 2 tests passed · stale: build · unverified: "works on GPU"',
    }


async def test_result_without_evidence_has_no_such_key() -> None:
    out = Memory()
    await JsonFace(out, "s1").end(summary_of(TurnEnded(1, Usage(), None, 1.0, 0.0)), Outcome(), 0.0)

    assert "verification" not in json.loads(out.text)


def test_required_evidence_that_is_missing_fails_the_run() -> None:
    found = Verification(unverified=["it builds"], problem="the answer says more than was shown")
    outcome = outcome_of_end(TurnEnded(1, Usage(), None, 1.0, 0.0, verification=found))

    assert (outcome.exit_code, outcome.subtype, outcome.error) == (
        1,
        "error_during_execution",
        "the answer says more than was shown",
    )


async def result_of(replies: Sequence[AssistantMessage]) -> str:
    out, summary = Memory(), TurnSummary()
    for reply in replies:
        summary.follow(reply)
    await JsonFace(out, "s1").end(summary, Outcome(), 0.0)
    return str(json.loads(out.text)["result"])


@pytest.mark.parametrize("reason", ["max_tokens", "pause_turn"])
async def test_result_is_the_whole_of_a_cut_answer(reason: StopReason) -> None:
    parts = [say("The ans", stop_reason=reason), say("wer is forty-", stop_reason=reason), say("two.")]

    assert await result_of(parts) == "The answer is forty-two."


async def test_result_omits_text_before_the_answer() -> None:
    asks = call(("1", "Look", {}), text="Look.").model_copy(update={"stop_reason": "max_tokens"})

    assert await result_of([call(("0", "Look", {}), text="I look."), asks, say("It is 42.")]) == "It is 42."
    assert await result_of([]) == ""


async def test_signature_precedes_the_end_of_its_block() -> None:
    block = ThinkingBlock(thinking="hm", signature="c2ln")

    events = await raw_events(BlockStarted(0, "thinking"), ThinkingDelta(0, "hm"), BlockFinished(0, block))

    assert events == [
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
        {"type": "content_block_stop", "index": 0},
    ]


@pytest.mark.parametrize("block", [ThinkingBlock(thinking="hm"), TextBlock(text="hm")])
async def test_block_without_a_signature_just_ends(block: AssistantContent) -> None:
    assert await raw_events(BlockFinished(1, block)) == [{"type": "content_block_stop", "index": 1}]


async def test_encrypted_thinking_starts_complete() -> None:
    block = RedactedThinkingBlock(data="ZW5j")

    events = await raw_events(BlockStarted(0, "redacted_thinking"), BlockFinished(0, block))

    assert events == [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "redacted_thinking", "data": "ZW5j"}},
        {"type": "content_block_stop", "index": 0},
    ]


async def test_wait_for_the_model_is_a_system_line() -> None:
    (line,) = await lines_of(Waiting("starting the model"))

    assert line | {"type": "system", "subtype": "waiting", "reason": "starting the model", "session_id": "s1"} == line
