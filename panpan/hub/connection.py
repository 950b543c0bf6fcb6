"""One client on the message bus: it begins to read a session, and asks for operations.

The rule: a client costs the session nothing. One that does not read is not waited for, and one that sends nonsense is
told so and loses its connection at most.
"""

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any, Protocol

import anyio
from anyio import create_task_group
from anyio.abc import TaskGroup
from pydantic import Field

from panpan.errors import PanpanError, unwrap_single_exception
from panpan.hub.bus import GONE, Lines, MessageBus, Transport
from panpan.hub.events import PromptsReturned
from panpan.hub.feed import Numbered, Reader
from panpan.hub.hub import Hub
from panpan.hub.operations.files import FILE_OPERATIONS
from panpan.hub.operations.questions import QUESTION_OPERATIONS
from panpan.hub.operations.session import SESSION_OPERATIONS, SessionState, StateParams, state_of
from panpan.hub.operations.table import Caller, Table
from panpan.hub.operations.tasks import TASK_OPERATIONS
from panpan.hub.wire import Line, WireError, as_json, event_as_json, from_json

SESSION_TABLE: Table[Hub] = Table((*SESSION_OPERATIONS, *QUESTION_OPERATIONS, *TASK_OPERATIONS, *FILE_OPERATIONS))
"""Operations on a session, on every way to it."""

MAX_RUNNING = 100
"""Most requests of a client that run at the same time, beside its prompts; further ones are refused."""
_FAREWELL_S = 1.0
"""Seconds in which a client takes back its prompts when the session is closed."""
_INITIALIZE, _SEND = "session.initialize", "session.send"


class InitializeParams(StateParams):
    """Begins to read a session."""

    client: str = Field(min_length=1, max_length=100)
    """Name of the client, for its prompts and answers; the connection makes it unique."""
    answers: bool = False
    """True if it answers questions."""
    session: str = Field(default="", max_length=100)
    """Id of the session; empty for the one that the connection is for."""


class Server(Protocol):
    """Sessions that a client may choose from."""

    @property
    def operations(self) -> Sequence[str]:
        """Names of the operations on the server."""
        ...

    async def call(self, name: str, caller: Caller, params: object) -> Any:
        """Run an operation on the server, and return its result as JSON; raise PanpanError if it cannot be done."""
        ...

    async def find(self, session_id: str, caller: Caller) -> Hub:
        """Return the hub of a session for reading; raise PanpanError if there is none, or the caller may not."""
        ...


