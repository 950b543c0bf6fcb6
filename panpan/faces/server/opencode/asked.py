"""A request of an SDK's client, and the operations that it may use."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict
from starlette.requests import Request

from panpan.errors import ToolError
from panpan.faces.server.opencode.ids import own_id
from panpan.faces.server.routes import SERVER_TABLE, Verb, hub_for
from panpan.hub.connection import SESSION_TABLE
from panpan.hub.hub import Hub
from panpan.hub.open_sessions import OpenSessions
from panpan.hub.operations.table import Caller, NotFoundError
from panpan.hub.wire import WireError, from_json
from panpan.types.dataclass import dataclass

BodyT = TypeVar("BodyT", bound="Body")


class Body(BaseModel):
    """Parameters of a request, as far as they matter here; other fields are let pass."""

    model_config = ConfigDict(frozen=True, extra="ignore")


@dataclass(frozen=True, slots=True)
class Asked:
    """One request."""

    request: Request
    sessions: OpenSessions
    caller: Caller
    params: Mapping[str, Any]
    """Parameters of the address, the query and the body."""
    folder: str
    """Folder that the client works in, as it says it; empty for none."""

    def read(self, kind: type[BodyT]) -> BodyT:
        """Return the parameters as a type.

        Raises:
            WireError: They do not fit.
        """
        body: BodyT = from_json(kind, dict(self.params))
        return body

    def refuse(self, *names: str) -> None:
        """Refuse parameters that would change what is done, if they are set.

        Raises:
            WireError: One is.
        """
        if given := [name for name in names if self.params.get(name)]:
            raise WireError(f"{', '.join(given)} cannot be used with panpan; leave it out")

    @property
    def session(self) -> str:
        """Our id of the session in the address."""
        return own_id("ses", str(self.params["id"]))

    async def hub(self, operation: str) -> Hub:
        """Return the session in the address, for a client that may do an operation on it."""
        return await hub_for(self.sessions, self.caller, self.session, SESSION_TABLE.operations[operation])

    async def on_session(self, operation: str, **params: Any) -> Any:
        """Run an operation on the session in the address."""
        return await self.on(await self.hub(operation), operation, **params)

    async def on(self, hub: Hub, operation: str, **params: Any) -> Any:
        """Run an operation on a session."""
        return await SESSION_TABLE.call(operation, hub, self.caller, params, hub.session.info.id)

    async def on_server(self, operation: str, **params: Any) -> Any:
        """Run an operation on the server."""
        return await SERVER_TABLE.call(operation, self.sessions, self.caller, params, None)

    def may_read(self, session_id: str) -> bool:
        """Return True if the client may read a session."""
        return self.caller.only_session in (None, session_id)

    def is_wanted(self, session_id: str, hub: Hub) -> bool:
        """Return True if the client may read a session, and works in its folder or in none."""
        return self.may_read(session_id) and (not self.folder or self._wanted_folder() == str(hub.session.info.cwd))

    def newest(self) -> Hub:
        """Return the open session that was used last.

        Raises:
            NotFoundError: None is open that the client may read, in its folder.
        """
        hubs = [hub for session_id, hub in self.sessions.hubs.items() if self.is_wanted(session_id, hub)]
        if not hubs:
            raise NotFoundError("no session is open here; create one first")
        return max(hubs, key=_last_use)

    def place(self) -> str:
        """Return the folder that the client works in: the first that is served, if it names none.

        Raises:
            NotFoundError: It is not served.
        """
        return self._wanted_folder() or str(self.sessions.place.roots[0])

    def _wanted_folder(self) -> str:
        if not self.folder:
            return ""
        try:
            return str(self.sessions.place.folder(self.folder))
        except ToolError as error:
            raise NotFoundError(str(error)) from error


def _last_use(hub: Hub) -> str:
    messages = hub.session.conversation.messages
    return max(messages[-1].uuid if messages else "", hub.epoch)


Run: TypeAlias = Callable[[Asked], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Offered:
    """An address of the SDK that works."""

    verb: Verb
    path: str
    run: Run
    """Answers the request with JSON; None for an empty response. Its docstring says what it does."""
    call: str
    """Function of the SDK's clients, such as `session.create`."""

    @property
    def summary(self) -> str:
        """First line of its description."""
        return (self.run.__doc__ or "").strip().partition("\n")[0].rstrip(".")
