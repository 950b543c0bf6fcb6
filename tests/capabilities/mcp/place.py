"""A project, a home, and the toy server in its settings."""

import json
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path
from typing import Any

from panpan.api import open_session
from panpan.session.session import Session
from panpan.types.events import Event
from panpan.types.messages import ToolResultMessage
from tests.fakes import mcp_server

Use = tuple[str, dict[str, Any]]


class Place:
    """A project and a home."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "project"
        (self.root / ".git").mkdir(parents=True)
        self.home = folder / "home"
        self.home.mkdir(mode=0o700)
        self.log = folder / "log"
        self.env = {"HOME": str(folder), "PANPAN_HOME": str(self.home), "PATH": "/usr/bin:/bin"}
        self.warnings: list[str] = []
        self.set_state()

    def set_state(self, **state: Any) -> None:
        """Say how the toy server is from its next start on, in one step: it may read meanwhile."""
        (self.folder / "state.new").write_text(json.dumps(state))
        (self.folder / "state.new").replace(self.folder / "state.json")

    @property
    def entry(self) -> dict[str, Any]:
        """The toy server, as in `.mcp.json`."""
        script = Path(mcp_server.__file__)
        state = self.folder / "state.json"
        return {"command": sys.executable, "args": ["-I", "-S", str(script), str(state), str(self.log)]}

    def configure(self, **keys: Any) -> None:
        """Write the toy server into the user's settings."""
        values = {**self.entry, **keys}
        lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
        (self.home / "settings.toml").write_text("\n".join(["[mcp.toy]", *lines]))

    def tape(self, *uses: Use | str) -> str:
        """Write a tape of calls, one a reply, and of words that end a turn; return its name as a model."""
        replies = [
            f'[[reply]]\ntext = "{use}"'
            if isinstance(use, str)
            else f'[[reply]]\ntool_use = [{{ name = "{use[0]}", input = {_toml(use[1])} }}]'
            for use in uses
        ]
        path = self.folder / "tape.toml"
        path.write_text("\n".join(["version = 1", *replies, '[[reply]]\ntext = "done"']))
        return f"cassette:{path}"

    def opening(self, *uses: Use | str, **options: Any) -> AbstractAsyncContextManager[Session]:
        """Return a session whose model makes these calls."""
        given = options.pop("overrides", {})
        overrides = {"model": self.tape(*uses), "sandbox.mode": "off", **given}
        options = {"auto_approve": True, "warn": self.warnings.append, "env": self.env, **options}
        return open_session(self.root, overrides=overrides, **options)

    async def events(self, *uses: Use, **options: Any) -> Sequence[Event]:
        """Return the events of a turn with these calls."""
        async with self.opening(*uses, **options) as session:
            return await events_of(session)

    async def results(self, *uses: Use, **options: Any) -> Sequence[str]:
        """Return the results of these calls."""
        return results_in(await self.events(*uses, **options))

    @property
    def lines(self) -> Sequence[str]:
        """Lines of the toy server's log."""
        return self.log.read_text().splitlines() if self.log.exists() else []

    @property
    def starts(self) -> int:
        """Times that the toy server was started."""
        return sum(line.startswith("start") for line in self.lines)


async def events_of(session: Session, prompt: str = "go") -> Sequence[Event]:
    """Return the events of a turn."""
    async with aclosing(session.submit(prompt)) as events:
        return [event async for event in events]


def results_in(events: Sequence[Event]) -> Sequence[str]:
    """Return the texts of results."""
    return [event.result.text for event in events if isinstance(event, ToolResultMessage)]


def search(query: str = "echo") -> Use:
    """Return a search for tools."""
    return "ToolSearch", {"query": query}


def call(tool: str = "echo", **arguments: Any) -> Use:
    """Return a call of a tool of the toy server."""
    return "CallTool", {"name": f"mcp__toy__{tool}", "arguments": arguments}


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)
