"""Shares an open session with other processes of the user, over a socket in the panpan home."""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path

import anyio
from anyio import BrokenResourceError, ClosedResourceError, create_task_group
from anyio.abc import SocketAttribute, SocketListener, SocketStream

from panpan.errors import ConfigError
from panpan.hub.client_lines import LineMemory
from panpan.hub.connection import Connection
from panpan.hub.hub import Hub
from panpan.hub.operations.table import Caller
from panpan.hub.wire import MAX_LINE_BYTES, line_of
from panpan.system.processes.private_socket import listen_privately, require_own_user

log = logging.getLogger(__name__)

MAX_CLIENTS = 128
"""Most clients at a time; further ones are refused."""
_REST_S = 1.0
"""Seconds until connections are accepted again after one could not be."""


@asynccontextmanager
async def shared(
    hub: Hub, folder: Path, warn: Callable[[str], None], *, max_line_bytes: int = MAX_LINE_BYTES
) -> AsyncGenerator[None, None]:
    """Let other processes of the user join a session inside the block.

    Args:
        hub: The hub of the session.
        folder: Folder for the socket.
        warn: Gets a sentence if the session cannot be shared.
        max_line_bytes: Most bytes of a line of a client.
    """
    path = socket_of(folder, hub.session.info.id)
    try:
        listener = await SocketListener.from_socket(listen_privately(path))
    except (OSError, ConfigError) as error:
        warn(f"other terminals cannot join this session: {error}")
        yield
        return
    try:
        async with listener, create_task_group() as tasks:
            tasks.start_soon(_serve, hub, listener, LineMemory(max_line_bytes))
            yield
            tasks.cancel_scope.cancel("the session is closed")
    finally:
        path.unlink(missing_ok=True)


async def _serve(hub: Hub, listener: SocketListener, memory: LineMemory) -> None:
    numbers, here = count(1), set[int]()

    async def serve_one(stream: SocketStream) -> None:
        number = next(numbers)
        try:
            async with stream:
                require_own_user(stream.extra(SocketAttribute.raw_socket))
                if len(here) >= MAX_CLIENTS:
                    error = f"{MAX_CLIENTS} clients have joined the session already; close one of them"
                    await stream.send(line_of(type="response", id="", error=error))
                    return
                here.add(number)
                with memory.lines() as lines:
                    await Connection(stream, lines, Caller(str(number), is_host=True), hub).serve()
        except (BrokenResourceError, ClosedResourceError):
            pass  # a refused client that has left
        except ConfigError as error:
            hub.session.agent.warn(str(error))
        except Exception as error:  # a bug must not end the session of the others
            log.exception("a client of the session failed")
            hub.session.agent.warn(f"a client of the session was dropped after an unexpected {type(error).__name__}")
        finally:
            here.discard(number)

    async with create_task_group() as clients:
        while True:
            with suppress(BrokenResourceError):  # as where this process may open no further file
                await listener.serve(serve_one, clients)
            await anyio.sleep(_REST_S)


def socket_of(folder: Path, session_id: str) -> Path:
    """Return the socket of a session."""
    return folder / f"{session_id}.sock"
