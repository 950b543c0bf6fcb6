"""Steps between turns are replayed: /compact and its undo, another model or effort, a rewind."""

import json
from pathlib import Path
from typing import Any

import pytest
from anyio import create_task_group
from anyio.lowlevel import checkpoint

from panpan import open_session
from panpan.app import PROVIDER_KINDS
from panpan.capabilities.cassettes.recorded_session import (
    GO_ON,
    MessageAdded,
    ModelChanged,
    OptionsChanged,
    RecordedCompaction,
    RecordedTurn,
    Rewound,
    fork_recorded,
    read_session,
)
from panpan.capabilities.cassettes.recording import Recording
from panpan.capabilities.cassettes.replay import Replay
from panpan.capabilities.cassettes.replay_run import model_of_user, repeat_step, replay_session
from panpan.capabilities.compaction.capability import CompactionCapability
from panpan.types.events import ToolStarted
from panpan.types.messages import UserMessage
from panpan.types.permission import PlanApproved, PlanProposal
from tests.capabilities.cassettes.cassette_fixtures import Place, environment
from tests.capabilities.cassettes.test_odd_turns import opened, say_to, taped
from tests.capabilities.compaction.conversations import SUMMARY


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def replies(*texts: str) -> str:
    return "".join(f"[[reply]]\ntext = {json.dumps(text)}\n" for text in texts)


LONG = [f"part {number} " + "w" * 9_000 for number in range(3)]


def steps_of(place: Place) -> list[type]:
    return [type(step) for step in read_session(place.cassette).steps]


async def test_manual_compaction_and_its_undo_are_replayed(place: Place) -> None:
    model = taped(place, replies(*LONG, SUMMARY, "Short.", "Whole."))
    async with opened(place, model, interceptor=Recording(place.cassette)) as session:
        for prompt in ("one", "two", "three"):
            await say_to(session, prompt)
        assert await session[CompactionCapability].compact("heed the colour") is not None
        await say_to(session, "and now?")
        session[CompactionCapability].undo()
        await say_to(session, "and then?")
    recorded = read_session(place.cassette)

    report = await place.replay("strict")

    assert steps_of(place) == [*[RecordedTurn] * 3, RecordedCompaction, RecordedTurn, RecordedCompaction, RecordedTurn]
    short, whole = (json.dumps(turn.requests[0].canonical["messages"]) for turn in recorded.turns[3:])
    assert (LONG[0] in short, "Find the needle." in short) == (False, True)
    assert (LONG[0] in whole, "Find the needle." in whole) == (True, False)
    assert (report.is_same, report.turns, report.requests) == (True, 5, 6), report


async def test_pinned_plan_is_told_again(place: Place) -> None:
    async def approved(proposal: PlanProposal) -> PlanApproved:
        return PlanApproved("default")

    plan = "1. Paint it teal. " * 20
    tape = f'[[reply]]\n[[reply.tool_use]]\nname = "ExitPlanMode"\ninput = {{ plan = "{plan}" }}\n'
    model = taped(place, tape + replies(*LONG, SUMMARY, "Short.", SUMMARY, "Shorter."))
    settings = {"permission.mode": "plan"}
    recording = Recording(place.cassette)
    async with opened(place, model, ask_plan=approved, interceptor=recording, overrides=settings) as session:
        for prompt in ("plan it", "two", "three"):
            await say_to(session, prompt)
        await session[CompactionCapability].compact()
        await say_to(session, "and now?")
        await session[CompactionCapability].compact()
        await say_to(session, "and then?")

    report = await place.replay("strict")

    assert "Paint it teal" in json.dumps(read_session(place.cassette).turns[-1].requests[0].canonical)
    assert (report.is_same, report.turns) == (True, 5), report


async def test_other_summary_request_is_named(place: Place) -> None:
    async with opened(place, taped(place, replies(*LONG, SUMMARY)), interceptor=Recording(place.cassette)) as session:
        for prompt in ("one", "two", "three"):
            await say_to(session, prompt)
        await session[CompactionCapability].compact("heed the colour")
    place.cassette.write_text(place.cassette.read_text().replace('"hint":"heed the colour"', '"hint":"heed the form"'))

    report = await place.replay("strict")

    assert report.divergence is not None
    assert report.divergence.sentence == "request 4 differs in messages[0].content[0].text"
    assert "+The user wants the note to pay attention to this: heed the form" in report.divergence.difference.diff


async def test_interrupted_compaction_is_left_out(place: Place) -> None:
    never = f"[[reply]]\npause_s = 60\ntext = {json.dumps(SUMMARY)}\n"
    recording = Recording(place.cassette)
    async with opened(
        place, taped(place, f"{replies(*LONG)}{never}{replies('On.')}"), interceptor=recording
    ) as session:
        for prompt in ("one", "two", "three"):
            await say_to(session, prompt)
        async with create_task_group() as tasks:
            tasks.start_soon(session[CompactionCapability].compact)
            while recording._number < 4:
                await checkpoint()
            session.interrupt()
        assert session.conversation.compactions == []
        await say_to(session, "go on")

    report = await place.replay("strict")

    assert (report.is_same, report.turns, report.requests) == (True, 4, 4), report


