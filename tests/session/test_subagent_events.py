"""A turn in which a subagent works: its events come through, its use counts, and its words stay its own."""

from pathlib import Path

from panpan import open_session
from panpan.capabilities.subagents.definitions.load import AgentDefinitions
from panpan.faces.headless.face import TurnSummary
from panpan.session.budget.budget import Budget
from panpan.session.log.agent_log import PastSubagents
from panpan.types.agent import AgentDefinition
from panpan.types.events import SubagentEvent, TextDelta, TurnEnded
from panpan.types.messages import AssistantMessage, SystemReminder
from tests.capabilities.cassettes.cassette_fixtures import Place, environment
from tests.fakes.scripted_llm import ScriptedLLM, call, say
from tests.fakes.session import recorded, session_in
from tests.fakes.subagents import TOKENS, FakeTask, looks, reply


async def test_subagent_usage_counts_for_the_turn_without_its_rounds(tmp_path: Path) -> None:
    root = tmp_path / "w"
    root.mkdir()
    budget = Budget()
    task = FakeTask(*looks("1", "loss"), TextDelta(0, "mine"), reply("It is in loss.py."), budget=budget.child("a"))
    llm = ScriptedLLM(call(("t1", "Task", {"description": "find it"})), say("Found.", cost_usd=0.25))
    summary = TurnSummary()

    async with session_in(root, llm, task, budget=budget) as session:
        events = [event async for event in session.submit("where is the loss?")]
    for event in events:
        summary.follow(event)

    ended = events[-1]
    assert isinstance(ended, TurnEnded)
    assert (ended.rounds, ended.usage) == (2, budget.spent.usage)
    assert budget.children[0].spent.tokens == 2 * TOKENS
    assert summary.rounds == ended.rounds
    assert summary.answer == "Found."
    assert sum(isinstance(event, SubagentEvent) for event in events) == 6
    said = [message.text for message in recorded(root) if isinstance(message, AssistantMessage)]
    assert said == ["", "Found."]


async def test_session_names_its_kinds_of_subagents(tmp_path: Path) -> None:
    kinds = AgentDefinitions.of(
        AgentDefinition("plan", "Plans.", "Plan."), AgentDefinition("explore", "Looks.", "Look.")
    )

    async with session_in(tmp_path, ScriptedLLM(), offers=(kinds,)) as session:
        assert [one.name for one in session[AgentDefinitions].all] == ["explore", "plan"]


async def test_subagent_named_in_the_prompt_is_wanted(tmp_path: Path) -> None:
    place = Place(tmp_path)
    tape = 'version = 1\n[[reply]]\ntext = "I do it myself."'

    recorded = await place.record("@agent-explore where is the loss?", tape=tape)

    told = [one.text for one in recorded.messages if isinstance(one, SystemReminder) and one.category == "agent"]
    assert told == ["The user wants the subagent explore for this: use Task."]


async def test_session_finds_its_past_subagents_again(tmp_path: Path) -> None:
    place, inner = Place(tmp_path), tmp_path / "inner.toml"
    inner.write_text('version = 1\n[[reply]]\ntext = "It is in loss.py."')
    tape = (
        'version = 1\n[[reply]]\n[[reply.tool_use]]\nname = "Task"\n'
        f'input = {{ description = "find it", prompt = "go", model = "cassette:{inner}" }}\n'
        '[[reply]]\ntext = "Done."'
    )
    await place.record("find it", tape=tape)

    overrides = {"model": f"cassette:{tmp_path / 'tape.toml'}"}
    async with open_session(
        place.workspace, overrides=overrides, env=environment(place.home), continue_latest=True
    ) as session:
        (record,) = session[PastSubagents].records()
        said = session[PastSubagents].turns().take(record.tool_use_id)

    assert (record.name, record.description) == ("general-purpose", "find it")
    assert said is not None
    replies = [message.text for message in said.messages() if isinstance(message, AssistantMessage)]
    assert replies == ["It is in loss.py."]