class Connection:
    """Serves one client of a session.

    Args:
        transport: The way to the client.
        lines: Puts its lines together.
        caller: The client; its name is completed by the one that it gives.
        hub: The hub of the session that is meant; None if the client names one.
        server: Opens the session that the client names; None if there is but the given one.
    """

    def __init__(
        self,
        transport: Transport,
        lines: Lines,
        caller: Caller,
        hub: Hub | None = None,
        server: Server | None = None,
    ) -> None:
        self._server = server
        self._given = hub
        self._bus = MessageBus(transport, lines, self._take)
        self._caller = caller
        self._joined: Hub | None = None
        """Hub of the session that the client reads; None before it has begun."""
        self._number = 0
        """Number of the event to read on after."""
        self._answers = ExitStack()
        self._running = 0
        """Requests that run beside the others."""
        self._sends: TaskGroup
        self._others: TaskGroup

    async def serve(self) -> None:
        """Serve the client until it leaves."""
        try:
            with unwrap_single_exception(), suppress(*GONE):
                async with create_task_group() as self._sends:  # what the client has sent is kept when it has left
                    with self._answers:
                        async with create_task_group() as self._others:
                            await self._bus.run()
                            self._others.cancel_scope.cancel("the client has left")
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(_FAREWELL_S, shield=True), suppress(*GONE):
                await self._return_prompts()
            raise
        finally:
            if self._joined is not None:
                self._joined.left(self._caller.name)

    async def _return_prompts(self) -> None:
        """Return the prompts that no turn has received, since the session is closed."""
        hub = self._joined
        if hub is not None and not self._bus.is_in_line and (prompts := hub.withdraw(self._caller.name)):
            event = event_as_json(PromptsReturned(prompts, self._caller.name))
            await self._bus.emit(event["event"], event["data"], hub.feed.last)

    async def _take(self, request: Line) -> None:
        """Answer a request; prompts and waits beside the others, since they may take long."""
        method = request.get("method")
        if method == _INITIALIZE or self._joined is None:
            await self._answer(request)
        elif method == _SEND:
            self._sends.start_soon(self._answer, request)
        elif self._running >= MAX_RUNNING:
            refusal = f"{MAX_RUNNING} requests of yours run already; wait for their responses"
            await self._bus.respond(request.get("id", ""), error=refusal)
        else:
            self._running += 1
            self._others.start_soon(self._answer_beside, request)

    async def _answer_beside(self, request: Line) -> None:
        try:
            await self._answer(request)
        finally:
            self._running -= 1

    async def _answer(self, request: Line) -> None:
        try:
            outcome: Line = {"result": await self._result_of(request)}
        except PanpanError as error:
            outcome = {"error": str(error)}
        with suppress(*GONE):
            await self._bus.respond(request.get("id", ""), **outcome)
        if self._joined is not None and request.get("method") == _INITIALIZE and "result" in outcome:
            self._others.start_soon(self._tell, self._joined)  # the messages went first

    async def _result_of(self, request: Line) -> object:
        if request.get("type") != "request":
            raise WireError(f"the type {request.get('type')!r} is unknown; send a request")
        method, params, server = request.get("method"), request.get("params"), self._server
        if method == _INITIALIZE:
            return await self._initialize(from_json(InitializeParams, params or {}))
        if server is not None and isinstance(method, str) and method in server.operations:
            return await server.call(method, self._caller, params)
        if not isinstance(method, str) or method not in SESSION_TABLE:
            names = (*SESSION_TABLE.operations, *(() if server is None else server.operations))
            raise WireError(f"there is no method {method!r}; these are: {', '.join(names)}")
        if self._joined is None:
            raise WireError(f"send {_INITIALIZE} first")
        return await SESSION_TABLE.call(method, self._joined, self._caller, params, self._joined.session.info.id)

    async def _initialize(self, params: InitializeParams) -> object:
        if self._joined is not None:
            raise WireError(f"{_INITIALIZE} was sent before")
        hub = await self._hub_for(params.session)
        self._caller = replace(self._caller, name=f"{params.client} {self._caller.name}")
        self._joined = hub
        hub.joined(self._caller.name)  # before it reads, since it knows that it is there
        state = state_of(hub, epoch=params.epoch, after=params.after)
        self._number = state.number
        if params.answers and not self._caller.only_reads:
            self._answers.enter_context(hub.questions.answered_by(self._caller.name))
        return {"client": self._caller.name, **as_json(SessionState, state)}

    async def _hub_for(self, session_id: str) -> Hub:
        if self._given is not None and session_id in ("", self._given.session.info.id):
            return self._given
        if self._server is None:
            raise WireError("this connection is for another session")
        return await self._server.find(session_id, self._caller)

    async def _tell(self, hub: Hub) -> None:
        """Send events for as long as the client takes them; what it does not take costs nothing.

        Where the session ends before the connection, the client is told so, and loses the connection.
        """
        reader = hub.read(self._number)
        with suppress(*GONE):
            while events := await _taken(reader):
                for one in events:
                    event = event_as_json(one.event)
                    await self._bus.emit(event["event"], event["data"], one.number)
            await self._bus.respond("", error="the session is closed")
        self._others.cancel_scope.cancel("the session is closed")


async def _taken(reader: Reader) -> Sequence[Numbered]:
    """Return the events that have come, waiting for the first; nothing when the session is over."""
    try:
        return await reader.take()
    except anyio.EndOfStream:
        return ()
