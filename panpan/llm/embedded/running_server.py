"""Finds the server that `panpan local run` keeps running, so that other panpan processes need not start their own.

Where it is and the key for it stand in a private file beside the weights. The rule: the file counts only while its
writer holds the lock beside it. After a crash the lock is gone, and nothing is sent to whoever has the port now.
"""

import fcntl
import json
import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

from panpan.errors import ConfigError
from panpan.llm.embedded.profile import CONTEXT_TOKENS, MODEL_NAME, embedded_profile
from panpan.llm.embedded.server import ServedModel, serving
from panpan.llm.embedded.warm_up import warm_up_request
from panpan.system.file_lock import LockHeldError, LockUnsupportedError, hold_lock
from panpan.system.private import open_private_file

_FILE = "server.json"
_LOCK = "server.lock"
_MAX_BYTES = 10_000


@asynccontextmanager
async def running_or_started(weights: Path) -> AsyncGenerator[ServedModel, None]:
    """Use the server that runs, or serve the embedded model for as long as the context lasts.

    Raises:
        ConfigError: The server could not be started.
    """
    running = running_server(weights.parent)
    if running is not None:
        yield replace(running, has_ended=lambda: running_server(weights.parent) is None)
        return
    async with started(weights) as served:
        yield served


def started(weights: Path, *, port: int = 0, api_key: str | None = None) -> AbstractAsyncContextManager[ServedModel]:
    """Return what serves the embedded model for as long as it is entered.

    Args:
        weights: The GGUF file.
        port: Where to listen; 0: any free port.
        api_key: What clients have to send; None: a new one.
    """
    return serving(
        weights,
        name=MODEL_NAME,
        context_tokens=CONTEXT_TOKENS,
        warm_up=warm_up_request(embedded_profile(), MODEL_NAME),
        port=port,
        api_key=api_key,
    )


@contextmanager
def announced(folder: Path, served: ServedModel) -> Iterator[None]:
    """Let other processes of the same user find a server for as long as the context lasts.

    Args:
        folder: Where the weights are.
        served: The server.

    Raises:
        ConfigError: Another process announces one already, or the files cannot be written.
    """
    try:
        with hold_lock(folder / _LOCK, wait_s=0):
            _write(folder / _FILE, served)
            try:
                yield
            finally:
                (folder / _FILE).unlink(missing_ok=True)
    except LockHeldError as error:
        raise ConfigError(
            f"the embedded model is served already, by process {error.pid}; use that, or end it"
        ) from None


def running_server(folder: Path) -> ServedModel | None:
    """Return the server that another process announces; None where there is none."""
    if not (folder / _FILE).exists():
        return None
    try:
        with hold_lock(folder / _LOCK, wait_s=0, lock=_share):
            return None  # nobody holds it: whoever wrote the file is gone
    except LockUnsupportedError:
        return None
    except LockHeldError:
        return _read(folder / _FILE)


def _share(fd: int, _: int) -> None:
    """Lock so that several may look at once, but not while a server is announced."""
    fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)


def _write(path: Path, served: ServedModel) -> None:
    fd = open_private_file(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        json.dump({"base_url": served.base_url, "api_key": served.api_key}, file)


def _read(path: Path) -> ServedModel | None:
    try:
        with os.fdopen(open_private_file(path, os.O_RDONLY), encoding="utf-8") as file:
            found = json.loads(file.read(_MAX_BYTES))
        return ServedModel(str(found["base_url"]), str(found["api_key"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None  # it has just ended, or has not begun
