"""The web in a session as `open_session` puts it together, over tapes in place of models and loopback servers."""

import json
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from anyio.abc import ByteStream

from panpan.api import open_session
from panpan.types.events import Event
from panpan.types.messages import ToolResultMessage
from tests.fakes.askers import yes
from tests.fakes.outside import PUBLIC, Network, made_certificate, serving

KEY = "k3y-of-a-test"
SEARCH = 'tool_use = [{ name = "WebSearch", input = { query = "seeds" } }]'
ANSWER = {"results": [{"title": f"Seeds {KEY}", "url": "https://docs.example.org/", "content": f"key={KEY}"}]}


@dataclass
class Place:
    """A workspace and a home, and what the sessions that were opened there said."""

    root: Path
    env: Mapping[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def logs(self) -> str:
        return "".join(path.read_text() for path in self.root.rglob("*.jsonl"))

    async def events_of(self, *replies: str, network: Network | None = None, **wishes: Any) -> list[Event]:
        """Open a session, run a turn in it, and return its events and, in `offered`, the tools of its first request."""
        tape = self.root / "tape.toml"
        tape.write_text("version = 1\n" + "\n".join(f"[[reply]]\n{reply}" for reply in (*replies, 'text = "done"')))
        settings = {"model": f"cassette:{tape}"} | wishes.pop("settings", {})
        env = {"HOME": str(self.root), "PANPAN_HOME": str(self.root / "home")} | dict(self.env)
        opened = open_session(
            self.root, overrides=settings, env=env, warn=self.warnings.append, network=network and network.web, **wishes
        )
        async with opened as session, aclosing(session.submit("go")) as events:
            self.offered = {tool.name for tool in session.conversation.tools}
            return [event async for event in events]


async def test_search_is_asked_about_made_and_shown_without_its_key(tmp_path: Path) -> None:
    asked: list[bytes] = []
    certificate = made_certificate(tmp_path, "api.tavily.com")

    async def tavily(stream: ByteStream) -> None:
        asked.append(await stream.receive())
        content = json.dumps(ANSWER).encode()
        await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content) + content)

    async with serving(tavily, certificate=certificate) as port:
        network = Network(names={"api.tavily.com": [PUBLIC]}, ports={(PUBLIC, 443): port}, trusted=certificate)
        place = Place(tmp_path, {"TAVILY_API_KEY": KEY})
        events = await place.events_of(SEARCH, network=network, ask=yes())
    result = next(event for event in events if isinstance(event, ToolResultMessage))

    assert "WebSearch" in place.offered
    assert KEY.encode() in asked[0]
    assert "https://docs.example.org/" in result.text
    assert KEY not in repr(events)
    assert "WebSearch" in place.logs
    assert KEY not in place.logs


async def test_search_that_is_denied_is_not_made(tmp_path: Path) -> None:
    network = Network(names={"api.tavily.com": [PUBLIC]})
    events = await Place(tmp_path, {"TAVILY_API_KEY": KEY}).events_of(SEARCH, network=network)
    result = next(event for event in events if isinstance(event, ToolResultMessage))

    assert result.is_error
    assert network.asked == []


async def test_rule_lets_searches_run_unasked(tmp_path: Path) -> None:
    network = Network(names={})
    place = Place(tmp_path, {"TAVILY_API_KEY": KEY})
    await place.events_of(SEARCH, network=network, settings={"permission.allow": ["WebSearch"]})

    assert network.asked == ["api.tavily.com"]


@pytest.mark.parametrize(
    ("settings", "warnings"),
    [({}, 0), ({"web.search": "off"}, 0), ({"web.search": "brave"}, 1), ({"web.search": "searxng"}, 1)],
)
async def test_search_is_not_offered_without_an_engine(settings: dict[str, Any], warnings: int, tmp_path: Path) -> None:
    place = Place(tmp_path)
    await place.events_of(settings=settings)

    assert "WebSearch" not in place.offered
    assert len([warning for warning in place.warnings if "WebSearch" in warning]) == warnings
