"""Turns that do not go straight on: interrupted, tried again, taken back, compacted, in plan mode, gone on with."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from panpan import open_session
from panpan.capabilities.cassettes.recorded_session import RecordedSession, read_session
from panpan.capabilities.cassettes.recording import Recording
from panpan.capabilities.cassettes.replay import Replay
from panpan.capabilities.cassettes.requests import transcript_hash
from panpan.capabilities.local_model.server import embedded_profile
from panpan.errors import PanpanError
from panpan.session.session import Session
from panpan.session.setup import SessionSetup
from panpan.types.events import TextDelta, ToolStarted
from panpan.types.messages import AssistantMessage, Compaction, SystemReminder, UserMessage
from tests.capabilities.cassettes.cassette_fixtures import Place, environment, yes
from tests.capabilities.compaction.conversations import SUMMARY
from tests.model_server import HttpError, Step, Tokens, say, serving

MODEL = "claude-sonnet-5"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def say_to(session: Session, prompt: str, *, until: type | None = None) -> None:
    async with aclosing(session.submit(prompt)) as events:
        async for event in events:
            if until is not None and isinstance(event, until):
                session.interrupt()


def opened(place: Place, model: str, **wishes: Any) -> Any:
    overrides = {"model": model, **wishes.pop("overrides", {})}
    env = environment(place.home, **wishes.pop("env", {}))
    return open_session(place.workspace, overrides=overrides, env=env, **{"ask": yes, **wishes})


def taped(place: Place, tape: str) -> str:
    (place.root / "tape.toml").write_text(f"version = 1\n{tape}")
    return f"cassette:{place.root / 'tape.toml'}"


async def recorded_with(place: Place, script: Sequence[Step], *prompts: str, **overrides: Any) -> RecordedSession:
    """Record what a model over HTTP says."""
    with serving(list(script)) as server:
        env = {"ANTHROPIC_API_KEY": "sk-ant-test-0123456789abcdef", "ANTHROPIC_BASE_URL": server.url, "NO_PROXY": "*"}
        async with opened(place, MODEL, interceptor=Recording(place.cassette), overrides=overrides, env=env) as session:
            for prompt in prompts:
                try:
                    await say_to(session, prompt)
                except PanpanError:
                    continue
    return read_session(place.cassette)


async def test_retried_request_is_played_once(place: Place) -> None:
    recorded = await recorded_with(place, [HttpError(529), say("At last.")], "hello")

    report = await place.replay("strict")

    assert [request.number for request in recorded.turns[0].requests] == [2]
    assert (report.is_same, report.requests) == (True, 1)


async def test_failed_turn_fails_again_and_the_next_goes_on(place: Place) -> None:
    recorded = await recorded_with(place, [HttpError(400, "no"), say("Yes.")], "hello", "again")

    report = await place.replay("strict")

    assert len(recorded.turns) == 2
    assert (report.is_same, report.turns) == (True, 2), report


@pytest.mark.parametrize("until", [TextDelta, ToolStarted])
async def test_interrupted_turn_is_interrupted_again(place: Place, until: type) -> None:
    tape = """
chars_per_second = 40
[[reply]]
text = "I wait for a very long time, and then for some more of it."
[[reply.tool_use]]
name = "Bash"
input = { command = "sleep 60" }

[[reply]]
text = "Now."
"""
    quick = tape.replace("chars_per_second = 40", "") if until is ToolStarted else tape
    async with opened(place, taped(place, quick), interceptor=Recording(place.cassette)) as session:
        await say_to(session, "wait", until=until)
    recorded = read_session(place.cassette)

    report = await place.replay("strict")

    assert recorded.turns[0].is_interrupted
    assert (report.divergence, report.error) == (None, "")
    assert report.transcript == transcript_hash(recorded.messages)


async def test_interrupted_live_command_is_interrupted_again(place: Place) -> None:
    tape = """