async def test_steps_at_the_end_are_replayed_too(place: Place) -> None:
    async with opened(place, taped(place, replies("One.", "Two.")), interceptor=Recording(place.cassette)) as session:
        await say_to(session, "first")
        session.add_message(UserMessage.of("$ make\nall is made"))
        await say_to(session, "second")
        prompts = [message for message in session.conversation.messages if isinstance(message, UserMessage)]
        await session.rewind(prompts[-1].uuid)
        session.add_message(UserMessage.of("$ make clean\nnothing is made"))

    report = await place.replay("strict")

    assert steps_of(place) == [RecordedTurn, MessageAdded, RecordedTurn, Rewound, MessageAdded]
    assert (report.is_same, report.turns) == (True, 2), report


async def test_change_of_the_model_is_replayed(place: Place) -> None:
    first = taped(place, replies("One."))
    (place.root / "other.toml").write_text(f"version = 1\n{replies('Two.', 'Three.')}")
    async with opened(place, first, interceptor=Recording(place.cassette)) as session:
        await say_to(session, "first")
        await session.use_model(f"cassette:{place.root / 'other.toml'}")
        window = session.context_window
        await say_to(session, "second")
        await session.use_effort("high")
        session.use_thinking(is_on=True)
        await say_to(session, "third")
    recorded = read_session(place.cassette)

    report = await place.replay("strict")

    choices = [step for step in recorded.steps if isinstance(step, OptionsChanged | ModelChanged)]
    assert choices[0] == ModelChanged("full", window)
    assert (choices[-1].effort, choices[-1].thinks) == ("high", True)  # type: ignore[union-attr]
    assert recorded.turns[2].requests[0].options["thinking_budget_tokens"] is not None
    assert (report.is_same, report.turns) == (True, 3), report


async def test_window_of_the_other_model_counts_from_then_on(place: Place) -> None:
    await place.record("look around")
    lines = [json.loads(line) for line in place.cassette.read_text().splitlines()]
    opened_at = next(number for number, line in enumerate(lines) if line["type"] == "cassette_opened")
    change = {"type": "cassette_model", "at": 0, "model": "other", "profile": "full", "window": 30_000}
    lines.insert(opened_at + 1, change)
    place.cassette.write_text("".join(json.dumps(line) + "\n" for line in lines))
    replay = Replay(read_session(place.cassette), "strict")
    opening = replay_session(replay, open_session, None, env=environment(place.home))
    async with opening as session:
        assert session.context_window != 30_000
        await repeat_step(replay, session, replay.recorded.steps[0])
        assert session.context_window == 30_000


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"effort": "high"}, "options.effort"),
        ({"thinking": True}, "options.thinking_budget_tokens"),
        ({"temperature": 0.5}, "options.temperature"),
    ],
)
async def test_generation_options_are_part_of_a_request(place: Place, settings: dict[str, Any], field: str) -> None:
    await place.record("look around")

    strict = await place.replay("strict", overrides=settings)
    semantic = await place.replay("semantic", overrides=settings)

    assert strict.divergence is not None
    assert strict.divergence.sentence == f"request 1 differs in {field}"
    assert semantic.is_same


async def test_generation_options_are_the_same_in_a_replay(place: Place) -> None:
    await place.record("look around", overrides={"effort": "low", "thinking": True, "temperature": 0.25})

    report = await place.replay("strict")

    assert report.is_same, report


async def test_steering_is_said_again_in_a_fork(place: Place, tmp_path: Path) -> None:
    tape = '[[reply]]\n[[reply.tool_use]]\nname = "LS"\n' * 2 + '[[reply]]\ntext = "Both."\n'
    async with opened(place, taped(place, tape), interceptor=Recording(place.cassette)) as session:
        async for event in session.submit("one"):
            if isinstance(event, ToolStarted) and event.tool_use_id.startswith("tape_1"):
                session.steering.add("and two")
    recorded = read_session(place.cassette)

    forks = [fork_recorded(recorded, at, tmp_path / f"sessions{at}", place.workspace) for at in range(4)]

    assert [fork.prompt for fork in forks] == ["one", "and two", GO_ON, None]
    assert forks[0].session_id is None


def test_model_is_asked_with_the_users_own_key(place: Place) -> None:
    settings = place.home / ".panpan" / "settings.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[providers.mine]\nbase_url = "http://127.0.0.1:9/v1"\napi_key = "sk-mine-0123456789"\n')

    model = model_of_user("mine/some-model", place.workspace, environment(place.home), PROVIDER_KINDS)

    assert (model.model, model.api_key, model.base_url) == ("some-model", "sk-mine-0123456789", "http://127.0.0.1:9/v1")
