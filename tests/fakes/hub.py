"""A hub around a session of fakes."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from panpan.hub.feed import Feed
from panpan.hub.hub import Hub
from panpan.hub.questions import Questions
from panpan.session.session import Session


@asynccontextmanager
async def hub_of(session: Session, feed: Feed | None = None) -> AsyncGenerator[Hub, None]:
    """Open a session with its hub."""
    feed = feed or Feed()
    async with session, Hub(session, feed, Questions(feed)) as hub:
        yield hub
