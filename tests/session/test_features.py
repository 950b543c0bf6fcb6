"""A session and its features: they are found by their types, and work on the conversation is done by one at a time."""

from pathlib import Path

import pytest

from panpan.errors import ConfigError
from panpan.session.session import Session
from tests.fakes.scripted_llm import ScriptedLLM, say
from tests.fakes.session import session_in


class Clock:
    """A feature's offer."""


class LoudClock(Clock):
    """A kind of it."""


class Missing:
    """Names that no feature offers."""


def session(root: Path) -> Session:
    return session_in(root, ScriptedLLM(say("done")), offers=(LoudClock(),))


async def test_session_finds_a_feature_by_its_class_or_base(tmp_path: Path) -> None:
    async with session(tmp_path) as one:
        assert one[Clock] is one[LoudClock] is one.find(Clock)


async def test_session_without_a_feature_says_so(tmp_path: Path) -> None:
    async with session(tmp_path) as one:
        assert one.find(Missing) is None
        with pytest.raises(KeyError, match="this session has no Missing"):
            one[Missing]


async def test_agent_alone_keeps_turns_and_changes_away(tmp_path: Path) -> None:
    async with session(tmp_path) as one:
        with one.agent.exclusive():
            for work in (one.submit("go"), one.wake()):
                with pytest.raises(RuntimeError, match="a turn is running already"):
                    await anext(work)
            with pytest.raises(ConfigError, match="thinking cannot be changed while a turn runs"):
                one.use_thinking(is_on=True)
            with pytest.raises(RuntimeError), one.agent.exclusive():
                raise AssertionError("two at once")
        assert [event async for event in one.submit("go")]


async def test_interrupt_ends_work_alone_once(tmp_path: Path) -> None:
    async with session(tmp_path) as one:
        assert not one.interrupt()
        with one.agent.exclusive() as scope:
            assert (one.interrupt(), one.interrupt()) == (True, False)
            assert scope.cancel_called
        assert not one.agent.is_busy
