"""A hook may make the next request shorter: before it is sent, and once where it was refused."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from panpan.core.conversation import Conversation
from panpan.core.hooks import Hook, Round
from panpan.errors import ContextOverflowError, ProviderError
from panpan.types.events import Compacted, Waiting
from panpan.types.llm import ModelClient
from panpan.types.messages import Compaction, UserMessage
from tests.core.test_query import collect, turn_of
from tests.fakes.scripted_llm import ScriptedLLM, say

REFUSAL = ContextOverflowError("too long")


class Shortener(Hook):
    """Leaves all but the newest message out, where it is told to."""

    def __init__(self, *, when_refused: bool) -> None:
        self.refusals: list[ContextOverflowError | None] = []
        self._when_refused = when_refused

    async def compact(
        self, round_: Round, llm: ModelClient, refusal: ContextOverflowError | None
    ) -> AsyncGenerator[Waiting | Compacted, None]:
        self.refusals.append(refusal)
        if (refusal is not None) == self._when_refused:
            newest = round_.conversation.messages[-1].uuid
            yield Waiting("room")
            yield Compacted(Compaction("auto", newest, 9, 1, kept_from=newest))


def said() -> Conversation:
    return Conversation(messages=[UserMessage.of("old"), UserMessage.of("new")])


async def test_make_room_hook_shortens_the_request(tmp_path: Path) -> None:
    llm, conversation = ScriptedLLM(say("yes")), said()

    async with turn_of(tmp_path, llm, hooks=[Shortener(when_refused=False)]) as turn:
        events = await collect(conversation, turn)

    assert [message.text for message in llm.histories[0]] == ["new"]  # type: ignore[union-attr]
    assert [type(event) for event in events[:2]] == [Waiting, Compacted]
    assert len(conversation.messages) == 3


async def test_refused_request_is_sent_once_more_when_shorter(tmp_path: Path) -> None:
    llm, hook, conversation = ScriptedLLM(REFUSAL, say("yes")), Shortener(when_refused=True), said()

    async with turn_of(tmp_path, llm, hooks=[hook]) as turn:
        await collect(conversation, turn)

    assert [len(history) for history in llm.histories] == [2, 1]
    assert hook.refusals == [None, REFUSAL]


async def test_second_refusal_ends_the_turn(tmp_path: Path) -> None:
    llm = ScriptedLLM(REFUSAL, ContextOverflowError("still too long"))

    async with turn_of(tmp_path, llm, hooks=[Shortener(when_refused=True)]) as turn:
        with pytest.raises(ContextOverflowError, match="still"):
            await collect(said(), turn)

    assert len(llm.requests) == 2


@pytest.mark.parametrize("hooks", [[], [Shortener(when_refused=False)]])
async def test_refused_request_is_not_sent_again_unshortened(tmp_path: Path, hooks: list[Hook]) -> None:
    llm = ScriptedLLM(REFUSAL)

    async with turn_of(tmp_path, llm, hooks=hooks) as turn:
        with pytest.raises(ContextOverflowError):
            await collect(said(), turn)

    assert len(llm.requests) == 1


async def test_other_provider_error_is_no_refusal(tmp_path: Path) -> None:
    hook = Shortener(when_refused=True)

    async with turn_of(tmp_path, ScriptedLLM(ProviderError("no")), hooks=[hook]) as turn:
        with pytest.raises(ProviderError):
            await collect(said(), turn)

    assert hook.refusals == [None]
