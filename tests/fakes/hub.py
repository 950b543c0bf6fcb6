"""A hub around a session of fakes."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from panpan.hub.feed import Feed
from panpan.hub.hub import Hub
from panpan.hub.questions import Questions
from panpan.session.command import CommandResult, NoCommands
from panpan.session.session import Session


@asynccontextmanager
async def hub_of(session: Session, feed: Feed | None = None) -> AsyncGenerator[Hub, None]:
    """Open a session with its hub."""
    feed = feed or Feed()
    async with session, Hub(session, feed, Questions(feed)) as hub:
        yield hub


class Commands(NoCommands):
    """`/hello`, which answers by itself, and others, which ask the model twice."""

    def line_in(self, text: str) -> str | None:
        return text if text.startswith("/") else None

    async def run(self, line: str, session: Any) -> CommandResult:
        return CommandResult(text="hello there") if line == "/hello" else CommandResult(prompts=["one", "two"])
