"""Sessions of a server: those that are open, and those that are stored.

The rule: sessions share nothing but the process. One that cannot be opened, or fails, costs no other.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic, time
from typing import Any, Self
from uuid import UUID

import anyio
from anyio import AsyncContextManagerMixin, CancelScope, create_task_group, to_thread
from anyio.abc import TaskGroup, TaskStatus

from panpan.app import opened_session
from panpan.cli_kit.serving import ServedPlace
from panpan.config.locations import Locations
from panpan.core.background import Background
from panpan.errors import PanpanError, unwrap_single_exception
from panpan.hub.events import Status
from panpan.hub.hub import Hub, hosted
from panpan.hub.operations.table import BusyError, NotFoundError
from panpan.hub.sharing import shared
from panpan.session.frontend import Askers, Frontend, MakeCommands, SessionConfig, SessionOptions
from panpan.session.session import Session
from panpan.session.stored.store import logs_of_all_projects, newest_first, summary_of
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass

log = logging.getLogger(__name__)

MAX_SESSIONS = 32
"""Most sessions that are open at the same time."""
PAGE_SIZE = 50
"""Sessions of one page of the list."""
CLIENT = "server"
"""Name under which the server keeps questions open that nobody has seen yet."""
_REST_S = 10.0
"""Seconds after a request in which a session is not closed to make room."""
_CLOSE_S = 20.0
"""Seconds for closing a session; panpan's own limits for its parts are shorter."""


@dataclass(frozen=True, slots=True)
class ListedSession:
    """A session of the list."""

    id: str
    cwd: str
    title: str
    updated_at: str
    """Time of the last message, as in RFC 3339."""
    is_open: bool
    status: Status | None
    """State of an open session; None for a stored one."""


@dataclass(frozen=True, slots=True)
class SessionPage:
    """A page of the list."""

    sessions: Sequence[ListedSession]
    next: str
    """Cursor of the next page; empty for the last."""


class _Open:
    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.scope = CancelScope()
        self.closed = anyio.Event()
        self.used_at = monotonic()

    @property
    def is_unused(self) -> bool:
        """True if nothing runs or waits in it, and no client but the server has been there of late."""
        hub, tasks = self.hub, self.hub.session.find(Background)
        runs = hub.is_busy or hub.is_preparing or (tasks is not None and tasks.running)
        is_watched = hub.questions.clients > 1 or monotonic() - self.used_at < _REST_S
        return not (runs or hub.questions.open or is_watched)


