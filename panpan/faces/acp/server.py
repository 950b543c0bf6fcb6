"""The methods of the protocol, for one editor with any number of sessions.

The rule: sessions share nothing but the way to the editor. One that cannot be opened costs no other.
"""

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

from acp.exceptions import RequestError
from acp.schema import (
    AgentAuthCapabilities,
    AgentCapabilities,
    AuthenticateRequest,
    CancelNotification,
    ClientCapabilities,
    CloseSessionRequest,
    DeleteSessionRequest,
    FileSystemCapabilities,
    ForkSessionRequest,
    ForkSessionResponse,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    ListSessionsRequest,
    LoadSessionRequest,
    LoadSessionResponse,
    LogoutCapabilities,
    LogoutRequest,
    McpCapabilities,
    NewSessionRequest,
    NewSessionResponse,
    PromptCapabilities,
    PromptRequest,
    PromptResponse,
    ResumeSessionRequest,
    ResumeSessionResponse,
    SessionAdditionalDirectoriesCapabilities,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionDeleteCapabilities,
    SessionForkCapabilities,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionBooleanRequest,
    SetSessionConfigOptionResponse,
    SetSessionConfigOptionSelectRequest,
    SetSessionModeRequest,
)
from anyio import create_task_group, to_thread
from anyio.abc import TaskGroup, TaskStatus
from pydantic import RootModel

from panpan.app import opened_session
from panpan.cli_kit.failures import report_failure
from panpan.cli_kit.stdio_server import end_at_signal, held_signals, own_streams
from panpan.config.locations import Locations
from panpan.errors import ConfigError, PanpanError, SessionError, unwrap_single_exception
from panpan.faces.acp.buffers import editor_buffers
from panpan.faces.acp.choices import ConfigOption, SessionChoices
from panpan.faces.acp.connection import Connection, Method, Reply, invalid
from panpan.faces.acp.logins import AUTH_REQUIRED, Logins
from panpan.faces.acp.prompts import message_of
from panpan.faces.acp.questions import ClientQuestions
from panpan.faces.acp.requested import RequestedSessions, folder_of, not_found
from panpan.faces.acp.session import AcpSession
from panpan.hub.hub import Hub, hosted
from panpan.hub.sharing import shared
from panpan.models.model_choice import NoKeyError, NoModelError
from panpan.session.command import Command
from panpan.session.frontend import Askers, Frontend, SessionConfig, SessionOptions
from panpan.session.session import Session
from panpan.session.stored.store import archive
from panpan.system.text.terminal_text import clean_line
from panpan.version import __version__

if TYPE_CHECKING:
    from panpan.faces.session_commands import SessionCommands

PROTOCOL_VERSION = 1
MAX_SESSIONS = 32
"""Most sessions that are open at the same time."""
INVALID_REQUEST = -32600
_MAX_WARNINGS = 100
"""Newest warnings that are kept for an editor."""


class SetConfigOptionRequest(RootModel[SetSessionConfigOptionBooleanRequest | SetSessionConfigOptionSelectRequest]):
    """A request for an option of either kind."""


