"""One language server from its start to its end.

The rule: nothing of it is left when `run` returns. However it ends, asked to or by itself, whoever waits is told why.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
from anyio import CancelScope, create_task_group, move_on_after, to_thread

from panpan.errors import ConfigError, ToolError
from panpan.services.language_servers.catalogue import ServerKind
from panpan.services.language_servers.connection import Connection, Gone
from panpan.services.language_servers.documents import Document, Documents, TextChangedError
from panpan.services.language_servers.initialization import answer, initialize_params
from panpan.services.language_servers.patience import PATIENCE, Patience
from panpan.services.language_servers.progress import Progress
from panpan.services.language_servers.server_process import ServerProcess, server_process
from panpan.services.language_servers.watched_files import WatchedFiles
from panpan.services.language_servers.wire import Diagnostic, diagnostics, encoding_of
from panpan.system.sandbox.command_sandbox import CommandSandbox

log = logging.getLogger(__name__)

_GOODBYE_S = 0.5
_LOOK_S = 5.0
"""How long a question lets a look at another text have its way."""
_MOST_LOOKS = 3


class LanguageServer:
    """A server for one folder; started by `run`, once.

    Args:
        kind: Which server it is.
        program: The absolute path of its program.
        root: The folder that it is for.
        environment: What it gets of the environment; no keys.
        sandbox: That of the session's commands.
        patience: How long it is waited for.
    """

    def __init__(
        self,
        kind: ServerKind,
        program: str,
        root: Path,
        environment: Mapping[str, str],
        sandbox: CommandSandbox,
        patience: Patience = PATIENCE,
    ) -> None:
        self.kind = kind
        self.root = root
        self.ready = anyio.Event()
        """Set when it can be asked, or never will."""
        self.ended = anyio.Event()
        self.failure = ""
        """Why it could not be started or did not go on; empty where nothing is wrong."""
        self.started_at = anyio.current_time()
        self.capabilities: Mapping[str, Any] = {}
        self._argv = (program, *kind.command[1:])
        self._environment = environment
        self._sandbox = sandbox
        self._patience = patience
        self._used_at = self.started_at
        self._open_questions = 0
        self._over = anyio.Event()
        self._connection: Connection | None = None
        self._documents: Documents | None = None
        self._watched = WatchedFiles(root, kind)
        self._showing = anyio.Lock()
        """Held while it is told what is in files."""
        self._looking = anyio.Lock()
        """Held while a text is shown that need not be the one on disk, until its problems are known."""
        self._progress = Progress()

    @property
    def is_over(self) -> bool:
        """Whether it has ended or is about to."""
        return self._over.is_set()

    def stop(self) -> None:
        """Let it end in good order; `ended` tells when it has."""
        self._over.set()

    # its life

    async def run(self) -> None:
        """Start it and keep it until it ends or `stop` was called; cannot be cancelled, and is bounded by itself."""
        with CancelScope(shield=True):
            try:
                await self._live()
            except (ToolError, ConfigError) as exc:
                self._fail(str(exc))
            except Exception as exc:  # it runs beside the session, which must not end for it
                log.exception("the language server %s failed", self.kind.name)
                self._fail(f"{self.kind.name} failed unexpectedly: {type(exc).__name__}")
            finally:
                self._over.set()
                self.ready.set()
                self.ended.set()

    def _fail(self, why: str) -> None:
        self.failure = self.failure or why
        if self._connection is not None:
            self._connection.give_up(why)
        self._over.set()

    async def _live(self) -> None:
        await to_thread.run_sync(self._watched.changes)
        async with server_process(self._argv, self.root, self._environment, self._sandbox) as process:
            name = self.kind.name
            connection = Connection(name, process.child.stdout, process.input_fd, told=self._take, asked=self._answer)
            self._connection = connection
            try:
                async with create_task_group() as group:
                    group.start_soon(self._read, connection, process)
                    group.start_soon(connection.write)
                    group.start_soon(process.keep_errors)
                    group.start_soon(self._initialize, connection)
                    await self._until_over()
                    await self._say_goodbye(connection, process)
                    group.cancel_scope.cancel()
            finally:
                connection.give_up(self.failure or f"{name} was ended")

    async def _read(self, connection: Connection, process: ServerProcess) -> None:
        await connection.read()
        if not self._over.is_set():
            self._fail(connection.gone or f"{self.kind.name} {await process.how_it_ended()}")

    async def _initialize(self, connection: Connection) -> None:
        try:
            params = initialize_params(self.root, self.kind.options)
            result = await connection.request("initialize", params, timeout_s=self._patience.start_s)
            capabilities = result.get("capabilities") if isinstance(result, Mapping) else None
            if not isinstance(capabilities, Mapping):
                raise ToolError(f"{self.kind.name} does not say what it can do")
            self.capabilities = capabilities
            connection.notify("initialized", {})
            sync = capabilities.get("textDocumentSync")
            saves = isinstance(sync, Mapping) and bool(sync.get("save"))
            self._documents = Documents(
                connection.notify, self.kind.languages, saves=saves, silence_s=self._patience.silence_s
            )
            self.ready.set()
        except Gone:
            return  # whoever gave up has said why
        except ToolError as exc:
            self._fail(str(exc))

    async def _until_over(self) -> None:
        while not self._over.is_set():
            left_s = self._used_at + self._patience.idle_s - anyio.current_time()
            if self._open_questions:
                left_s = self._patience.idle_s
            if left_s <= 0:
                self._over.set()
                return
            with move_on_after(left_s):
                await self._over.wait()

    async def _say_goodbye(self, connection: Connection, process: ServerProcess) -> None:
        if self._documents is None or connection.gone:
            return
        with suppress(ToolError), move_on_after(_GOODBYE_S):
            await connection.request("shutdown", None, timeout_s=_GOODBYE_S)
            connection.notify("exit")
            await process.child.wait()

    # what it tells and asks

    def _take(self, method: str, params: Any) -> None:
        if method == "textDocument/publishDiagnostics" and self._documents is not None:
            self._documents.published(params)
        elif method == "$/progress":
            self._progress.take(params)

    def _answer(self, method: str, params: Any) -> Any:
        return answer(method, params, self.root)

    # what it is asked

    def offers(self, *names: str) -> bool:
        """Return whether the server can do something, such as `renameProvider`, or one of several such things."""
        return any(self.capabilities.get(name) not in (None, False) for name in names)

    @property
    def encoding(self) -> Any:
        """What it counts columns in."""
        return encoding_of(self.capabilities)

    async def request(self, method: str, params: Any) -> Any:
        """Ask it something.

        Raises:
            ToolError: It does not answer.
        """
        connection, _ = self._present()
        self._open_questions += 1
        try:
            return await connection.request(method, params, timeout_s=self._patience.answer_s)
        finally:
            self._open_questions -= 1
            self._used_at = anyio.current_time()

    async def has_read_project(self) -> bool:
        """Wait until it works at nothing by itself, for as long as a question can wait; return whether that is so."""
        return await self._progress.has_ended(within_s=self._patience.reading_s)

    async def opened(self, path: Path) -> Document:
        """Let it know of all that changed on disk, and open a file.

        Raises:
            ToolError: The file cannot be read, or the server is gone.
        """
        connection, documents = self._present()
        with move_on_after(_LOOK_S):
            async with self._looking:
                pass
        async with self._showing:
            await self._catch_up(connection, documents, path)
            return await documents.show_file(path)

    async def _catch_up(self, connection: Connection, documents: Documents, path: Path) -> None:
        """Let it know of all that changed on disk, but for one file that is shown next."""
        changes = await to_thread.run_sync(self._watched.changes, abandon_on_cancel=True)
        if changes:
            connection.notify("workspace/didChangeWatchedFiles", {"changes": changes})
        await documents.refresh(but=path)

    async def problems(self, path: Path, text: str) -> Sequence[Diagnostic]:
        """Return what is wrong with a text that is, was or will be at a path; the caller bounds how long it waits.

        Raises:
            ToolError: It does not answer.
        """
        connection, documents = self._present()
        async with self._looking:
            async with self._showing:
                await self._catch_up(connection, documents, path)
                document = documents.show(path, text)
            if document.problems is not None:
                return document.problems
            version, is_pulled = document.version, self.offers("diagnosticProvider")
            found = await (self._pulled(document) if is_pulled else documents.told(document))
            documents.require(document, version)
            if is_pulled:
                document.problems, document.is_settled = found, True
            return found

    async def all_problems(self, path: Path, text: str) -> Sequence[Diagnostic]:
        """Return the same, once the server will tell no more.

        Raises:
            ToolError: It does not answer, or the file was given another text meanwhile.
        """
        for attempt in range(_MOST_LOOKS):
            try:
                await self.problems(path, text)
                _, documents = self._present()
                document = documents.show(path, text)
                await documents.settle(document)
                break
            except TextChangedError:  # somebody asked about the file on disk meanwhile
                if attempt == _MOST_LOOKS - 1:
                    raise
        return document.problems or ()

    async def problems_now(self, path: Path) -> Sequence[Diagnostic]:
        """Return what is wrong with a file on disk, beside what is in all others now.

        Raises:
            ToolError: The file cannot be read, or it does not answer.
        """
        document = await self.opened(path)
        if self.offers("diagnosticProvider"):
            return await self._pulled(document)
        _, documents = self._present()
        with move_on_after(self._patience.answer_s):
            await documents.told(document)
            await documents.settle(document)
            return document.problems or ()
        raise ToolError(f"{self.kind.name} said nothing of {path.name} within {self._patience.answer_s:g} s")

    async def _pulled(self, document: Document) -> Sequence[Diagnostic]:
        provider = self.capabilities.get("diagnosticProvider")
        params: dict[str, Any] = {"textDocument": {"uri": document.uri}}
        if isinstance(provider, Mapping) and isinstance(provider.get("identifier"), str):
            params["identifier"] = provider["identifier"]
        report = await self.request("textDocument/diagnostic", params)
        return diagnostics(report.get("items") if isinstance(report, Mapping) else None)

    def _present(self) -> tuple[Connection, Documents]:
        if self._connection is None or self._documents is None or self._over.is_set():
            raise Gone(self.failure or f"{self.kind.name} was ended")
        self._used_at = anyio.current_time()
        return self._connection, self._documents
