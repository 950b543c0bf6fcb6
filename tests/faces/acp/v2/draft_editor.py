"""An editor for tests that speaks version 2: what it says and hears is held against the schema of the draft."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

from panpan.faces.acp.v2.server import DraftServer
from panpan.session.capability import Capability
from tests.capabilities.mcp.place import Place
from tests.faces.acp.editor import AgentError, Answer, Editor, Schema, options_of, served, yes

INFO = {"name": "tests", "version": "1"}
_OPEN = ("other", "unknown")
"""Titles of the variants that stand for values of later versions, which panpan has no reason to send."""


def _closed(value: Any) -> Any:
    """Return a part of the schema without its open variants."""
    if isinstance(value, dict):
        return {name: _closed(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_closed(one) for one in value if not (isinstance(one, dict) and one.get("title") in _OPEN)]
    return value


SECOND = Schema(_closed(json.loads((Path(__file__).parent / "schema.json").read_text()))["$defs"])
"""Version 2, with the values that it knows."""


class DraftEditor(Editor):
    """The client side of a connection, in version 2."""

    schema: ClassVar[Schema] = SECOND

    async def begin(self, method: str, **params: Any) -> int:
        self.problems += self.schema.problems_of({"jsonrpc": "2.0", "id": 0, "method": method, "params": params}, {})
        return await super().begin(method, **params)

    async def notify(self, method: str, **params: Any) -> None:
        self.problems += self.schema.problems_of({"jsonrpc": "2.0", "method": method, "params": params}, {})
        await super().notify(method, **params)

    async def refused(self, method: str, params: Any) -> AgentError:
        """Send a request that is wrong, and return the error."""
        try:
            result = await self.reply(await self.begin_with(method, params))
        except AgentError as error:
            return error
        raise AssertionError(f"{method} has a result: {result}")

    async def initialize(self, **capabilities: Any) -> Any:
        return await self.request("initialize", protocolVersion=2, info=INFO, capabilities=capabilities)

    async def new(self, folder: Path, **params: Any) -> str:
        result = await self.request("session/new", cwd=str(folder), **params)
        return str(result["sessionId"])

    async def send_prompt(self, session: str, text: str = "go") -> int:
        """Send words, and return the id of the request."""
        return await self.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    async def prompt(self, session: str, text: str = "go") -> str:
        """Send words, and return why the session was idle then."""
        before = len(self.states(session))
        await self.reply(await self.send_prompt(session, text))
        return str((await self.idle(session, before))["stopReason"])

    async def idle(self, session: str, before: int = 0) -> Mapping[str, Any]:
        """Return the first idle state behind a number of states."""
        await self.until(lambda: [one for one in self.states(session)[before:] if one["state"] == "idle"])
        return next(one for one in self.states(session)[before:] if one["state"] == "idle")

    def states(self, session: str = "") -> Sequence[Mapping[str, Any]]:
        """Return the states of a session."""
        return self.updates("state_update", session)

    @property
    def order(self) -> Sequence[str]:
        """The messages in short; states by their names."""
        return [
            one["params"]["update"].get("state", one["params"]["update"]["sessionUpdate"])
            if one.get("method") == "session/update"
            else one.get("method") or f"reply {one['id']}"
            for one in self.messages
        ]


@asynccontextmanager
async def drafting(
    place: Place,
    *uses: Any,
    answer: Answer = yes,
    client: Mapping[str, Any] | None = None,
    capabilities: Sequence[type[Capability]] = (),
    **overrides: Any,
) -> AsyncGenerator[DraftEditor, None]:
    """Serve an editor that speaks version 2, as `editing` does with version 1."""
    options = options_of(place, uses, capabilities, overrides)
    async with served(DraftServer, DraftEditor, place, options, answer) as editor:
        await editor.initialize(**(client or {}))
        yield editor