class AcpServer:
    """Answers the requests of an editor.

    Args:
        options: Options of all sessions, from the command line.
        connection: The way to the editor.
        warn: Prints one line on standard error.
    """

    def __init__(self, options: SessionOptions, connection: Connection, warn: Callable[[str], None]) -> None:
        self._options = options
        self._requested = RequestedSessions(options)
        self._connection = connection
        self._warn = warn
        self._logins = Logins(options, warn)
        self._client: ClientCapabilities | None = None
        """Abilities of the editor; None before `initialize`."""
        self._sessions: dict[str, AcpSession] = {}
        self._opening = 0
        self._group: TaskGroup

    async def serve(self) -> None:
        """Serve until the editor goes."""
        async with create_task_group() as self._group:
            await self._connection.serve(self._methods, self._end)
            self._group.cancel_scope.cancel("the editor has gone")

    def _end(self) -> None:
        for session in self._sessions.values():
            session.cancel()

    @property
    def _methods(self) -> Mapping[str, Method[Any]]:
        return {
            "initialize": Method(InitializeRequest, self._initialize),
            "authenticate": Method(AuthenticateRequest, self._authenticate),
            "logout": Method(LogoutRequest, self._logout),
            "session/new": Method(NewSessionRequest, self._new),
            "session/load": Method(LoadSessionRequest, self._load),
            "session/resume": Method(ResumeSessionRequest, self._resume),
            "session/fork": Method(ForkSessionRequest, self._fork),
            "session/list": Method(ListSessionsRequest, self._list),
            "session/close": Method(CloseSessionRequest, self._close),
            "session/delete": Method(DeleteSessionRequest, self._delete),
            "session/prompt": Method(PromptRequest, self._prompt),
            "session/cancel": Method(CancelNotification, self._cancel, is_notification=True),
            "session/set_mode": Method(SetSessionModeRequest, self._set_mode),
            "session/set_config_option": Method(SetConfigOptionRequest, self._set_config_option),
        }

    async def _initialize(self, request: InitializeRequest) -> Reply:
        given = request.client_capabilities  # the library makes a dictionary of what does not fit
        self._client = given if isinstance(given, ClientCapabilities) else ClientCapabilities()
        return Reply(
            InitializeResponse(
                protocol_version=PROTOCOL_VERSION,
                agent_info=Implementation(name="panpan", title="panpan", version=__version__),
                auth_methods=list(await self._logins.offered(self._client)),
                agent_capabilities=AgentCapabilities(
                    auth=AgentAuthCapabilities(logout=LogoutCapabilities()),
                    load_session=True,
                    prompt_capabilities=PromptCapabilities(image=True, embedded_context=True),
                    mcp_capabilities=McpCapabilities(http=True, sse=True),
                    session_capabilities=SessionCapabilities(
                        list=SessionListCapabilities(),
                        resume=SessionResumeCapabilities(),
                        close=SessionCloseCapabilities(),
                        delete=SessionDeleteCapabilities(),
                        fork=SessionForkCapabilities(),
                        additional_directories=SessionAdditionalDirectoriesCapabilities(),
                    ),
                ),
            )
        )

    async def _authenticate(self, request: AuthenticateRequest) -> Reply:
        self._require_client()
        await self._logins.require(request.method_id)
        return Reply()

    async def _logout(self, request: LogoutRequest) -> Reply:
        self._require_client()
        await self._logins.end()
        return Reply()

    async def _new(self, request: NewSessionRequest) -> Reply:
        session = await self._open(self._requested.config(request, **self._further))
        choices = session.choices
        result = NewSessionResponse(session_id=session.id, modes=choices.modes, config_options=list(choices.options))
        return Reply(result, session.tell_state)

    async def _load(self, request: LoadSessionRequest) -> Reply:
        session = await self._reopen(request)
        await session.replay()
        choices = session.choices
        return Reply(LoadSessionResponse(modes=choices.modes, config_options=list(choices.options)), session.tell_state)

    async def _resume(self, request: ResumeSessionRequest) -> Reply:
        session = await self._reopen(request)
        choices = session.choices
        return Reply(
            ResumeSessionResponse(modes=choices.modes, config_options=list(choices.options)), session.tell_state
        )

    async def _fork(self, request: ForkSessionRequest) -> Reply:
        source = self._sessions.get(request.session_id)
        if source is not None and not source.hub.session.conversation.messages:
            config = self._requested.config(request, **self._further)
        else:
            config = await self._requested.earlier(request, fork=True, **self._further)
        session = await self._open(config)
        choices = session.choices
        result = ForkSessionResponse(session_id=session.id, modes=choices.modes, config_options=list(choices.options))
        return Reply(result, session.tell_state)

    async def _reopen(self, request: LoadSessionRequest | ResumeSessionRequest) -> AcpSession:
        """Return an earlier session, which may be open."""
        further = self._further
        if (session := self._sessions.get(request.session_id)) is None:
            return await self._open(await self._requested.earlier(request, **further))
        if session.hub.session.info.cwd != folder_of(request.cwd):
            raise not_found(request.session_id, f" of the project in {clean_line(request.cwd)[:200]}")
        if session.hub.is_busy:
            raise invalid("a turn of this session runs; cancel it first")
        return session

    @property
    def _further(self) -> Mapping[str, Any]:
        """Options of sessions that follow from the abilities of the editor."""
        client = self._require_client()
        files = client.fs or FileSystemCapabilities()
        writes = bool(files.write_text_file)
        buffers = [editor_buffers(self._connection, writes=writes)] if files.read_text_file else []
        return {"capabilities": [*self._options.get("capabilities", ()), *buffers]}

    async def _open(self, config: SessionConfig) -> AcpSession:
        """Open a session.

        Raises:
            RequestError: Too many are open, or there is no model.
            PanpanError: It cannot be opened.
        """
        if len(self._sessions) + self._opening >= MAX_SESSIONS:
            raise invalid(f"{MAX_SESSIONS} sessions are open; close one first")
        self._opening += 1
        try:
            session: AcpSession = await self._group.start(self._host, config)
        except (NoModelError, NoKeyError) as error:
            raise RequestError(AUTH_REQUIRED, str(error)) from error
        except ConfigError as error:
            raise invalid(str(error)) from error
        finally:
            self._opening -= 1
        return session

    async def _host(self, config: SessionConfig, *, task_status: TaskStatus[AcpSession]) -> None:
        """Keep a session open until it is closed."""
        session: AcpSession | None = None
        warnings = deque[str](maxlen=_MAX_WARNINGS)

        def warn(line: str) -> None:
            self._warn(line)
            warnings.append(clean_line(line))

        sockets = Locations.find(config.cwd, config.env).sockets_folder
        try:
            async with hosted(partial(_opened, config), warn) as hub, shared(hub, sockets, warn):
                session = await self._joined(hub, warnings)
                with session.scope:
                    self._sessions[session.id] = session
                    task_status.started(session)
                    await session.run()
        except Exception as error:
            if session is None:
                raise  # whoever wants to open it is told
            if isinstance(error, PanpanError):
                self._warn(str(error))
            else:
                report_failure(error)
        finally:
            if session is not None:
                self._sessions.pop(session.id, None)
                session.closed.set()

    async def _joined(self, hub: Hub, warnings: deque[str]) -> AcpSession:
        client, session = self._require_client(), hub.session
        booleans = client.session and client.session.config_options and client.session.config_options.boolean
        has_forms = client.elicitation is not None and client.elicitation.form is not None
        commands = _commands(self._logins.env, session.capabilities.session_commands)
        choices = SessionChoices(session, commands, has_booleans=booleans is not None)
        await choices.load()
        info = session.info
        questions_type, session_type = self._types
        questions = questions_type(self._connection, info.id, info.cwd, has_forms=has_forms)
        return session_type(hub, self._connection, questions, choices, warnings)

    @property
    def _types(self) -> tuple[type[ClientQuestions], type[AcpSession]]:
        """Types of what speaks of a session."""
        return ClientQuestions, AcpSession

    async def _list(self, request: ListSessionsRequest) -> Reply:
        self._require_client()
        return Reply(await to_thread.run_sync(self._requested.page, request.cwd, request.cursor))

    async def _close(self, request: CloseSessionRequest) -> Reply:
        await self._session(request.session_id).end()
        return Reply()

    async def _delete(self, request: DeleteSessionRequest) -> Reply:
        """Archive a session, which `panpan sessions` can bring back."""
        self._require_client()
        if (session := self._sessions.get(request.session_id)) is not None:
            await session.end()
        if (log := await to_thread.run_sync(self._requested.log_of, request.session_id)) is not None:
            try:
                await to_thread.run_sync(archive, log)
            except SessionError as error:
                raise invalid(str(error)) from error
        return Reply()

    async def _prompt(self, request: PromptRequest) -> Reply:
        session = self._session_with_key(request.session_id)
        reason = await session.prompt(await message_of(request.prompt))
        return Reply(PromptResponse(stop_reason=reason, usage=session.tokens))

    async def _cancel(self, request: CancelNotification) -> Reply:
        self._session(request.session_id).cancel()
        return Reply()

    async def _set_mode(self, request: SetSessionModeRequest) -> Reply:
        session = self._session(request.session_id)
        try:
            session.choices.set_mode(request.mode_id)
        except ConfigError as error:
            raise invalid(str(error)) from error
        return Reply()

    async def _set_config_option(self, request: SetConfigOptionRequest) -> Reply:
        given = request.root
        options = await self._set_option(given.session_id, given.config_id, given.value)
        return Reply(SetSessionConfigOptionResponse(config_options=list(options)))

    async def _set_option(self, session_id: str, name: str, value: str | bool) -> Sequence[ConfigOption]:
        """Change an option of a session, and return all of them."""
        session = self._session(session_id)
        try:
            await session.choices.set_option(name, value)
        except ConfigError as error:
            raise invalid(str(error)) from error
        options = session.choices.options
        session.note_options(options)
        return options

    def _require_client(self) -> ClientCapabilities:
        if self._client is None:
            raise RequestError(INVALID_REQUEST, "send initialize first")
        return self._client

    def _session_with_key(self, session_id: str) -> AcpSession:
        session = self._session(session_id)
        self._logins.require_key(session.hub.session)
        return session

    def _session(self, session_id: str) -> AcpSession:
        self._require_client()
        if (session := self._sessions.get(session_id)) is None:
            raise not_found(session_id, " that is open; session/load or session/resume opens one")
        return session


async def serve(options: SessionOptions, warn: Callable[[str], None], server: type[AcpServer] = AcpServer) -> None:
    """Serve an editor until it goes, or a signal comes.

    Args:
        options: Options of all sessions, from the command line.
        warn: Prints one line on standard error.
        server: Type that answers it.
    """
    for name in ("acp", "mcp"):  # they would print text of others
        logging.getLogger(name).addHandler(logging.NullHandler())
        logging.getLogger(name).propagate = False
    with held_signals() as signals, own_streams() as (stdin, stdout), unwrap_single_exception():
        async with create_task_group() as group:
            group.start_soon(end_at_signal, signals, group.cancel_scope.cancel)
            await server(options, Connection(stdin, stdout, warn), warn).serve()
            group.cancel_scope.cancel("the editor has gone")


def _opened(config: SessionConfig, askers: Askers, warn: Callable[[str], None]) -> AbstractAsyncContextManager[Session]:
    return opened_session(config, Frontend(askers, is_interactive=True, warn=warn, slash_commands=_commands))


def _commands(env: Mapping[str, str], further: Sequence[Command]) -> "SessionCommands":
    from panpan.faces.session_commands import SessionCommands  # `initialize` needs no command

    return SessionCommands(env, further)
