"""`/event`: the events of all sessions that a client may see, as the SDK reads them."""

import json
from collections.abc import Callable
from itertools import count
from time import time

from panpan.faces.server.opencode.events import SessionEvents
from panpan.faces.server.opencode.ids import wire_id
from panpan.faces.server.opencode.shapes import Json, session_of
from panpan.hub.feed import Numbered
from panpan.hub.hub import Hub


class ToldEvents:
    """Writes events for one client of the SDK; implements `Telling`.

    Args:
        is_wanted: Returns True if the client wants, and may see, the events of a session.
    """

    def __init__(self, is_wanted: Callable[[str, Hub], bool]) -> None:
        self._is_wanted = is_wanted
        self._numbers = count(1)
        self._told: dict[str, Json] = {}
        """Sessions that the client knows, as they were when it learned of them."""

    def first(self) -> bytes:
        return self._written("server.connected", {})

    def opened(self, session_id: str, hub: Hub, *, is_new: bool) -> tuple[bytes, Callable[[Numbered], bytes]]:
        if not self._is_wanted(session_id, hub):
            return b"", lambda _: b""
        info = self._told[session_id] = session_of(hub)
        translated = SessionEvents(hub)

        def write(one: Numbered) -> bytes:
            return b"".join(self._written(*event) for event in translated.follow(one.event))

        begins = is_new and not hub.session.conversation.messages
        told = {"sessionID": info["id"], "info": info}
        return self._written("session.created", told) if begins else b"", write

    def closed(self, session_id: str) -> bytes:
        info = self._told.pop(session_id, None)
        if info is None:
            return b""
        return self._written("session.deleted", {"sessionID": wire_id("ses", session_id), "info": info})

    def _written(self, name: str, properties: Json) -> bytes:
        number = f"evt_{round(time() * 1000):012x}{next(self._numbers):012x}"
        event: Json = {"id": number, "type": name, "properties": properties}
        return (
            f"data: {json.dumps(event, separators=(',', ':'))}\n\n".encode()
        )  # the SDK splits at this and no other line break