class OpenSessions(AsyncContextManagerMixin):
    """Opens sessions in the folders that are served, and keeps them open. Enter it first.

    Args:
        place: Folders in which sessions may work, and the settings there.
        options: Options of all sessions.
        commands: Makes their slash commands.
        warn: Gets warnings for the person at the server, one line each.
    """

    def __init__(
        self, place: ServedPlace, options: SessionOptions, commands: MakeCommands, warn: Callable[[str], None]
    ) -> None:
        self.place = place
        self._options = options
        self._commands = commands
        self._warn = warn
        self._open: dict[str, _Open] = {}
        self._opening: dict[str, anyio.Event] = {}
        """Stored sessions that are being opened, by id."""
        self._number_opening = 0
        self._changed = anyio.Event()
        self._group: TaskGroup

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self, None]:
        with unwrap_single_exception():
            async with create_task_group() as self._group:
                try:
                    yield self
                finally:
                    for one in self._open.values():
                        one.hub.end()
                        one.scope.cancel("the server ends")

    @property
    def hubs(self) -> Mapping[str, Hub]:
        """Hubs of the open sessions, by the session's id."""
        return {session_id: one.hub for session_id, one in self._open.items()}

    @property
    def next_change(self) -> anyio.Event:
        """Event that is set when the next session is opened or closed."""
        return self._changed

    async def open(self, folder: str, **options: Any) -> Hub:
        """Open a new session, or a copy of a stored one.

        If too many are open, the one is closed that nobody has used for longest; it is stored, and opened when named.

        Args:
            folder: Folder below the served ones; relative to the first of them.
            options: Options of the session beside those of the server.

        Raises:
            ToolError: The folder is outside.
            BusyError: Too many are in use.
            PanpanError: It cannot be opened.
        """
        overrides = {**(self._options.get("overrides") or {}), **(options.pop("overrides", None) or {})}
        config = SessionConfig(self.place.folder(folder), self._options).with_options(overrides=overrides, **options)
        self._number_opening += 1
        try:
            await self._make_room()
            hub: Hub = await self._group.start(self._host, config)
        finally:
            self._number_opening -= 1
        return hub

    async def _make_room(self) -> None:
        while len(self._open) + self._number_opening > MAX_SESSIONS:
            unused = [session_id for session_id, one in self._open.items() if one.is_unused]
            if not unused:
                raise BusyError(f"{MAX_SESSIONS} sessions are open and in use; close one first")
            await self.close(min(unused, key=lambda session_id: self._open[session_id].used_at))

    async def find(self, session_id: str) -> Hub:
        """Return an open session; open a stored one first, as after the server was started again.

        Raises:
            NotFoundError: There is none in the served folders.
            PanpanError: It cannot be opened.
        """
        while (waits_for := self._change_of(session_id)) is not None:
            await waits_for.wait()
        if (one := self._open.get(session_id)) is not None:
            one.used_at = monotonic()
            return one.hub
        self._opening[session_id] = anyio.Event()
        try:
            folder = await to_thread.run_sync(self._folder_of, session_id)
            return await self.open(folder, resume=session_id)
        finally:
            self._opening.pop(session_id).set()

    def _change_of(self, session_id: str) -> anyio.Event | None:
        """Return the event that ends the opening or the closing of a session; None if neither is going on."""
        one = self._open.get(session_id)
        return one.closed if one is not None and one.scope.cancel_called else self._opening.get(session_id)

    async def close(self, session_id: str) -> None:
        """Close a session: stop what runs in it, and keep its conversation.

        Raises:
            NotFoundError: It is not open.
        """
        if (one := self._open.get(session_id)) is None:
            raise NotFoundError(f"the session {clean_line(session_id)[:100]!r} is not open")
        one.hub.end()
        one.scope.cancel("a client has closed the session")
        with anyio.move_on_after(_CLOSE_S, shield=True):
            await one.closed.wait()

    async def page(self, cursor: str = "") -> SessionPage:
        """Return a page of the sessions of the served folders, the newest first.

        Args:
            cursor: `next` of the page before; empty for the first.

        Raises:
            NotFoundError: The cursor is wrong.
        """
        if cursor and not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
            raise NotFoundError("there is no such page; leave the cursor out")
        opened = {one.hub.session.log_path: self._listed(one.hub) for one in self._open.values()}
        return await to_thread.run_sync(self._page, int(cursor or "0"), opened)

    def _page(self, begin: int, opened: Mapping[Path, ListedSession]) -> SessionPage:
        logs = self._logs
        found = [] if begin else [one for path, one in opened.items() if path not in logs]
        for number, path in enumerate(logs[begin:], begin):
            if len(found) >= PAGE_SIZE:
                return SessionPage(found, str(number))
            found += self._stored(path, opened.get(path))
        return SessionPage(found, "")

    def _stored(self, path: Path, opened: ListedSession | None) -> Sequence[ListedSession]:
        one = summary_of(path)
        if one is None or not one.cwd or not _is_uuid(one.id) or not self.place.holds(Path(one.cwd)):
            return ()
        title, updated_at = clean_line(one.title or one.prompt), _time(one.written_at)
        if opened is not None:
            return [replace(opened, title=title, updated_at=updated_at)]
        return [ListedSession(one.id, one.cwd, title, updated_at, False, None)] if one.is_interactive else ()

    def _listed(self, hub: Hub) -> ListedSession:
        info, status = hub.session.info, hub.status
        return ListedSession(info.id, str(info.cwd), status.title, _time(time()), True, status)

    def _folder_of(self, session_id: str) -> str:
        logs = self._logs if _is_uuid(session_id) else ()
        path = next((path for path in logs if path.stem == session_id), None)
        one = None if path is None else summary_of(path)
        if one is None or not one.cwd or not self.place.holds(Path(one.cwd)):
            name = clean_line(session_id)[:100]
            raise NotFoundError(f"there is no session {name!r} in the folders that are served; choose or open another")
        return one.cwd

    @property
    def _logs(self) -> Sequence[Path]:
        home = Locations.find(self.place.roots[0], self.place.env).home
        return newest_first(logs_of_all_projects(home))

    async def _host(self, config: SessionConfig, *, task_status: TaskStatus[Hub]) -> None:
        """Keep a session open until it is closed."""
        one: _Open | None = None
        sockets = Locations.find(config.cwd, config.env).sockets_folder
        try:
            async with hosted(partial(self._opened, config), self._warn) as hub, shared(hub, sockets, self._warn):
                one = _Open(hub)
                with one.scope, hub.questions.answered_by(CLIENT):
                    self._open[hub.session.info.id] = one
                    self._tell_changed()
                    task_status.started(hub)
                    await anyio.sleep_forever()
        except Exception as error:
            if one is None:
                raise  # whoever wants to open it is told
            if not isinstance(error, PanpanError):
                log.exception("a session failed")
            self._warn(str(error) if isinstance(error, PanpanError) else f"a session failed: {type(error).__name__}")
        finally:
            if one is not None:
                self._open.pop(one.hub.session.info.id, None)
                one.closed.set()
                self._tell_changed()

    def _opened(
        self, config: SessionConfig, askers: Askers, warn: Callable[[str], None]
    ) -> AbstractAsyncContextManager[Session]:
        frontend = Frontend(askers, is_interactive=True, warn=warn, slash_commands=self._commands)
        return opened_session(config, frontend)

    def _tell_changed(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
