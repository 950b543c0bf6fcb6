"""A turn in which a subagent works: its events come through, its use counts, and its words stay its own."""

from pathlib import Path

from panpan.types.events import SubagentEvent, TextDelta, TurnEnded
from panpan.types.messages import AssistantMessage
from panpan.ui.headless.face import TurnSummary
from tests.fakes.scripted_llm import ScriptedLLM, call, say
from tests.fakes.session import recorded, session_in
from tests.fakes.subagents import TOKENS, FakeTask, looks, reply


async def test_what_a_subagent_uses_counts_for_the_turn_and_its_rounds_do_not(tmp_path: Path) -> None:
    root = tmp_path / "w"
    root.mkdir()
    task = FakeTask(*looks("1", "loss"), TextDelta(0, "mine"), reply("It is in loss.py."))
    llm = ScriptedLLM(call(("t1", "Task", {"description": "find it"})), say("Found.", cost_usd=0.25))
    summary = TurnSummary()

    async with session_in(root, llm, task) as session:
        events = [event async for event in session.submit("where is the loss?")]
    for event in events:
        summary.follow(event)

    ended = events[-1]
    assert isinstance(ended, TurnEnded)
    assert (ended.rounds, ended.usage.context_tokens) == (2, 2 * TOKENS)
    assert (summary.totals.rounds, summary.totals.usage) == (ended.rounds, ended.usage)
    assert summary.totals.usage_by_model["small"].input_tokens == 200
    assert summary.answer == "Found."
    assert sum(isinstance(event, SubagentEvent) for event in events) == 6
    said = [message.text for message in recorded(root) if isinstance(message, AssistantMessage)]
    assert said == ["", "Found."]
