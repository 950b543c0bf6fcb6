"""Shares an open session with other processes of the user, over a socket in the panpan home.

The rule: a client costs the session nothing. One that does not read is not waited for, and one that sends nonsense is
told so and loses its connection at most.
"""

import json
import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import anyio
from anyio import BrokenResourceError, ClosedResourceError, EndOfStream, create_task_group
from anyio.abc import SocketAttribute, SocketListener, SocketStream, TaskGroup
from pydantic import BaseModel, ConfigDict, Field

from panpan.errors import ConfigError, PanpanError, unwrap_single_exception
from panpan.hub.client_lines import ClientLines, LineMemory
from panpan.hub.events import Delivery, PromptsReturned, QuestionAsked, Status
from panpan.hub.feed import Reader
from panpan.hub.hub import Hub
from panpan.hub.wire import (
    MAX_LINE_BYTES,
    Line,
    WireError,
    answer_from_json,
    as_json,
    event_as_json,
    from_json,
    line_of,
    parse_line,
    require_usable,
)
from panpan.session.session import SessionInfo
from panpan.system.processes.private_socket import listen_privately, require_own_user
from panpan.types.content import TextBlock, UserContent
from panpan.types.messages import Message, UserMessage
from panpan.types.permission import PermissionMode
from panpan.version import __version__

log = logging.getLogger(__name__)

MAX_CLIENTS = 128
"""Most clients at a time; further ones are refused."""
MAX_PAST_BYTES = 8_000_000
"""Most bytes of earlier messages that a new client gets; the log has all of them."""
_CHUNK = 65_536
_GONE = (EndOfStream, ClosedResourceError, BrokenResourceError)
"""Errors that say that the client has left."""
MAX_PROMPTS_AT_ONCE = 100
"""Most prompts of a client that may wait to be prepared; further ones are refused."""
_INTERRUPTED = "the prompt was interrupted before it was sent"
_FAREWELL_S = 1.0
"""Seconds in which a client takes back its prompts when the session is closed."""
_REST_S = 1.0
"""Seconds until connections are accepted again after one could not be."""