[[reply]]
[[reply.tool_use]]
name = "Bash"
input = { command = "sleep 600; touch late" }
"""
    async with opened(place, taped(place, tape), interceptor=Recording(place.cassette)) as session:
        await say_to(session, "wait", until=ToolStarted)

    report = await place.replay("live-tools", cwd=place.workspace)

    assert (report.is_same, report.turns) == (True, 1), report
    assert not (place.workspace / "late").exists()


async def test_token_counts_come_from_the_cassette(place: Place) -> None:
    recorded = await recorded_with(place, [say("Well.")], "hello")
    recorded.turns[0].counts[:] = [4_711, None, 12]
    replay = Replay(recorded, "strict")
    replay.begin(recorded.turns[0])

    assert [replay.count() for _ in range(4)] == [4_711, None, 12, None]


async def test_rewind_is_replayed(place: Place) -> None:
    tape = '[[reply]]\ntext = "One."\n[[reply]]\ntext = "Two."\n[[reply]]\ntext = "Three."\n'
    async with opened(place, taped(place, tape), interceptor=Recording(place.cassette)) as session:
        await say_to(session, "first")
        await say_to(session, "second")
        prompts = [message for message in session.conversation.messages if isinstance(message, UserMessage)]
        await session.rewind(prompts[1].uuid)
        await say_to(session, "instead")
    recorded = read_session(place.cassette)

    report = await place.replay("strict")

    replies = [message.text for message in recorded.messages if isinstance(message, AssistantMessage)]
    assert replies == ["One.", "Three."]
    assert (report.is_same, report.turns) == (True, 3), report


async def test_user_command_between_turns_is_in_the_next_request(place: Place) -> None:
    async with opened(
        place, taped(place, '[[reply]]\ntext = "Seen."\n'), interceptor=Recording(place.cassette)
    ) as session:
        session.add_message(UserMessage.of("$ make\nall is made"))
        await say_to(session, "see?")

    report = await place.replay("strict")

    assert report.is_same, report


async def test_steering_is_replayed(place: Place) -> None:
    tape = '[[reply]]\n[[reply.tool_use]]\nname = "LS"\n[[reply]]\ntext = "Both."\n'
    async with opened(place, taped(place, tape), interceptor=Recording(place.cassette)) as session:
        async with aclosing(session.submit("one")) as events:
            async for event in events:
                if isinstance(event, ToolStarted):
                    session.steering.add("and two")
    recorded = read_session(place.cassette)

    reports = [await place.replay("strict"), await place.replay("live-tools", cwd=place.workspace)]

    assert [request.additions[0].text for request in recorded.turns[0].requests[1:]] == ["and two"]
    assert [report.is_same for report in reports] == [True, True], reports
    assert reports[0].transcript == transcript_hash(recorded.messages)


async def test_recording_of_a_resumed_session_is_replayed(place: Place) -> None:
    tape = '[[reply]]\ntext = "One."\n'
    async with opened(place, taped(place, tape)) as session:
        await say_to(session, "first")
    async with opened(
        place, taped(place, tape), continue_latest=True, interceptor=Recording(place.cassette)
    ) as session:
        await say_to(session, "second")
    recorded = read_session(place.cassette)

    report = await place.replay("strict")

    assert recorded.header.is_resumed
    assert len(recorded.history) == 3
    assert (report.is_same, report.turns, report.requests) == (True, 1, 1), report


async def test_plan_that_results_from_a_run_is_replayed(place: Place) -> None:
    tape = '[[reply]]\n[[reply.tool_use]]\nname = "ExitPlanMode"\ninput = { plan = "PLAN" }\n'.replace(
        "PLAN", "I change a.txt and look at it. " * 20
    )
    model = taped(place, tape)
    settings = {"permission.mode": "plan"}
    async with opened(place, model, ask=None, interceptor=Recording(place.cassette), overrides=settings) as session:
        await say_to(session, "plan it")

    report = await place.replay("strict")

    assert (report.is_same, report.requests) == (True, 1), report


class SmallRecording(Recording):
    """Records as if the model were the embedded one."""

    def setup(self, setup: SessionSetup) -> SessionSetup:
        return replace(setup, model=replace(setup.model, profile=embedded_profile().model))


async def test_small_models_short_prompt_is_replayed(place: Place) -> None:
    tape = '[[reply]]\n[[reply.tool_use]]\nname = "Read"\ninput = { file_path = "a.txt" }\n[[reply]]\ntext = "Read."\n'
    async with opened(place, taped(place, tape), interceptor=SmallRecording(place.cassette)) as session:
        await say_to(session, "read it")
        tools = len(session.conversation.tools)

    report = await place.replay("strict")

    assert tools == len(embedded_profile().model.tools or ())
    assert report.is_same, report


async def test_compaction_is_replayed(place: Place) -> None:
    long = say("w" * 40_000)
    full = replace(long, tokens=Tokens(input=38_000))
    settings = {
        "compaction.window_tokens": 40_000,
        "compaction.reserve_tokens": 5_000,
        "compaction.keep_recent_tokens": 1_000,
    }
    script = [long, long, full, say(SUMMARY), say("Short."), say("More.")]
    recorded = await recorded_with(place, script, "one", "two", "three", "four", "five", **settings)
    assert '"compact_boundary"' in place.cassette.read_text()
    assert [len(turn.requests) for turn in recorded.turns] == [1, 1, 1, 2, 1]

    report = await place.replay("strict")

    assert (report.is_same, report.requests) == (True, 6), report


async def test_recording_of_a_compacted_session_is_replayed(place: Place) -> None:
    tape = "".join(f'[[reply]]\ntext = "{number} {"w" * 9_000}"\n' for number in range(4))
    async with opened(place, taped(place, f'{tape}[[reply]]\ntext = "End."\n')) as session:
        for prompt in ("one", "two", "three", "four"):
            await say_to(session, prompt)
        messages = session.conversation.messages
        kept = [message for message in messages if isinstance(message, UserMessage)][-1]
        stands = SystemReminder(text="The beginning, in short.", cause="compaction:summary")
        compaction = Compaction("manual", messages[-1].uuid, 9_000, 3_000, added=(stands,), kept_from=kept.uuid)
        session._recorder.compact(compaction)
    tape_of_end = taped(place, '[[reply]]\ntext = "End."\n')
    async with opened(place, tape_of_end, continue_latest=True, interceptor=Recording(place.cassette)) as session:
        await say_to(session, "go on")
        assert "The beginning, in short." in str(session.conversation.request().messages)
    recorded = read_session(place.cassette)

    report = await place.replay("strict")

    assert len(recorded.turns[0].requests[0].canonical["messages"]) < len(recorded.history)
    assert report.is_same, report
