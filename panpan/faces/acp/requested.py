"""Sessions that an editor asks for: their configuration, and those that are stored."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias
from uuid import UUID

from acp.exceptions import RequestError
from acp.schema import (
    ForkSessionRequest,
    HttpMcpServer,
    ListSessionsResponse,
    LoadSessionRequest,
    McpServerStdio,
    NewSessionRequest,
    ResumeSessionRequest,
    SessionInfo,
    SseMcpServer,
)
from anyio import to_thread

from panpan.config.locations import Locations
from panpan.errors import PanpanError
from panpan.faces.acp.connection import invalid
from panpan.session.frontend import SessionConfig, SessionOptions
from panpan.session.stored.store import logs_of_all_projects, newest_first, session_path, summary_of
from panpan.system.files.canonical import canonical_path
from panpan.system.text.terminal_text import clean_line
from panpan.types.messages import unique_id

OfEarlier: TypeAlias = LoadSessionRequest | ResumeSessionRequest | ForkSessionRequest
McpServer: TypeAlias = HttpMcpServer | SseMcpServer | McpServerStdio

PAGE_SIZE = 50
"""Sessions of one answer to `session/list`."""
NOT_FOUND = -32002
_NO_NAME = re.compile(r"[^A-Za-z0-9-]+")
"""Characters that names of servers in `.mcp.json` do not have."""
_MAX_NAME_CHARS = 50


class RequestedSessions:
    """Turns requests into configurations of sessions.

    Args:
        options: Options of all sessions, from the command line.
    """

    def __init__(self, options: SessionOptions) -> None:
        self._options = options

    def config(self, request: NewSessionRequest | OfEarlier, **further: Any) -> SessionConfig:
        """Return the configuration of a new session in the folder of a request.

        Args:
            request: The request.
            further: Options of the session beside those of the command line.

        Raises:
            RequestError: A folder is not one, or a server cannot be used.
        """
        cwd, *others = map(folder_of, (request.cwd, *(request.additional_directories or ())))
        overrides = dict(self._options.get("overrides") or {})
        given: Any = overrides.get("additional_directories") or ()
        overrides["additional_directories"] = (*given, *map(str, others))
        servers = [*self._options.get("mcp_config", ())]
        if request.mcp_servers:
            servers.append(json.dumps({"mcpServers": _servers(request.mcp_servers)}))
        config = SessionConfig(cwd, self._options)
        return config.with_options(overrides=overrides, mcp_config=servers, **further)

    async def earlier(self, request: OfEarlier, **further: Any) -> SessionConfig:
        """Return the configuration of a stored session, which has to be one of the project of the request's folder."""
        config = self.config(request, **further)
        if not await to_thread.run_sync(self._is_stored, config, request.session_id):
            raise not_found(request.session_id, f" of the project in {clean_line(str(config.cwd))}")
        return config.with_options(resume=request.session_id)

    def _is_stored(self, config: SessionConfig, session_id: str) -> bool:
        folder = Locations.find(config.cwd, config.env).sessions_folder
        return _is_uuid(session_id) and bool(newest_first([session_path(folder, session_id)]))

    def log_of(self, session_id: str) -> Path | None:
        """Return the log of a session of any project; None if there is none. Blocks."""
        logs = self._logs if _is_uuid(session_id) else ()
        return next((log for log in logs if log.stem == session_id), None)

    @property
    def _logs(self) -> Sequence[Path]:
        home = Locations.find(Path.cwd(), SessionConfig(Path(), self._options).env).home
        return newest_first(logs_of_all_projects(home))

    def page(self, cwd: str | None, cursor: str | None) -> ListSessionsResponse:
        """Return a page of the sessions of a folder, or of all; blocks.

        Raises:
            RequestError: The folder is none, or the cursor is wrong.
        """
        folder = None if cwd is None else folder_of(cwd)
        if cursor is not None and not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
            raise invalid("the cursor is none of mine; leave it out")
        begin = int(cursor or "0")
        found: list[SessionInfo] = []
        for number, log in enumerate(self._logs[begin:], begin):
            if len(found) == PAGE_SIZE:
                return ListSessionsResponse(sessions=found, next_cursor=str(number))
            one = summary_of(log)
            if one is None or not one.cwd or not (one.is_interactive and _is_uuid(one.id)):
                continue
            if folder is None or Path(one.cwd) == folder:
                title = clean_line(one.title or one.prompt)
                when = datetime.fromtimestamp(one.written_at, UTC).isoformat()
                found.append(SessionInfo(session_id=one.id, cwd=one.cwd, title=title or None, updated_at=when))
        return ListSessionsResponse(sessions=found)


def not_found(session_id: str, more: str) -> RequestError:
    """Return the error for a session that is not there."""
    return RequestError(NOT_FOUND, f"there is no session {clean_line(session_id)[:100]!r}{more}")


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def folder_of(name: str) -> Path:
    """Return the folder of an absolute path, canonical.

    Raises:
        RequestError: It is none.
    """
    try:
        folder = canonical_path(Path(name)) if Path(name).is_absolute() else None
        is_folder = folder is not None and folder.is_dir()
    except (PanpanError, OSError, ValueError):
        is_folder = False
    if not is_folder or folder is None:
        raise invalid(f"{clean_line(name)[:200]!r} is not the absolute path of a folder")
    return folder


def _servers(servers: Sequence[Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return MCP servers of the editor as in `.mcp.json`; editors name them as they like, such as "My Server"."""
    found: dict[str, Mapping[str, Any]] = {}
    for server in servers:
        name = _NO_NAME.sub("_", server.name)[:_MAX_NAME_CHARS].strip("_") or "server"
        found[unique_id(name, found.keys())] = _server(server)
    return found


def _server(server: McpServer) -> Mapping[str, Any]:
    match server:
        case McpServerStdio():
            env = {one.name: one.value for one in server.env}
            return {"command": server.command, "args": list(server.args), "env": env}
        case HttpMcpServer() | SseMcpServer():
            headers = {one.name: one.value for one in server.headers}
            return {"type": server.type, "url": server.url, "headers": headers}
        case _:
            raise invalid("an MCP server is of no kind that panpan can use; offer stdio, http or sse")
