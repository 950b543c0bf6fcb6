"""Operations on a server: its sessions."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from panpan.hub.open_sessions import OpenSessions, SessionPage
from panpan.hub.operations.session import SessionState, require_usual, state_of
from panpan.hub.operations.table import Caller, NoParams, Operation, Params
from panpan.types.dataclass import dataclass
from panpan.types.permission import PermissionMode
from panpan.version import __version__


@dataclass(frozen=True, slots=True)
class Health:
    """A server that works."""

    version: str
    open_sessions: int


async def _health(sessions: OpenSessions, caller: Caller, params: NoParams) -> Health:
    """Return the version, and the number of open sessions."""
    return Health(__version__, len(sessions.hubs))


async def _projects(sessions: OpenSessions, caller: Caller, params: NoParams) -> Sequence[str]:
    """Return the folders in which sessions may work."""
    return list(map(str, sessions.place.roots))


class PageParams(Params):
    """A page of the list."""

    cursor: str = Field(default="", max_length=20)
    """`next` of the page before; empty for the first."""


async def _list(sessions: OpenSessions, caller: Caller, params: PageParams) -> SessionPage:
    """Return a page of the sessions, the newest first."""
    return await sessions.page(params.cursor)


class OpenParams(Params):
    """A new session."""

    folder: str = Field(default=".", max_length=4_096)
    """Folder that it works in, below one that is served."""
    model: str | None = Field(default=None, min_length=1, max_length=300)
    mode: PermissionMode | None = None
    title: str | None = Field(default=None, pattern=r"\S", max_length=300)


async def _open(sessions: OpenSessions, caller: Caller, params: OpenParams) -> SessionState:
    """Open a new session."""
    require_usual(params.mode, caller)
    overrides: Mapping[str, Any] = {
        **({} if params.model is None else {"model": params.model}),
        **({} if params.mode is None else {"permission.mode": params.mode}),
    }
    hub = await sessions.open(params.folder, overrides=overrides)
    if params.title is not None:
        hub.session.rename(params.title)
    return state_of(hub)


class SessionParams(Params):
    """A session."""

    session: str = Field(min_length=1, max_length=100)
    """Its id."""


async def _fork(sessions: OpenSessions, caller: Caller, params: SessionParams) -> SessionState:
    """Open a copy of a session, which stays as it is."""
    source = await sessions.find(params.session)
    folder = str(source.session.info.cwd)
    if not source.session.conversation.messages:
        return state_of(await sessions.open(folder))
    return state_of(await sessions.open(folder, resume=params.session, fork=True))


@dataclass(frozen=True, slots=True)
class Closed:
    """A session that is closed."""

    session: str


async def _close(sessions: OpenSessions, caller: Caller, params: SessionParams) -> Closed:
    """Close a session; its conversation is kept."""
    await sessions.close(params.session)
    return Closed(params.session)


SERVER_OPERATIONS: Sequence[Operation[OpenSessions]] = (
    Operation("health.get", NoParams, Health, _health),
    Operation("projects.list", NoParams, Sequence[str], _projects),
    Operation("sessions.list", PageParams, SessionPage, _list),
    Operation("sessions.open", OpenParams, SessionState, _open, "write"),
    Operation("sessions.fork", SessionParams, SessionState, _fork, "write"),
    Operation("sessions.close", SessionParams, Closed, _close, "write"),
)
"""Operations on a server."""
