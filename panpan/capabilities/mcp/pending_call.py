"""One call that a server works on, from its request to its result, and why it failed."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar

import anyio
import httpx2
from anyio import CancelScope
from mcp import MCPError
from mcp_types import CallToolResult

from panpan.errors import PanpanError, ToolError
from panpan.system.text.terminal_text import clean_line
from panpan.system.text.untrusted import without_tags

_MAX_REASON_CHARS = 500


class PendingCall:
    """A call that a server works on; its tool follows it, and gives it up by `cancel`."""

    def __init__(self) -> None:
        self.news = anyio.Event()
        """Set when there is progress, or the end."""
        self.progress = ""
        self.refusal = ""
        """Reason why the server refused it for want of a login or of scopes; empty if it did not."""
        self.task_id = ""
        """Name of the task that the server has made of it; empty if it has not."""
        self.result: CallToolResult | None = None
        self.error: ToolError | None = None
        self.is_lost = False
        """True if its server has gone before it answered."""
        self._scope = CancelScope()

    @property
    def is_over(self) -> bool:
        return self.result is not None or self.error is not None

    def cancel(self) -> None:
        """Give it up, and tell the server."""
        self._scope.cancel("nobody waits for the call any more")

    async def note(self, progress: float, total: float | None, message: str | None) -> None:
        """Take progress of the server."""
        share = f"{progress:g} of {total:g}" if total else f"{progress:g}"
        self.note_state(f"{message} ({share})" if message else share)

    def note_refusal(self, why: str) -> None:
        """Take the reason why its present request was refused."""
        self.refusal = why

    def note_task(self, task_id: str) -> None:
        """Take the name of the task that the server has made of it."""
        self.task_id = task_id
        self.wake()

    def note_state(self, message: str) -> None:
        """Take what the server says of its task."""
        shown = without_tags(clean_line(message[: 4 * _MAX_REASON_CHARS]))[:_MAX_REASON_CHARS]
        self.progress, self.refusal = shown or self.progress, ""
        self.wake()

    async def run(self, call: Callable[[], Awaitable[CallToolResult]], why_gone: Callable[[], str]) -> None:
        """Make the call."""
        try:
            with self._scope:
                self.result = await call()
        except Exception as error:
            refused = ToolError(self.refusal) if self.refusal and isinstance(error, MCPError) else None
            self.error = refused or self._lost(why_gone()) or ToolError(reason_of(error))
        finally:
            if not self.is_over and self._scope.cancel_called:
                self.error = ToolError("the call was given up")
            elif not self.is_over:  # the connection has ended, and its tasks with it
                self.error = self._lost(why_gone() or "the connection to the MCP server broke")
            self.wake()

    def _lost(self, why: str) -> ToolError | None:
        """Return the error of a call whose server has gone; None if it is there."""
        self.is_lost = bool(why)
        return ToolError(f"{why}, and whether the call did anything is not known") if why else None

    def wake(self) -> None:
        """Let whoever follows it look at it."""
        news, self.news = self.news, anyio.Event()
        news.set()


PRESENT: ContextVar[PendingCall] = ContextVar("PRESENT")
"""The call that a task of the event loop makes."""


def reason_of(error: BaseException) -> str:
    """Return an error as the end of a sentence that begins with a server."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    match error:
        case PanpanError():
            text = str(error)
        case MCPError():
            text = f"answers: {error.error.message}"
        case TimeoutError():
            text = "did not answer in time"
        case httpx2.HTTPStatusError():
            text = f"answers with the status {error.response.status_code}"
        case httpx2.TransportError():
            text = f"cannot be reached: {str(error) or type(error).__name__}"
        case _:
            text = f"speaks wrongly: {type(error).__name__}: {error}"
    return without_tags(clean_line(text))[:_MAX_REASON_CHARS]
