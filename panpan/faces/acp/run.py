"""`panpan acp` on standard input and output."""

import logging
from collections.abc import Callable

from anyio import create_task_group

from panpan.cli_kit.stdio_server import end_at_signal, held_signals, own_streams
from panpan.errors import unwrap_single_exception
from panpan.faces.acp.connection import Connection
from panpan.faces.acp.server import AcpServer
from panpan.session.frontend import SessionOptions


async def serve(options: SessionOptions, warn: Callable[[str], None]) -> None:
    """Serve an editor until it goes, or a signal comes.

    Args:
        options: Options of all sessions, from the command line.
        warn: Prints one line on standard error.
    """
    for name in ("acp", "mcp"):  # they would print text of others
        logging.getLogger(name).addHandler(logging.NullHandler())
        logging.getLogger(name).propagate = False
    with held_signals() as signals, own_streams() as (stdin, stdout), unwrap_single_exception():
        async with create_task_group() as group:
            group.start_soon(end_at_signal, signals, group.cancel_scope.cancel)
            await AcpServer(options, Connection(stdin, stdout, warn), warn).serve()
            group.cancel_scope.cancel("the editor has gone")
