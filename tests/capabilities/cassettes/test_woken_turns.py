"""Turns without a message of the user are recorded as such, and replays wake the model where it was woken."""

from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from panpan.capabilities import Agent, Capability
from panpan.capabilities.background.background_tasks import BackgroundTasks
from panpan.capabilities.cassettes.recorded_session import read_session
from panpan.capabilities.cassettes.recording import Recording
from panpan.capabilities.cassettes.replay import Mode
from panpan.core.hooks import Addition, Hook, Round
from panpan.errors import PanpanError
from panpan.session.session import Session
from panpan.types.messages import SystemReminder
from tests.capabilities.cassettes.cassette_fixtures import Place
from tests.capabilities.cassettes.test_odd_turns import opened, say_to, taped


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


class Told(Hook):
    """Tells one thing when it is wanted to."""

    text = ""

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        text, self.text = self.text, ""
        return [SystemReminder(text=text, cause="task:1")] if text else []


def with_hook(hook: Hook) -> type[Capability]:
    class Telling(Capability):
        name = "telling"

        def hooks(self, agent: Agent) -> Sequence[Hook]:
            return (hook,)

    return Telling


async def wake(session: Session) -> None:
    async with aclosing(session.wake()) as events:
        async for _ in events:
            pass


def replies(*texts: str) -> str:
    return "".join(f'[[reply]]\ntext = "{text}"\n' for text in texts)


async def record(place: Place, *texts: str, **wishes: Any) -> None:
    told = Told()
    wishes |= {"interceptor": Recording(place.cassette), "capabilities": [with_hook(told)]}
    async with opened(place, taped(place, replies(*texts)), **wishes) as session:
        await say_to(session, "build it")
        await wake(session)  # for nothing
        told.text = "the build has ended"
        await wake(session)
        await say_to(session, "and now?")


async def test_woken_turn_is_replayed_with_its_reminders(place: Place) -> None:
    await record(place, "It runs.", "It is done.", "Nothing more.")
    recorded = read_session(place.cassette)

    report = await place.replay("strict")

    assert [turn.prompt and turn.prompt.text for turn in recorded.turns] == ["build it", None, None, "and now?"]
    assert [len(turn.requests) for turn in recorded.turns] == [1, 0, 1, 1]
    assert (report.is_same, report.requests, report.error) == (True, 3, "")


@pytest.mark.parametrize("mode", ["strict", "semantic", "live-tools"])
async def test_turn_begun_by_a_background_task_is_replayed(place: Place, mode: Mode) -> None:
    call = 'name = "Bash"\ninput = { command = "sleep 0.1; echo built", run_in_background = true }'
    tape = f"[[reply]]\n[[reply.tool_use]]\n{call}\n{replies('It runs.', 'It is done.')}"
    async with opened(place, taped(place, tape), interceptor=Recording(place.cassette)) as session:
        await say_to(session, "build it")
        while not session.may_be_woken:
            await session[BackgroundTasks].wait_changed()
        await wake(session)

    report = await place.replay(mode, cwd=place.workspace if mode == "live-tools" else None)

    assert (report.is_same, report.requests, report.error) == (True, 3, "")


async def test_failed_prompt_is_not_taken_for_that_of_a_woken_turn(place: Place) -> None:
    tape = replies("It runs.")
    async with opened(place, taped(place, tape), interceptor=Recording(place.cassette)) as session:
        await say_to(session, "build it")
        with pytest.raises(PanpanError):
            await say_to(session, "more than is on the tape")
        with pytest.raises(PanpanError):
            await wake(session)

    turns = read_session(place.cassette).turns
    assert [turn.prompt and turn.prompt.text for turn in turns] == ["build it", "more than is on the tape", None]
