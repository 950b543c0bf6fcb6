"""One language server from its start to its end.

The rule: nothing of it is left when `run` returns. However it ends, asked to or by itself, whoever waits is told why.
"""

import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
from anyio import CancelScope, create_task_group, move_on_after, to_thread

from panpan.capabilities.language_servers.connection import Connection, ServerGoneError
from panpan.capabilities.language_servers.documents import Documents, SyncedDocuments, WatchedFiles
from panpan.capabilities.language_servers.server_process import (
    TIMEOUTS,
    ServerKind,
    ServerTimeouts,
    language_server_process,
)
from panpan.capabilities.language_servers.wire import SYMBOL_KINDS, encoding_of, items_of
from panpan.errors import ConfigError, ToolError
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.system.sandbox.server_process import ServerProcess

_MOST = 100
"""Tasks at the same time; more are ignored."""


class Progress:
    """Tasks that the server has begun and not ended (`$/progress`)."""

    def __init__(self) -> None:
        self._open: set[str] = set()
        self._ended = anyio.Event()

    def take(self, params: Any) -> None:
        """Take a progress notification of the server."""
        value = params.get("value") if isinstance(params, Mapping) else None
        kind = value.get("kind") if isinstance(value, Mapping) else None
        if kind not in ("begin", "end"):
            return
        token = str(params.get("token"))[:100]
        if kind == "begin" and len(self._open) < _MOST:
            self._open.add(token)
        elif kind == "end":
            self._open.discard(token)
            self._ended.set()
            self._ended = anyio.Event()

    async def has_ended(self, *, within_s: float) -> bool:
        """Wait until no task is left; return False if the time runs out first."""
        with anyio.move_on_after(within_s):
            while self._open:
                await self._ended.wait()
        return not self._open


# Advertise only what panpan implements, or a server waits for what never comes. A server changes nothing: its edits are
# refused, and commands on its behalf are not advertised.

_SYMBOLS = {"symbolKind": {"valueSet": list(SYMBOL_KINDS)}}

CAPABILITIES: Mapping[str, Any] = {
    "general": {"positionEncodings": ["utf-8", "utf-32", "utf-16"]},
    "window": {"workDoneProgress": True},
    "workspace": {
        "applyEdit": False,
        "configuration": True,
        "workspaceFolders": True,
        "symbol": _SYMBOLS,
        "workspaceEdit": {"documentChanges": True},
    },
    "textDocument": {
        "synchronization": {"didSave": True},
        "publishDiagnostics": {"versionSupport": True},
        "diagnostic": {},
        "definition": {"linkSupport": True},
        "implementation": {"linkSupport": True},
        "references": {},
        "callHierarchy": {},
        "rename": {},
        "hover": {"contentFormat": ["markdown", "plaintext"]},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True, **_SYMBOLS},
    },
}
"""UTF-16 comes last: the protocol wants it, and the others are counted faster."""


def initialize_params(root: Path, options: Mapping[str, Any] | None, *, is_watched: bool) -> dict[str, Any]:
    """Return the parameters of the first request.

    `is_watched`: True if the server will be told which files change; else it has to look for itself.
    """
    watching = {"didChangeWatchedFiles": {"dynamicRegistration": is_watched}}
    return {
        # None: a sandboxed server cannot see our process, and would exit; it exits at the end of its input instead
        "processId": None,
        "clientInfo": {"name": "panpan"},
        "rootPath": str(root),
        "rootUri": root.as_uri(),
        "workspaceFolders": folders_of(root),
        "capabilities": {**CAPABILITIES, "workspace": {**CAPABILITIES["workspace"], **watching}},
        "initializationOptions": None if options is None else dict(options),
    }


def folders_of(root: Path) -> list[dict[str, str]]:
    """Return the one folder of a server."""
    return [{"uri": root.as_uri(), "name": root.name}]


def answer(method: str, params: Any, root: Path) -> Any:
    """Return the answer to a server's request. Raise KeyError if the method is unknown."""
    match method:
        case "workspace/configuration":
            asked = items_of(params.get("items")) if isinstance(params, Mapping) else ()
            return [None for _ in asked]
        case "workspace/workspaceFolders":
            return folders_of(root)
        case "workspace/applyEdit":
            return {"applied": False, "failureReason": "panpan makes no edits for servers"}
        case (
            "client/registerCapability"
            | "client/unregisterCapability"
            | "window/workDoneProgress/create"
            | "window/showMessageRequest"
            | "workspace/diagnostic/refresh"
        ):
            return None
        case _:
            raise KeyError(method)


log = logging.getLogger(__name__)

_GOODBYE_S = 0.5


