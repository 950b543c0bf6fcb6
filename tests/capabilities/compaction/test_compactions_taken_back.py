"""A compaction is taken back, rewound, forked; what was said since stays."""

from pathlib import Path
from typing import Any

import pytest

from panpan.capabilities.compaction.capability import CompactionCapability
from panpan.core.conversation import Conversation
from panpan.errors import ConfigError
from panpan.session.log.fold import fold_records
from panpan.session.log.recorder import fork
from panpan.session.log.session_log import read_records
from panpan.types.events import Compacted
from panpan.types.messages import (
    UserMessage,
)
from tests.capabilities.compaction.compacted_sessions import WORDS, session, turns, wire
from tests.capabilities.compaction.conversations import SUMMARY
from tests.fakes.scripted_llm import say


async def test_undone_compaction_is_not_repeated_at_once(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}") for number in range(8)]
    async with session(tmp_path, *replies, say(SUMMARY), say("short"), say("whole"), say(WORDS), say("x")) as one:
        await turns(one, *(f"question {number} " for number in range(9)))
        one[CompactionCapability].undo()
        events = await turns(one, "and now?")

    assert not [event for event in events if isinstance(event, Compacted)]
    assert one.conversation.sent is one.conversation.messages


async def test_compact_and_undo_round_trip(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}") for number in range(4)]
    async with session(tmp_path, *replies, say(SUMMARY), say("short"), say("long")) as one:
        await turns(one, *(f"question {number}" for number in range(4)))
        compaction = await one[CompactionCapability].compact("heed the colour")
        await turns(one, "now?")
        undo = one[CompactionCapability].undo()
        await turns(one, "and now?")
        llm: Any = one.agent.model.llm
        with pytest.raises(ConfigError, match="no compaction"):
            one[CompactionCapability].undo()

    assert compaction is not None
    assert undo.trigger == "undo"
    assert "heed the colour" in llm.histories[4][0].text
    assert len(llm.histories[5]) < len(llm.histories[6])
    assert llm.histories[6] == one.conversation.messages[:-1]
    async with session(tmp_path) as resumed:
        assert resumed.conversation.sent == resumed.conversation.messages == one.conversation.messages


async def test_undo_goes_back_one_compaction_at_a_time(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}") for number in range(6)]
    async with session(tmp_path, *replies[:4], say(SUMMARY), *replies[4:], say(SUMMARY)) as one:
        await turns(one, *(f"question {number}" for number in range(4)))
        await one[CompactionCapability].compact()
        first = list(one.conversation.sent)
        await turns(one, "question 4", "question 5")
        await one[CompactionCapability].compact()
        one[CompactionCapability].undo()
        again = list(one.conversation.sent)
        one[CompactionCapability].undo()

        assert again[: len(first)] == first
        assert one.conversation.sent == one.conversation.messages


async def test_rewind_before_a_compaction_sends_the_old_messages(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}") for number in range(4)]
    async with session(tmp_path, *replies, say(SUMMARY), say("short")) as one:
        await turns(one, *(f"question {number}" for number in range(4)))
        await one[CompactionCapability].compact()
        await turns(one, "now?")
        prompts = [message for message in one.conversation.messages if isinstance(message, UserMessage)]
        await one.rewind(prompts[-1].uuid)
        assert one.conversation.sent is not one.conversation.messages
        await one.rewind(prompts[-2].uuid)
        assert one.conversation.sent == one.conversation.messages
        assert len(one.conversation.messages) == 6


async def test_undo_works_after_a_rewind_and_on_resuming(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}") for number in range(4)]
    async with session(tmp_path, *replies, say(SUMMARY), say("short"), say("more")) as one:
        await turns(one, *(f"question {number}" for number in range(4)))
        await one[CompactionCapability].compact()
        await turns(one, "now?", "and now?")
        prompts = [message for message in one.conversation.messages if isinstance(message, UserMessage)]
        await one.rewind(prompts[-1].uuid)
    async with session(tmp_path, say("whole")) as resumed:
        undo = resumed[CompactionCapability].undo()
        assert resumed.conversation.sent == resumed.conversation.messages
        assert undo.tokens_after > undo.tokens_before
        with pytest.raises(ConfigError, match="no compaction"):
            resumed[CompactionCapability].undo()
        await turns(resumed, "go on")
        llm: Any = resumed.agent.model.llm

    assert len(llm.histories[0]) == 11


async def test_fork_sends_the_same_as_its_session(tmp_path: Path) -> None:
    replies = [say(f"part {number} {WORDS}") for number in range(4)]
    async with session(tmp_path, *replies, say(SUMMARY), say("short")) as one:
        await turns(one, *(f"question {number}" for number in range(4)))
        await one[CompactionCapability].compact()
        await turns(one, "now?")
        log = one.agent.transcript.log.path
    copy = fold_records(read_records(fork(log, tmp_path.parent / "fork")))
    forked = Conversation(messages=copy.messages, compactions=copy.compactions)

    assert one.conversation.sent is not one.conversation.messages
    assert wire(forked.sent) == wire(one.conversation.sent)