class _Params(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class InitializeParams(_Params):
    """Begins to read a session."""

    client: str = Field(min_length=1, max_length=100)
    """Name of the client, for its prompts and answers; the connection makes it unique."""
    answers: bool = False
    """True if it answers questions."""
    epoch: str = ""
    """Epoch that it read before; empty for none."""
    after: int = Field(default=0, ge=0)
    """Number of the last event that it has of that epoch."""


class SendParams(_Params):
    """Sends a prompt."""

    content: str | tuple[UserContent, ...]
    delivery: Delivery = "queue"
    returned: bool = False
    """True if it goes back to the client when the turn before it is stopped."""


class AnswerParams(_Params):
    """Answers a question."""

    id: int
    answer: Mapping[str, Any]


class ChangeParams(_Params):
    """Changes the session."""

    mode: PermissionMode | None = None
    model: str | None = None
    title: str | None = None


class _NoParams(_Params):
    pass


class Connection:
    """Serves one client.

    Args:
        hub: The hub of the session.
        stream: The connection.
        number: Number of the connection.
        memory: Memory for lines of all clients.
    """

    def __init__(self, hub: Hub, stream: SocketStream, number: int, memory: LineMemory) -> None:
        self._hub = hub
        self._stream = stream
        self._number = number
        self._memory = memory
        self._client = ""
        self._reader: Reader | None = None
        self._sending = anyio.Lock()
        self._is_in_line = False
        """True if a line was begun and may not be whole."""
        self._prompts: deque[Line] = deque()
        """Requests with prompts that are not fulfilled yet, oldest first."""
        self._has_prompts = anyio.Event()
        self._preparing: anyio.CancelScope | None = None
        """Scope of the prompt that is being prepared."""
        self._is_gone = False
        self._answers = ExitStack()
        self._methods: Mapping[str, tuple[type[_Params], Callable[[Any], Awaitable[object]]]] = {
            "session.initialize": (InitializeParams, self._initialize),
            "session.send": (SendParams, self._send),
            "session.cancel": (_NoParams, self._cancel),
            "session.takeBack": (_NoParams, self._take_back),
            "session.answer": (AnswerParams, self._answer),
            "session.change": (ChangeParams, self._change),
            "session.retryNow": (_NoParams, self._retry_now),
            "status.get": (_NoParams, self._status),
        }

    async def serve(self) -> None:
        """Serve the client until it leaves."""
        try:
            with unwrap_single_exception():
                async with create_task_group() as tasks:
                    tasks.start_soon(self._take_prompts)
                    with self._answers:
                        await self._exchange()
                    self._is_gone = True
                    self._has_prompts.set()
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(_FAREWELL_S, shield=True), suppress(*_GONE):
                await self._return_prompts()
            raise
        finally:
            if self._client:
                self._hub.left(self._client)

    async def _exchange(self) -> None:
        try:
            async with create_task_group() as tasks:
                with self._memory.lines() as lines:
                    await self._read(lines, tasks)
                tasks.cancel_scope.cancel("the client has left")
        except* _GONE:
            pass  # reading and sending may find out at the same time

    async def _return_prompts(self) -> None:
        """Return the prompts that no turn has received, since the session is closed."""
        if self._client and not self._is_in_line and (prompts := self._hub.withdraw(self._client)):
            event = event_as_json(PromptsReturned(prompts, self._client))
            await self._send_line(line_of(type="event", id=self._hub.feed.last, **event))

    async def _read(self, lines: ClientLines, tasks: TaskGroup) -> None:
        is_told = False
        while True:
            if self._reader is not None and not is_told:  # the response with the messages went first
                is_told = True
                tasks.start_soon(self._tell)
            data = await self._stream.receive(_CHUNK)
            try:
                for line in lines.feed(data):
                    await self._handle(line)
            except WireError as error:
                await self._send_line(line_of(type="response", id="", error=str(error)))
                return

    async def _handle(self, line: bytes) -> None:
        try:
            request = parse_line(line)
        except PanpanError as error:
            await self._send_line(line_of(type="response", id="", error=str(error)))
            return
        if request.get("method") != "session.send":
            await self._fulfil(request)
        elif len(self._prompts) < MAX_PROMPTS_AT_ONCE:
            self._prompts.append(request)
            self._has_prompts.set()
        else:
            told = f"{MAX_PROMPTS_AT_ONCE} prompts are being sent already; wait for their responses"
            await self._send_line(line_of(type="response", id=request.get("id", ""), error=told))

    async def _take_prompts(self) -> None:
        """Fulfil requests with prompts, in order and beside the others, since preparing a prompt may take long."""
        while self._prompts or not self._is_gone:
            if not self._prompts:
                await self._has_prompts.wait()
                self._has_prompts = anyio.Event()
                continue
            with suppress(*_GONE):  # the client has left, and what it said is kept
                await self._fulfil(self._prompts.popleft())

    async def _fulfil(self, request: Line) -> None:
        try:
            outcome: Line = {"result": await self._result_of(request)}
        except PanpanError as error:
            outcome = {"error": str(error)}
        await self._send_line(line_of(type="response", id=request.get("id", ""), **outcome))

    async def _result_of(self, request: Line) -> object:
        if request.get("type") != "request":
            raise WireError(f"the type {request.get('type')!r} is unknown; send a request")
        method = request.get("method")
        known = self._methods.get(method) if isinstance(method, str) else None
        if known is None:
            raise WireError(f"there is no method {method!r}; these are: {', '.join(self._methods)}")
        if not self._client and method != "session.initialize":
            raise WireError("send session.initialize first")
        kind, run = known
        return await run(from_json(kind, request.get("params") or {}))

    async def _initialize(self, params: InitializeParams) -> object:
        if self._client:
            raise WireError("session.initialize was sent before")
        hub, session = self._hub, self._hub.session
        self._client = f"{params.client} {self._number}"
        hub.joined(self._client)  # before it reads, since it knows that it is there
        goes_on = params.epoch == hub.epoch and params.after <= hub.feed.last
        messages, number = ((), params.after) if goes_on else hub.past()
        self._reader = hub.read(number)
        if params.answers:
            self._answers.enter_context(hub.questions.answered_by(self._client))
        return {
            "client": self._client,
            "version": __version__,
            "epoch": hub.epoch,
            "number": number,
            "session": as_json(SessionInfo, session.info),
            "status": as_json(Status, hub.status),
            "messages": None if goes_on else _newest(messages),
            "last": hub.feed.last,
            "questions": [event_as_json(QuestionAsked(*one)) for one in hub.questions.open.items()],
            "commands": list(session.commands.names),
        }

    async def _send(self, params: SendParams) -> object:
        content = (TextBlock(text=params.content),) if isinstance(params.content, str) else params.content
        require_usable(content)
        message = UserMessage(content=content)
        scope = self._preparing = anyio.CancelScope()
        try:
            with scope:
                await self._hub.submit(
                    message, delivery=params.delivery, client=self._client, is_returned=params.returned
                )
        finally:
            self._preparing = None
        if scope.cancelled_caught:
            raise WireError(_INTERRUPTED)
        return {"message": message.uuid}

    async def _cancel(self, params: _NoParams) -> object:
        """Stop the turn, and what this client sent before it that no turn could have."""
        is_preparing, unsent = self._preparing is not None, list(self._prompts)
        if self._preparing is not None:
            self._preparing.cancel("the client interrupted it")
        self._prompts.clear()
        for request in unsent:
            await self._send_line(line_of(type="response", id=request.get("id", ""), error=_INTERRUPTED))
        return {"cancelled": self._hub.interrupt() or is_preparing or bool(unsent)}

    async def _take_back(self, params: _NoParams) -> object:
        message = self._hub.take_back(self._client)
        return {"text": None if message is None else message.typed}

    async def _answer(self, params: AnswerParams) -> object:
        answer = answer_from_json(params.answer)
        return {"counts": self._hub.questions.answer(params.id, answer, self._client)}

    async def _change(self, params: ChangeParams) -> object:
        session = self._hub.session
        if params.mode is not None:
            session.set_permission_mode(params.mode)
        if params.model is not None:
            with self._hub.held():
                await session.use_model(params.model)
        if params.title is not None:
            session.rename(params.title)
        return await self._status(_NoParams())

    async def _retry_now(self, params: _NoParams) -> object:
        return {"retried": self._hub.session.retry_now()}

    async def _status(self, params: _NoParams) -> object:
        return as_json(Status, self._hub.status)

    async def _tell(self) -> None:
        """Send events for as long as the client takes them; what it does not take costs nothing."""
        assert self._reader is not None
        while True:
            for one in await self._reader.take():
                await self._send_line(line_of(type="event", id=one.number, **event_as_json(one.event)))

    async def _send_line(self, line: bytes) -> None:
        async with self._sending:
            self._is_in_line = True
            await self._stream.send(line)
            self._is_in_line = False


@asynccontextmanager
async def shared(
    hub: Hub, folder: Path, warn: Callable[[str], None], *, max_line_bytes: int = MAX_LINE_BYTES
) -> AsyncGenerator[None, None]:
    """Let other processes of the user join a session inside the block.

    Args:
        hub: The hub of the session.
        folder: Folder for the socket.
        warn: Gets a sentence if the session cannot be shared.
        max_line_bytes: Most bytes of a line of a client.
    """
    path = socket_of(folder, hub.session.info.id)
    try:
        listener = await SocketListener.from_socket(listen_privately(path))
    except (OSError, ConfigError) as error:
        warn(f"other terminals cannot join this session: {error}")
        yield
        return
    try:
        async with listener, create_task_group() as tasks:
            tasks.start_soon(_serve, hub, listener, LineMemory(max_line_bytes))
            yield
            tasks.cancel_scope.cancel("the session is closed")
    finally:
        path.unlink(missing_ok=True)


async def _serve(hub: Hub, listener: SocketListener, memory: LineMemory) -> None:
    numbers, here = count(1), set[int]()

    async def serve_one(stream: SocketStream) -> None:
        number = next(numbers)
        try:
            async with stream:
                require_own_user(stream.extra(SocketAttribute.raw_socket))
                if len(here) >= MAX_CLIENTS:
                    error = f"{MAX_CLIENTS} clients have joined the session already; close one of them"
                    await stream.send(line_of(type="response", id="", error=error))
                    return
                here.add(number)
                await Connection(hub, stream, number, memory).serve()
        except (BrokenResourceError, ClosedResourceError):
            pass  # a refused client that has left
        except ConfigError as error:
            hub.session.agent.warn(str(error))
        except Exception as error:  # a bug must not end the session of the others
            log.exception("a client of the session failed")
            hub.session.agent.warn(f"a client of the session was dropped after an unexpected {type(error).__name__}")
        finally:
            here.discard(number)

    async with create_task_group() as clients:
        while True:
            with suppress(BrokenResourceError):  # as where this process may open no further file
                await listener.serve(serve_one, clients)
            await anyio.sleep(_REST_S)


def _newest(messages: Sequence[Message]) -> Sequence[Line]:
    """Return the last messages that fit into `MAX_PAST_BYTES`."""
    left, newest = MAX_PAST_BYTES, list[Line]()
    for message in reversed(messages):
        line: Line = as_json(Message, message)
        if (left := left - len(json.dumps(line))) <= 0:
            break
        newest.append(line)
    return newest[::-1]


def socket_of(folder: Path, session_id: str) -> Path:
    """Return the socket of a session."""
    return folder / f"{session_id}.sock"