class LanguageServer:
    """A server for one folder; started by `run`, once.

    `environment`: what it gets of the environment; no keys.
    """

    def __init__(
        self,
        kind: ServerKind,
        program: str,
        root: Path,
        environment: Mapping[str, str],
        sandbox: CommandSandbox,
        timeouts: ServerTimeouts = TIMEOUTS,
    ) -> None:
        self.kind = kind
        self.root = root
        self.ready = anyio.Event()
        """Set when it can be asked, or never will."""
        self.ended = anyio.Event()
        self.failure = ""
        """Reason why the server did not start or ended early; empty if nothing is wrong."""
        self.started_at = anyio.current_time()
        self.capabilities: Mapping[str, Any] = {}
        self._argv = (program, *kind.command[1:])
        self._environment = environment
        self._sandbox = sandbox
        self._timeouts = timeouts
        self._used_at = self.started_at
        self._open_questions = 0
        self._over = anyio.Event()
        self._connection: Connection | None = None
        self._texts: SyncedDocuments | None = None
        self._watched = WatchedFiles(root, kind)
        self._progress = Progress()

    @property
    def is_over(self) -> bool:
        """True if the server has ended or is about to."""
        return self._over.is_set()

    def stop(self) -> None:
        """Let it end in good order; `ended` tells when it has."""
        self._over.set()

    async def run(self) -> None:
        """Start it and keep it until it ends or `stop` was called; cannot be cancelled, and is bounded by itself."""
        with CancelScope(shield=True):
            try:
                await self._live()
            except (ToolError, ConfigError) as exc:
                self._fail(str(exc))
            except Exception as exc:  # it runs beside the session, and must not end that
                log.exception("the language server %s failed", self.kind.name)
                self._fail(f"{self.kind.name} failed unexpectedly: {type(exc).__name__}")
            finally:
                self._over.set()
                self.ready.set()
                self.ended.set()

    def _fail(self, why: str) -> None:
        if not self._over.is_set():
            self.failure = why
        self._over.set()
        if self._connection is not None:
            self._connection.give_up(why)

    async def _live(self) -> None:
        async with language_server_process(self._argv, self.root, self._environment, self._sandbox) as process:
            name = self.kind.name
            self._connection = connection = Connection(
                name,
                process.child.stdout,
                process.input_fd,
                told=self._take,
                asked=self._answer,
                ended=self._fail,
            )
            async with create_task_group() as group:
                group.start_soon(self._read, connection, process)
                group.start_soon(connection.write)
                group.start_soon(process.keep_errors)
                group.start_soon(self._initialize, connection)
                await self._until_over()
                await self._shut_down(connection, process)
                group.cancel_scope.cancel()
            connection.give_up(self.failure or f"{name} was ended")

    async def _read(self, connection: Connection, process: ServerProcess) -> None:
        await connection.read()
        if not connection.gone:
            connection.give_up(f"{self.kind.name} {await process.exit_reason()}")

    async def _initialize(self, connection: Connection) -> None:
        try:
            # during its start and before it reads a file, so that no change is missed
            await to_thread.run_sync(self._watched.changes, abandon_on_cancel=True)
            params = initialize_params(self.root, self.kind.options, is_watched=not self._watched.is_too_large)
            result = await connection.request("initialize", params, timeout_s=self._timeouts.start_s)
            capabilities = result.get("capabilities") if isinstance(result, Mapping) else None
            if not isinstance(capabilities, Mapping):
                raise ToolError(f"{self.kind.name} does not say what it can do")
            self.capabilities = capabilities
            connection.notify("initialized", {})
            sync = capabilities.get("textDocumentSync")
            saves = isinstance(sync, Mapping) and bool(sync.get("save"))
            documents = Documents(connection.notify, self.kind.languages, saves=saves, timeouts=self._timeouts)
            self._texts = SyncedDocuments(
                self.kind.name,
                documents,
                self._watched,
                notify=connection.notify,
                request=self.request,
                provider=capabilities.get("diagnosticProvider"),
                answer_s=self._timeouts.answer_s,
            )
            self._used_at = anyio.current_time()
            self.ready.set()
        except ServerGoneError:
            return  # the caller that gave up has said why
        except ToolError as exc:
            self._fail(str(exc))

    async def _until_over(self) -> None:
        while not self._over.is_set():
            left_s = self._used_at + self._timeouts.idle_s - anyio.current_time()
            if self._open_questions or not self.ready.is_set():  # a caller waits for its start
                left_s = self._timeouts.idle_s
            if left_s <= 0:
                self._over.set()
                return
            with move_on_after(left_s):
                await self._over.wait()

    async def _shut_down(self, connection: Connection, process: ServerProcess) -> None:
        if self._texts is None or connection.gone:
            return
        with suppress(ToolError), move_on_after(_GOODBYE_S):
            await connection.request("shutdown", None, timeout_s=_GOODBYE_S)
            connection.notify("exit")
            await process.child.wait()

    def _take(self, method: str, params: Any) -> None:
        if method == "textDocument/publishDiagnostics" and self._texts is not None:
            self._texts.take_published(params)
        elif method == "$/progress":
            self._progress.take(params)

    def _answer(self, method: str, params: Any) -> Any:
        return answer(method, params, self.root)

    def supports(self, *names: str) -> bool:
        """True if the server has one of these capabilities, such as `renameProvider`."""
        return any(self.capabilities.get(name) not in (None, False) for name in names)

    @property
    def encoding(self) -> Any:
        """Unit in which the server counts columns."""
        return encoding_of(self.capabilities)

    async def request(self, method: str, params: Any) -> Any:
        """Ask it something. Raise ToolError if it does not answer."""
        connection = self._present()
        self._open_questions += 1
        try:
            return await connection.request(method, params, timeout_s=self._timeouts.answer_s)
        finally:
            self._open_questions -= 1
            self._used_at = anyio.current_time()

    async def has_read_project(self) -> bool:
        """Wait for the server to finish its own tasks, as long as a question can wait; return False if it did not."""
        return await self._progress.has_ended(within_s=self._timeouts.reading_s)

    @property
    def texts(self) -> SyncedDocuments:
        """Texts shown to the server, with their problems. Raise Gone if the server has ended."""
        self._present()
        assert self._texts is not None, "it is there once the server is ready"
        return self._texts

    def _present(self) -> Connection:
        if self._connection is None or self._texts is None or self._over.is_set():
            raise ServerGoneError(self.failure or f"{self.kind.name} was ended")
        self._used_at = anyio.current_time()
        return self._connection
