"""The methods of version 2, and those of version 1 for a client that asks for it.

The rule: the first `initialize` settles the version, and no method of the other one is answered from then on.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from acp.exceptions import RequestError
from acp.schema import (
    AuthenticateRequest,
    CancelNotification,
    CloseSessionRequest,
    DeleteSessionRequest,
    ListSessionsRequest,
    LogoutRequest,
    PromptRequest,
)

from panpan.faces.acp.connection import METHOD_NOT_FOUND, Connection, Method, Reply, invalid, parsed
from panpan.faces.acp.prompts import message_of
from panpan.faces.acp.questions import ClientQuestions
from panpan.faces.acp.requested import NOT_FOUND, not_found
from panpan.faces.acp.server import INVALID_REQUEST, AcpServer
from panpan.faces.acp.session import AcpSession
from panpan.faces.acp.v2.messages import InitializeParams, NewSessionParams, Plain, ResumeSessionParams, SetOptionParams
from panpan.faces.acp.v2.questions import DraftQuestions
from panpan.faces.acp.v2.session import DraftSession
from panpan.faces.acp.v2.updates import options_of
from panpan.session.frontend import SessionOptions
from panpan.version import __version__

VERSION = 2
_UNSUPPORTED_VERSION = -32022
_INITIALIZE = "initialize"


class DraftServer(AcpServer):
    """Answers the requests of an editor that speaks version 2, or version 1."""

    def __init__(self, options: SessionOptions, connection: Connection, warn: Callable[[str], None]) -> None:
        super().__init__(options, connection, warn)
        self._version: int | None = None
        """Version that was agreed upon; None before `initialize`."""

    @property
    def _methods(self) -> Mapping[str, Method[Any]]:
        """Methods of both versions; which of the two is meant is known when one is carried out."""
        return {
            name: Method(Plain, partial(self._call, name), is_notification=one.is_notification)
            for name, one in {**super()._methods, **self._of_draft}.items()
        }

    async def _call(self, name: str, params: Plain) -> Reply:
        version = self._agreed(params.root.get("protocolVersion")) if name == _INITIALIZE else self._version
        if version is None:
            raise RequestError(INVALID_REQUEST, "send initialize first")
        methods = self._of_draft if version == VERSION else super()._methods
        if (method := methods.get(name)) is None:
            raise RequestError(METHOD_NOT_FOUND, f"there is no method {name} in version {version}")
        arguments = parsed(method, params.root)
        self._version = version
        try:
            return await method.call(arguments)
        except RequestError as error:
            if error.code != NOT_FOUND or version != VERSION:
                raise
            raise RequestError(error.code, str(error), {"sessionId": params.root.get("sessionId")}) from error

    def _agreed(self, asked: Any) -> int:
        """Return the newest version up to that of the client."""
        if isinstance(asked, int) and asked < 1:
            known = {"requested": asked, "supported": [1, VERSION]}
            raise RequestError(_UNSUPPORTED_VERSION, "panpan speaks versions 1 and 2; ask for one of them", known)
        version = VERSION if isinstance(asked, int) and asked >= VERSION else 1
        if self._version not in (None, version):
            raise RequestError(INVALID_REQUEST, f"version {self._version} was agreed upon; ask for it again")
        return version

    @property
    def _types(self) -> tuple[type[ClientQuestions], type[AcpSession]]:
        return (DraftQuestions, DraftSession) if self._version == VERSION else super()._types

    @property
    def _of_draft(self) -> Mapping[str, Method[Any]]:
        return {
            _INITIALIZE: Method(InitializeParams, self._initialize_draft),
            "auth/login": Method(AuthenticateRequest, self._authenticate),
            "auth/logout": Method(LogoutRequest, self._logout),
            "session/new": Method(NewSessionParams, self._new_draft),
            "session/resume": Method(ResumeSessionParams, self._resume_draft),
            "session/list": Method(ListSessionsRequest, self._list),
            "session/close": Method(CloseSessionRequest, self._close_draft),
            "session/delete": Method(DeleteSessionRequest, self._delete),
            "session/prompt": Method(PromptRequest, self._insert),
            "session/cancel": Method(CancelNotification, self._cancel, is_notification=True),
            "session/set_config_option": Method(SetOptionParams, self._set_draft_option),
            "tool_call/cancel": Method(Plain, self._cancel_part),
            "terminal/cancel": Method(Plain, self._cancel_part),
        }

    async def _initialize_draft(self, request: InitializeParams) -> Reply:
        self._client = request.client
        logins = await self._logins.offered(self._client)
        methods = [one.model_dump(mode="json", exclude_none=True) for one in logins]
        result = {
            "protocolVersion": VERSION,
            "info": {"name": "panpan", "title": "panpan", "version": __version__},
            "capabilities": {
                "session": {
                    "prompt": {"image": {}, "embeddedContext": {}},
                    "mcp": {"stdio": {}, "http": {}},
                    "delete": {},
                    "additionalDirectories": {},
                }
            },
            "authMethods": [{"type": "agent", "methodId": one.pop("id"), **one} for one in methods],
        }
        return Reply(Plain(result))

    async def _new_draft(self, request: NewSessionParams) -> Reply:
        session = await self._open(self._requested.config(request.request, **self._further))
        result = {"sessionId": session.id, "configOptions": options_of(session.choices.options)}
        return Reply(Plain(result), session.tell_state)

    async def _resume_draft(self, request: ResumeSessionParams) -> Reply:
        session = _draft(await self._reopen(request.request))
        if request.replay_from is not None:
            await session.replay()
        await session.tell_activity()
        return Reply(Plain({"configOptions": options_of(session.choices.options)}), session.tell_state)

    async def _close_draft(self, request: CloseSessionRequest) -> Reply:
        if (session := self._sessions.get(request.session_id)) is not None:
            await session.end()
        return Reply()

    async def _insert(self, request: PromptRequest) -> Reply:
        session = _draft(self._session_with_key(request.session_id))
        return Reply(Plain({"messageId": await session.insert(await message_of(request.prompt))}))

    async def _set_draft_option(self, request: SetOptionParams) -> Reply:
        options = await self._set_option(request.session_id, request.config_id, request.value)
        return Reply(Plain({"configOptions": options_of(options)}))

    async def _cancel_part(self, request: Plain) -> Reply:
        raise invalid("panpan offers no end of a single call; session/cancel stops the turn")

    def _session(self, session_id: str) -> AcpSession:
        if self._version == VERSION and session_id not in self._sessions:
            raise not_found(session_id, " that is open; session/resume opens one")
        return super()._session(session_id)


def _draft(session: AcpSession) -> DraftSession:
    assert isinstance(session, DraftSession)
    return session
