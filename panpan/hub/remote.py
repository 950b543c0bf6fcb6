"""A session that is open in another process, as a client of it sees it."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from anyio import create_task_group
from anyio.abc import SocketStream

from panpan.core.event_channel import EventChannel
from panpan.errors import ConfigError, PanpanError, unwrap_single_exception
from panpan.hub.bus import REQUEST_S, BusClosedError, MessageBus, Transport
from panpan.hub.client_lines import ClientLines, LineMemory
from panpan.hub.events import Delivery, QuestionAsked, Status
from panpan.hub.feed import Numbered
from panpan.hub.questions import Answer
from panpan.hub.sharing import socket_of
from panpan.hub.wire import Line, WireError, answer_as_json, event_from_json, from_json, question_from_json
from panpan.session.session import SessionInfo
from panpan.system.processes.private_socket import connect_privately
from panpan.types.dataclass import dataclass
from panpan.types.messages import Message

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
        transport: The way to that process.
    """

    def __init__(self, transport: Transport) -> None:
        self._bus = MessageBus(transport, ClientLines(LineMemory()), whole_s=REQUEST_S)
        self._events = EventChannel[Numbered](_EVENTS_AHEAD)

    @property
    def reason(self) -> str:
        """Reason for the end of the connection; empty if the other process closed it without a word."""
        return self._bus.reason

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
                [QuestionAsked(int(one["id"]), question_from_json(one)) for one in told["questions"]],
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
        params = {"parts": [{"type": "text", "text": text}], "delivery": delivery, "returned": True}
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
        try:
            result = await self._bus.request(method, limit_s, **params)
        except BusClosedError as error:
            raise SessionLeftError(self.reason or "the session is not open any more") from error
        return result if isinstance(result, dict) else {}

    async def read(self) -> None:
        """Read what the other process sends, until it closes the connection."""
        try:
            with self._bus.on_event(self._take):
                await self._bus.run()
        finally:
            self._events.close()

    async def _take(self, line: Line) -> None:
        number = line.get("id")
        await self._events.send(Numbered(number if isinstance(number, int) else 0, event_from_json(line)))


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
