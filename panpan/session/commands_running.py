"""The sandbox and the processes of a session's commands, from its beginning to its end."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial

from panpan.core.tool import ToolContext
from panpan.session.capability import beside
from panpan.system.processes.limits import process_watches
from panpan.system.processes.process_table import ProcessTree


@asynccontextmanager
async def commands_running(context: ToolContext, warn: Callable[[str], None]) -> AsyncGenerator[None, None]:
    """Serve the sandbox and watch what commands start while the session is open; end what is left of it.

    Args:
        context: Has the sandbox, the processes and their limits.
        warn: Told what cannot be watched or ended, one sentence each.
    """
    watches = process_watches(context.limits, (context.processes,), warn)
    async with (
        beside(context.sandbox.serve, then=context.sandbox.aclose),
        beside(*watches, then=partial(_end, context.processes, warn)),
    ):
        yield


async def _end(processes: ProcessTree, warn: Callable[[str], None]) -> None:
    """End what the session's commands left running, and name what cannot be ended."""
    for process in await processes.end():
        warn(f"process {process.pid} was started by a command and could not be ended")
