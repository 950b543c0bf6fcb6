"""What a command in the foreground prints, and how it is handed on to the background.

The rule: what it printed until then is in the task's output file before the task is there, and nothing of it is lost.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager

from panpan.core.background import Background, MovedCommand
from panpan.core.tool import ToolContext
from panpan.errors import ToolError
from panpan.system.processes.process import Leaving
from panpan.system.processes.progress_pacer import ProgressPacer
from panpan.system.text.line_folder import LineFolder
from panpan.types.display import SummaryDisplay
from panpan.types.tool import Output

MAX_RESULT_CHARS = 30_000


class ForegroundRun:
    """One command while a call waits for it.

    Args:
        command: As the model wrote it.
        title: What it does, on one line.
        ctx: That of the call.
        background: The session's background tasks; None: it cannot be moved.
    """

    def __init__(self, command: str, title: str, ctx: ToolContext, background: Background | None) -> None:
        self.pacer = ProgressPacer()
        self._command = command
        self._title = title
        self._ctx = ctx
        self._background = background
        self._started_at = time.time()
        self._collector = ctx.outputs.collector(f"bash-{ctx.tool_use_id}", max_chars=MAX_RESULT_CHARS)
        self._folder = LineFolder()
        self._is_time_up = False

    def add(self, data: bytes) -> None:
        """Take what it printed."""
        self._collector.feed(self._folder.feed(data))
        self.pacer.add(data)

    def text(self) -> str:
        """Return all of it, shortened where it is long; it has ended."""
        self._collector.feed(self._folder.finish())
        return self._collector.finish()

    @contextmanager
    def movable(self) -> Iterator[Callable[[bool], bool] | None]:
        """Give what says, told whether its time is up, whether it is to go on in the background; None: it cannot."""
        background = self._background
        if background is None:
            yield None
            return
        with background.foreground(self._ctx.tool_use_id) as asked:

            def leaves(is_time_up: bool) -> bool:
                self._is_time_up = is_time_up
                return asked.is_set() or (is_time_up and background.goes_on_at_timeout)

            yield leaves

    def moved(self, leaving: Leaving, resources: AsyncExitStack) -> Output:
        """Hand it on to the background, and say as which task it goes on.

        Args:
            leaving: The process.
            resources: What it needs as long as it runs.

        Raises:
            ToolError: The session ends in this moment; so does the process.
        """
        assert self._background is not None
        self._collector.feed(self._folder.finish())
        moved = MovedCommand(
            leaving.take(),
            self._collector.leave(),
            text=self._command,
            title=self._title,
            tool_use_id=self._ctx.tool_use_id,
            started_at=self._started_at,
        )
        try:
            info = self._background.take_command(moved, resources)
        except ToolError:
            leaving.give_back()
            raise
        why = "its time was up, so it" if self._is_time_up else "the user wants it in the background: it"
        return Output(
            f"{why} goes on in the background as task {info.id}, and ends with panpan; what it printed so far, and "
            f"what it prints from now on, is in {info.output}",
            SummaryDisplay(
                text=f"{'its time was up; it ' if self._is_time_up else ''}goes on in the background as task {info.id} "
                "(/tasks)"
            ),
        )
