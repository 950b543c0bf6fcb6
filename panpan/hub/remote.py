"""A session that is open in another process, as a client of it sees it."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import anyio
from anyio import BrokenResourceError, ClosedResourceError, EndOfStream, create_task_group
from anyio.abc import SocketStream

from panpan.core.event_channel import EventChannel
from panpan.errors import ConfigError, PanpanError, unwrap_single_exception
from panpan.hub.events import Delivery, QuestionAsked, Status
from panpan.hub.feed import Numbered
from panpan.hub.questions import Answer
from panpan.hub.sharing import socket_of
from panpan.hub.wire import (
    MAX_LINE_BYTES,
    Line,
    WireError,
    answer_as_json,
    event_from_json,
    from_json,
    line_of,
    parse_line,
    too_long,
)
from panpan.session.session import SessionInfo
from panpan.system.processes.private_socket import connect_privately
from panpan.system.text.lines import LineSplitter, LineTooLongError
from panpan.types.dataclass import dataclass
from panpan.types.messages import Message

REQUEST_S = 30.0
"""Seconds that the other process has for a response."""
_CHUNK = 65_536
_EVENTS_AHEAD = 1_000
"""Events that are read ahead of the client; then the other process keeps them."""


class SessionLeftError(PanpanError):
    """The other process has closed the session, or has ended."""


class NotSharedError(ConfigError):
    """No process shares the session."""


@dataclass(frozen=True, slots=True)
class Joined:
    """The session as it was when the client joined it."""

    client: str
    """Name of the client in events."""
    info: SessionInfo
    status: Status
    messages: Sequence[Message]
    """Messages that no later event carries."""
    commands: Sequence[str]
    """Names of its slash commands."""
    last: int
    """Number of the last event before the client joined."""
    questions: Sequence[QuestionAsked]
    """Questions that were open then; events until `last` also tell those that were not any more."""


class RemoteSession:
    """Sends requests to the process that has the session, and gets its events.

    Args:
        stream: The connection.
    """

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._ids = count(1)
        self._waiting: dict[int, EventChannel[Line]] = {}
        self._events = EventChannel[Numbered](_EVENTS_AHEAD)
        self._is_over = False
        self.reason = ""
        """Reason for the end of the connection; empty if the other process closed it without a word."""
        self._sending = anyio.Lock()

    async def join(self, client: str, *, answers: bool) -> Joined:
        """Begin to read the session.

        Raises:
            PanpanError: It cannot be joined.
        """
        told = await self._request("session.initialize", client=client, answers=answers)
        try:
            return Joined(
                str(told["client"]),
                from_json(SessionInfo, told["session"]),
                from_json(Status, told["status"]),
                from_json(Sequence[Message], told["messages"]),
                from_json(Sequence[str], told["commands"]),
                int(told["last"]),
                [event for one in told["questions"] if isinstance(event := event_from_json(one), QuestionAsked)],
            )
        except (KeyError, TypeError) as error:
            raise WireError(f"the session answered without {error}; is it of another version of panpan?") from error

    async def take(self) -> Sequence[Numbered]:
        """Return the events that have come, waiting for the first; nothing when the session is over."""
        return await self._events.take()

    async def send(self, text: str, delivery: Delivery) -> None:
        """Send a prompt, which comes back if the turn before it is stopped.

        Raises:
            PanpanError: It cannot be sent.
        """
        params = {"content": text, "delivery": delivery, "returned": True}
        await self._request("session.send", None, **params)  # given up, it could still run, and then run twice

    async def answer(self, number: int, answer: Answer) -> bool:
        """Answer a question; return False if another answer counts."""
        told = await self._request("session.answer", id=number, answer=answer_as_json(answer))
        return bool(told.get("counts"))

    async def interrupt(self) -> bool:
        """Stop the running turn; return True if there was one that was not stopped before."""
        return bool((await self._request("session.cancel")).get("cancelled"))

    async def take_back(self) -> str | None:
        """Take back the newest prompt of this client that waits; None if none does."""
        text = (await self._request("session.takeBack")).get("text")
        return None if text is None else str(text)

    async def retry_now(self) -> None:
        """End the pause before the model is asked again."""
        await self._request("session.retryNow")

    async def change(self, **changes: str) -> Status:
        """Change the `mode`, the `model` or the `title`, and return the new state.

        Raises:
            PanpanError: It cannot be changed.
        """
        status: Status = from_json(Status, await self._request("session.change", **changes))
        return status

    async def _request(self, method: str, limit_s: float | None = REQUEST_S, /, **params: object) -> Line:
        """Send a request, and return the result; without a limit, the end of the connection ends it.

        Raises:
            PanpanError: The other process refuses it, does not answer, or has ended.
        """
        if self._is_over:
            raise self._left()
        number = next(self._ids)
        response = self._waiting[number] = EventChannel[Line](1)
        try:
            with anyio.fail_after(limit_s):
                await self._send_line(line_of(type="request", id=number, method=method, params=params))
                taken = await response.take()
        except TimeoutError as error:
            raise PanpanError(f"the panpan that has the session did not answer within {REQUEST_S:.0f} s") from error
        except (BrokenResourceError, ClosedResourceError) as error:
            raise self._left() from error
        finally:
            del self._waiting[number]
        if not taken:
            raise self._left()
        if (refused := taken[0].get("error")) is not None:
            raise PanpanError(str(refused))
        result = taken[0].get("result")
        return result if isinstance(result, dict) else {}

    def _left(self) -> SessionLeftError:
        return SessionLeftError(self.reason or "the session is not open any more")

    async def _send_line(self, line: bytes) -> None:
        """Send a line whole, also where its caller is cancelled."""
        async with self._sending:
            with anyio.move_on_after(REQUEST_S, shield=True) as scope:
                await self._stream.send(line)
            if scope.cancelled_caught:  # a line that is there in part would spoil the next one
                self.reason = f"the panpan that has the session took nothing for {REQUEST_S:.0f} s"
                await self._stream.aclose()

    async def read(self) -> None:
        """Read what the other process sends, until it closes the connection."""
        lines = LineSplitter(MAX_LINE_BYTES)
        try:
            while True:
                for line in lines.feed(await self._stream.receive(_CHUNK)):
                    await self._take(parse_line(line))
        except (EndOfStream, ClosedResourceError, BrokenResourceError):
            pass
        except LineTooLongError:
            self.reason = str(too_long(MAX_LINE_BYTES))
        except PanpanError as error:
            self.reason = str(error)
        finally:
            self._is_over = True
            self._events.close()
            for response in self._waiting.values():
                response.close()

    async def _take(self, line: Line) -> None:
        match line.get("type"):
            case "event":
                await self._events.send(Numbered(int(line.get("id", 0)), event_from_json(line)))
            case "response" if line.get("id") == "" and "error" in line:  # of no request: it closes the connection
                raise WireError(str(line["error"]))
            case "response":
                waiting: Any = self._waiting.get(line.get("id", 0))
                if waiting is not None:
                    await waiting.send(line)
            case _:
                pass  # of a later version


def is_shared(folder: Path, session_id: str) -> bool:
    """Return True if a process of the user shares a session.

    Args:
        folder: Folder of the sockets.
        session_id: Id of the session.
    """
    try:
        connect_privately(socket_of(folder, session_id)).close()
    except (OSError, ConfigError):
        return False
    return True


@asynccontextmanager
async def joined(folder: Path, session_id: str) -> AsyncGenerator[RemoteSession, None]:
    """Connect to the process that has a session.

    Args:
        folder: Folder of the sockets.
        session_id: Id of the session.

    Raises:
        NotSharedError: No process shares it.
        ConfigError: The process may be another user's.
    """
    try:
        stream = await SocketStream.from_socket(connect_privately(socket_of(folder, session_id)))
    except OSError as error:
        told = f"no panpan shares the session {session_id}; open it with panpan -r {session_id}"
        raise NotSharedError(told) from error
    with unwrap_single_exception():
        async with stream, create_task_group() as tasks:
            remote = RemoteSession(stream)
            tasks.start_soon(remote.read)
            yield remote
            tasks.cancel_scope.cancel("the client leaves")
