"""Calls that take long: they go on in the background, and tasks of servers go on in another run of panpan."""

import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio import current_time, move_on_after, to_thread

from panpan.capabilities.mcp.entries import ServerEntry
from panpan.capabilities.mcp.results import output_of
from panpan.capabilities.mcp.servers import McpServers
from panpan.core.background import Background, Elsewhere, Job, JobEnd
from panpan.errors import ToolError
from panpan.system.files.output_store import OutputStore
from panpan.types.content import SummaryDisplay
from panpan.types.events import Output, TaskInfo

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from panpan.capabilities.mcp.connection import Connection, PendingCall

CAPABILITY = "mcp"
TASK_FOREGROUND_S = 10.0
"""Seconds after which a call goes on in the background if its server has made a task of it."""
MAX_CHARS = 30_000
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


class LongCall:
    """A call that may go on in the background.

    Args:
        tool: Full name of its tool.
        server: Name of its server.
        servers: The servers.
        outputs: Store for a result that is too long.
        tool_use_id: Id of the call.
    """

    def __init__(self, tool: str, server: str, servers: McpServers, outputs: OutputStore, tool_use_id: str) -> None:
        self._tool = tool
        self._server = server
        self._servers = servers
        self._outputs = outputs
        self._tool_use_id = tool_use_id
        self._watch: CallWatch | None = None

    def move(self, watch: CallWatch, title: str, background: Background) -> Output | None:
        """Let a call go on in the background, and return what the model is told; None if there is no room."""
        self._watch, task_id = watch, watch.call.task_id
        watch.stay()
        try:
            info = background.start_job(
                kind="call",
                title=title,
                tool_use_id=self._tool_use_id,
                agent_id="",
                job=partial(self._go_on, task_id),
                elsewhere=self._elsewhere(task_id) if task_id else None,
            )
        except ToolError:
            return None
        text = (
            f"The call goes on in the background as task {info.id}. You are told when it ends; go on meanwhile. "
            "TaskOutput waits for it."
        )
        return Output(text, SummaryDisplay(text=f"goes on in the background as task {info.id} (/tasks)"))

    def taken_up(self, task_id: str) -> tuple[Job, Elsewhere]:
        """Return the job that goes on with a task of the server."""
        return partial(self._go_on, task_id), self._elsewhere(task_id)

    def _elsewhere(self, task_id: str) -> Elsewhere:
        what = {"tool": self._tool, "server": self._server, "task": task_id}
        return Elsewhere(CAPABILITY, json.dumps(what), partial(self._end, task_id))

    async def _end(self, task_id: str) -> None:
        if self._watch is not None:
            await self._watch.connection.end_task(task_id)

    async def _go_on(self, task_id: str, write: Callable[[str], None]) -> JobEnd:
        try:
            result = await self._result(task_id, write)
        except ToolError as error:
            return JobEnd(f"{self._tool}: {error}", is_error=True)
        output = await self.output_of(result, MAX_CHARS)
        write(f"{output.text}\n")
        return JobEnd(output.text, output.is_error)

    async def _result(self, task_id: str, write: Callable[[str], None]) -> "CallToolResult":
        """Follow the call to its end; a task of the server is taken up again if the server was away.

        Raises:
            ToolError: It failed.
        """
        lost_at = current_time()
        if self._watch is not None and self._watch.call.progress:
            write(f"{self._watch.call.progress}\n")
        while True:
            try:
                watch = self._watch = self._watch or await self._follow(task_id)
            except ToolError:
                if current_time() - lost_at > _RECONNECT_S:
                    raise
                await anyio.sleep(_PAUSE_S)
                continue
            try:
                while not watch.call.is_over:
                    if progress := await watch.news():
                        write(f"{progress}\n")
            finally:
                watch.call.cancel()
            if watch.call.result is not None:
                return watch.call.result
            assert watch.call.error is not None, "it is over"
            task_id = task_id or watch.call.task_id
            if not (task_id and watch.connection.is_ending):
                raise watch.call.error
            self._watch, lost_at = None, current_time()

    async def _follow(self, task_id: str) -> CallWatch:
        connection = await self._servers.ready(self._server)
        return CallWatch(self._servers.entry(self._server), connection, connection.follow(task_id))

    async def output_of(self, result: "CallToolResult", most: int) -> Output:
        """Return a result for the model, of at most so many characters."""
        shorten = partial(self._outputs.shorten, f"{self._tool}-{self._tool_use_id}", max_chars=most)
        source = f"{self._server}/{self._tool.removeprefix(f'mcp__{self._server}__')}"
        return await to_thread.run_sync(output_of, result, source, lambda text: shorten(text=text))


def go_on_with(info: TaskInfo, what: str, servers: McpServers, outputs: OutputStore) -> tuple[Job, Elsewhere]:
    """Return the job that goes on with a call of an earlier run; see `Background.take_up`."""
    kept = json.loads(what)
    return LongCall(kept["tool"], kept["server"], servers, outputs, info.tool_use_id).taken_up(kept["task"])
