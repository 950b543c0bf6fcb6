"""Messages too large by themselves: the user learns which, no request is repeated, and the session goes on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from panpan.capabilities.compaction.auto_compaction import AutoCompaction, Compactor
from panpan.capabilities.compaction.capability import CompactionCapability
from panpan.capabilities.compaction.settings import CompactionSettings
from panpan.capabilities.compaction.window import explain_too_large
from panpan.errors import ContextOverflowError
from panpan.session.session import Session
from panpan.types.messages import WORDS, Message, SystemReminder, UserMessage
from tests.capabilities.compaction.conversations import SUMMARY, answered, conversation_of, replied, used
from tests.fakes.scripted_llm import Reply, ScriptedLLM, call, say
from tests.fakes.session import session_in
from tests.fakes.settings import settings_with
from tests.fakes.tools import looking

REFUSAL = ContextOverflowError("prompt is too long", provider="p", status=400)
GIANT = "x" * 100_000


def session(
    root: Path, *replies: Reply, warn: Callable[[str], None] = lambda _: None, window: int | None = 10_000, **own: Any
) -> Session:
    settings = CompactionSettings(window_tokens=window, **own)
    hook = AutoCompaction(Compactor(), settings, lambda: window, warn)
    return session_in(root, ScriptedLLM(*replies), looking(), hooks=[hook], settings=settings_with(settings))


async def say_to(session: Session, prompt: str) -> None:
    async for _ in session.submit(prompt):
        pass


async def test_oversized_prompt_is_named_sent_once_and_then_skipped(
    tmp_path: Path,
) -> None:
    warnings: list[str] = []
    async with session(tmp_path, REFUSAL, say(SUMMARY), say("yes"), warn=warnings.append) as one:
        with pytest.raises(ContextOverflowError) as refused:
            await say_to(one, GIANT)
        await say_to(one, "and now in short")
        llm: Any = one.agent.model.llm

    text = str(refused.value)
    assert "\n" not in text
    assert "of at most 10,000" in text
    assert "about 25,0" in text
    assert "your newest message; say less at once" in text
    assert refused.value.status == 400
    assert len(llm.requests) == 3
    assert GIANT not in str(llm.histories[2])
    assert "and now in short" in str(llm.histories[2])
    assert len(warnings) == 1
    assert "leaves too little room for the reply" in warnings[0]
    assert warnings[0].endswith("it is sent as it is")


async def test_unknown_window_names_the_setting(tmp_path: Path) -> None:
    async with session(tmp_path, REFUSAL, window=None) as one:
        with pytest.raises(ContextOverflowError, match=r"\[compaction\] window_tokens"):
            await say_to(one, GIANT)


def to_remember(number: int) -> str:
    return f"always heed this ({number}): {'y' * 3_900}"


async def test_oversized_quotes_send_no_request_twice(tmp_path: Path) -> None:
    async with session(tmp_path, *(say("so be it " * 500) for _ in range(20)), window=None) as one:
        for number in range(20):
            await say_to(one, to_remember(number))
    async with session(tmp_path, say(SUMMARY), REFUSAL) as smaller:
        with pytest.raises(ContextOverflowError, match="to be remembered; begin a new session"):
            await say_to(smaller, "go on")
        llm: Any = smaller.agent.model.llm

    assert len(llm.requests) == 2
    assert all(to_remember(number) in str(llm.histories[1]) for number in range(20))


async def test_refused_undone_conversation_is_not_resent_unchanged(tmp_path: Path) -> None:
    replies = [say("so be it " * 500) for _ in range(20)]
    async with session(tmp_path, *replies, say(SUMMARY), window=None) as one:
        for number in range(20):
            await say_to(one, to_remember(number))
        await one[CompactionCapability].compact()
        one[CompactionCapability].undo()
    async with session(tmp_path, REFUSAL, say(SUMMARY)) as smaller:
        with pytest.raises(ContextOverflowError, match="nothing more can leave it"):
            await say_to(smaller, "go on")
        llm: Any = smaller.agent.model.llm

    assert len(llm.requests) == 2
    assert len(smaller.conversation.compactions) == 3


async def test_disabled_compaction_names_the_command_after_a_refusal(tmp_path: Path) -> None:
    async with session(tmp_path, REFUSAL, enabled=False) as one:
        with pytest.raises(ContextOverflowError, match=r"prompt is too long; /compact .*enabled is off"):
            await say_to(one, "hello")


async def test_failed_prompt_is_skipped_even_behind_tool_output(
    tmp_path: Path,
) -> None:
    replies = [call(("1", "Look", {})), ContextOverflowError("no"), REFUSAL, say(SUMMARY), say("yes")]
    async with session(tmp_path, *replies) as one:
        for prompt in ("look", GIANT):
            with pytest.raises(ContextOverflowError):
                await say_to(one, prompt)
        await say_to(one, "in short")
        llm: Any = one.agent.model.llm

    assert GIANT not in str(llm.histories[-1])


PARTS: dict[str, list[Message]] = {
    "the project's context and rules": [SystemReminder(text=GIANT, cause="session:start"), UserMessage.of("hi")],
    "what you said in your own words": [SystemReminder(text=GIANT, cause=WORDS), UserMessage.of("hi")],
    "what you said before": [UserMessage.of(GIANT), UserMessage.of("hi")],
    "the newest output of tools": [UserMessage.of("hi"), replied("", used("a")), answered("a", GIANT)],
    "what the model said": [UserMessage.of("hi"), replied(GIANT), UserMessage.of("and?")],
    "the plan": [SystemReminder(text=GIANT, cause="compact:plan"), UserMessage.of("hi")],
}


@pytest.mark.parametrize("name", PARTS)
def test_large_part_is_named(name: str) -> None:
    assert f"of them are {name}" in explain_too_large(conversation_of(PARTS[name]), 10_000, REFUSAL)


@pytest.mark.parametrize(
    ("said", "counted"),
    [
        ("prompt is too long: 214000 tokens > 200000 maximum", "214,000"),
        ("maximum context length is 128,000 tokens, and you sent 131_072", "131,072"),
    ],
)
def test_providers_far_higher_count_is_believed(said: str, counted: str) -> None:
    refusal = ContextOverflowError(f"the request is longer than the window: {said}", status=400)
    conversation = conversation_of([UserMessage.of("hi")])
    conversation.system = "you are helpful " * 100
    text = explain_too_large(conversation, 200_000, refusal)

    assert f"the provider counts {counted} tokens; /compact makes the conversation shorter" in text
    assert "[tools]" not in text


def test_large_system_prompt_is_named() -> None:
    conversation = conversation_of([UserMessage.of("hi")])
    conversation.system = GIANT

    assert "of them are the system prompt; say less in it" in explain_too_large(conversation, None, REFUSAL)
