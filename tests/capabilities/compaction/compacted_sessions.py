"""Sessions of fakes that make room by themselves, and what they send."""

from pathlib import Path

from panpan.capabilities.compaction.auto_compaction import AutoCompaction, Compactor
from panpan.capabilities.compaction.settings import CompactionSettings
from panpan.models.providers import anthropic_request
from panpan.session.session import Session
from panpan.types.events import Event
from panpan.types.messages import (
    Message,
)
from tests.fakes.scripted_llm import Reply, ScriptedLLM
from tests.fakes.session import session_in
from tests.fakes.settings import settings_with
from tests.fakes.tools import looking

WORDS = "w" * 4_000
SETTINGS = CompactionSettings(window_tokens=10_000)


def session(
    root: Path,
    *replies: Reply,
    window: int | None = 10_000,
    warnings: list[str] | None = None,
    max_rounds: int = 50,
) -> Session:
    warn = warnings.append if warnings is not None else lambda _: None
    hook = AutoCompaction(Compactor(), SETTINGS, lambda: window, warn)
    settings = settings_with(SETTINGS)
    llm = ScriptedLLM(*replies)
    return session_in(root, llm, looking(), hooks=[hook], settings=settings, max_rounds=max_rounds)


async def turns(session: Session, *prompts: str) -> list[Event]:
    return [event for prompt in prompts async for event in session.submit(prompt)]


def wire(messages: list[Message]) -> list[bytes | None]:
    """The messages as they are sent."""
    return [
        anthropic_request.encode_reply(message, model="scripted")
        if message.type == "assistant"
        else anthropic_request.encode_user_side([message])
        for message in messages
    ]
