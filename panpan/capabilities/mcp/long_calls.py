"""Calls that take long: they go on in the background, and tasks of servers go on in another run of panpan."""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
from anyio import current_time, move_on_after
from pydantic import BaseModel, ConfigDict, ValidationError

from panpan.capabilities.mcp.entries import ServerEntry
from panpan.capabilities.mcp.results import output_for_model
from panpan.capabilities.mcp.servers import McpServers
from panpan.capabilities.mcp.settings import McpServerSettings
from panpan.core.background import Background, Elsewhere, JobEnd
from panpan.errors import ToolError
from panpan.system.files.output_store import OutputStore
from panpan.types.content import SummaryDisplay
from panpan.types.events import Output, TaskInfo

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from panpan.capabilities.mcp.connection import Connection
    from panpan.capabilities.mcp.pending_call import PendingCall

CAPABILITY = McpServerSettings.table
TASK_FOREGROUND_S = 10.0
"""Seconds after which a call goes on in the background if its server has made a task of it."""
MAX_BACKGROUND_CHARS = 30_000
"""Most characters of a result in the background, so that TaskOutput shows all of it."""
_RECONNECT_S = 600.0
_PAUSE_S = 2.0


class CallWatch:
    """Follows a call within the limits of its server.

    Args:
        entry: The server.
        connection: Its present run.
        call: The call.
        may_move: True if it may go on in the background.
    """

    def __init__(
        self, entry: ServerEntry, connection: "Connection", call: "PendingCall", *, may_move: bool = False
    ) -> None:
        self.call = call
        self.connection = connection
        self._entry = entry
        self._may_move = may_move
        self._is_asked = False
        self._worked_s = 0.0
        """Seconds without those in which the user was asked."""
        self._shown = ""

    @property
    def has_to_move(self) -> bool:
        """True if it takes too long for the foreground, or the user wants it in the background."""
        return self._may_move and (self._is_asked or self._worked_s >= self._foreground_s)

    def ask_to_move(self) -> None:
        """Let it go on in the background."""
        self._is_asked = True
        self.call.wake()

    def stay(self) -> None:
        """Leave it in the foreground."""
        self._may_move = False

    @property
    def _foreground_s(self) -> float:
        most = self._entry.settings.foreground_s
        return min(TASK_FOREGROUND_S, most) if self.call.task_id else most

    async def news(self) -> str:
        """Wait for progress, and return what is new of it; also if it has ended, or is to move.

        Raises:
            ToolError: The server is silent, or takes, too long; a task of the server may take as long as it wants.
        """
        entry, started_at, is_asking = self._entry, current_time(), self.connection.questions > 0
        limits = [entry.silence_s]
        if not self.call.task_id:
            limits.append(entry.settings.call_s - self._worked_s)
        if self._may_move:
            limits.append(self._foreground_s - self._worked_s)
        with move_on_after(max(min(limits), 0)) as scope:
            await self.call.news.wait()
        took_s = current_time() - started_at
        if not (is_asking or self.connection.questions):
            self._worked_s += took_s
            if scope.cancelled_caught and took_s >= entry.silence_s:
                raise ToolError(f"the MCP server {entry.name} said nothing for {entry.silence_s:g} s")
            if not self.call.task_id and self._worked_s >= entry.settings.call_s:
                raise ToolError(f"the call took longer than {entry.settings.call_s:g} s")
        before, self._shown = self._shown, self.call.progress
        return self._shown if self._shown != before else ""

    async def give_up(self) -> None:
        """Let nobody wait for it any more, and tell the server."""
        is_over = self.call.is_over
        self.call.cancel()
        if self.call.task_id and not is_over:
            await self.connection.end_task(self.call.task_id)


class _Kept(BaseModel):
    """Facts about a call for another run of panpan."""

    model_config = ConfigDict(strict=True)

    tool: str
    server: str
    task: str
    place: list[str]
    """Command line or address of the server."""


def _place_of(entry: ServerEntry) -> list[str]:
    """Return what tells a server from another one of its name; secrets may change."""
    return [entry.transport, entry.title]


class LongCall:
    """A call that goes on in the background.

    Args:
        tool: Full name of its tool.
        server: Name of its server.
        servers: The servers.
        outputs: Store for a result that is too long.
        tool_use_id: Id of the call.
        background: Runs it.
    """

    def __init__(
        self,
        tool: str,
        server: str,
        servers: McpServers,
        outputs: OutputStore,
        tool_use_id: str,
        background: Background,
    ) -> None:
        self._tool = tool
        self._server = server
        self._servers = servers
        self._outputs = outputs
        self._tool_use_id = tool_use_id
        self._background = background
        self._watch: CallWatch | None = None
        self._id = ""
        """Id of the background task."""
        self._task_id = ""
        """Name of the task of the server; empty while there is none."""

    @classmethod
    def kept(
        cls, info: TaskInfo, what: str, servers: McpServers, outputs: OutputStore, background: Background
    ) -> "LongCall":
        """Return a call of an earlier run, whose server has made a task of it; see `Background.take_up`.

        Raises:
            ToolError: Nothing can be known of it any more.
        """
        try:
            kept = _Kept.model_validate_json(what)
        except ValidationError as error:
            raise ToolError("what was kept of it cannot be read") from error
        found = cls(kept.tool, kept.server, servers, outputs, info.tool_use_id, background)
        found._id, found._task_id = info.id, kept.task
        found._require_server()
        if _place_of(servers.entry(kept.server)) != kept.place:
            raise ToolError(f"the MCP server {kept.server} is another one now")
        return found

    def move(self, watch: CallWatch, title: str) -> Output | None:
        """Let a call go on in the background, and return what the model is told; None if there is no room."""
        self._watch = watch
        watch.stay()
        try:
            info = self._background.start_job(
                kind="call", title=title, tool_use_id=self._tool_use_id, agent_id="", job=self.go_on
            )
        except ToolError:
            return None
        self._id = info.id
        self._note_task(watch)
        text = (
            f"The call goes on in the background as task {info.id}. You are told when it ends; go on meanwhile. "
            "TaskOutput waits for it."
        )
        return Output(text, SummaryDisplay(text=f"goes on in the background as task {info.id} (/tasks)"))

    async def go_on(self, write: Callable[[str], None]) -> JobEnd:
        """Follow the call to its end; the job of the background task."""
        try:
            result = await self._result(write)
        except ToolError as error:
            return JobEnd(f"{self._tool}: {error}", is_error=True)
        output = await output_for_model(
            result, self._tool, self._server, self._outputs, self._tool_use_id, MAX_BACKGROUND_CHARS
        )
        write(f"{output.text}\n")
        return JobEnd(output.text, output.is_error)

    @property
    def elsewhere(self) -> Elsewhere:
        """Facts that another run of panpan needs to go on with it."""
        place = _place_of(self._servers.entry(self._server))
        kept = _Kept(tool=self._tool, server=self._server, task=self._task_id, place=place)
        return Elsewhere(CAPABILITY, kept.model_dump_json(), self._end)

    def _note_task(self, watch: CallWatch) -> None:
        """Take the task that the server has made of the call, if it has."""
        if watch.call.task_id and watch.call.task_id != self._task_id:
            self._task_id = watch.call.task_id
            self._background.goes_on(self._id, self.elsewhere)

    async def _end(self) -> str:
        """Tell the server that nobody waits for its task any more, and return a remark if it could not be told."""
        is_told = False
        with suppress(ToolError):
            connection = await self._servers.ready(self._server, is_retry=True)
            is_told = await connection.end_task(self._task_id)
        return "" if is_told else "its server could not be told"

    async def _result(self, write: Callable[[str], None]) -> "CallToolResult":
        """Follow the call to its end; a task of the server is taken up again if the server was away.

        Raises:
            ToolError: It failed.
        """
        lost_at = current_time()
        if self._watch is not None and self._watch.call.progress:
            write(f"{self._watch.call.progress}\n")
        while True:
            try:
                watch = self._watch = self._watch or await self._follow()
            except ToolError:
                if current_time() - lost_at > _RECONNECT_S:
                    raise
                await anyio.sleep(_PAUSE_S)
                self._require_server()
                continue
            try:
                while not watch.call.is_over:
                    if progress := await watch.news():
                        write(f"{progress}\n")
                    self._note_task(watch)
            except ToolError:
                await watch.give_up()
                raise
            finally:
                watch.call.cancel()
            if watch.call.result is not None:
                return watch.call.result
            assert watch.call.error is not None, "it is over"
            if not (self._task_id and watch.call.is_lost):
                raise watch.call.error
            self._watch, lost_at = None, current_time()

    def _require_server(self) -> None:
        """Raise ToolError if the server is not known any more, or may not run."""
        if not any(entry.name == self._server for entry in self._servers.usable):
            raise ToolError(f"the MCP server {self._server} is not there any more, or may not run")

    async def _follow(self) -> CallWatch:
        connection = await self._servers.ready(self._server, is_retry=True)
        return CallWatch(self._servers.entry(self._server), connection, connection.follow(self._task_id))
