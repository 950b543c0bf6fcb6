"""Finds the server that `panpan local run` keeps running, so that other panpan processes need not start their own.

Where it is and the key for it stand in a private file beside the weights. The rule: the file counts only while its
writer holds the lock beside it. After a crash the lock is gone, and nothing is sent to whoever has the port now.
"""

import fcntl
import json
import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import anyio

from panpan.capabilities.local_model.server import ServedModel, serving
from panpan.capabilities.local_model.warm_up import CONTEXT_TOKENS, MODEL_NAME, embedded_profile, warm_up_request
from panpan.capabilities.local_model.weight_store import WeightStore
from panpan.errors import ConfigError
from panpan.models.model_choice import is_loopback
from panpan.system.files.file_lock import LockHeldError, LockUnsupportedError, hold_lock
from panpan.system.files.private import open_private_file

_FILE = "server.json"
_LOCK = "server.lock"
_MAX_BYTES = 10_000
_LOOK_S = 0.5
"""Whoever looks for a server after a crash holds the lock for a moment, too."""


@asynccontextmanager
async def running_or_started(store: WeightStore) -> AsyncGenerator[ServedModel, None]:
    """Use the server that runs, or serve the embedded model for as long as the context lasts.

    Raises:
        ConfigError: The weights are not the right ones, or the server could not be started.
    """
    running = running_server(store.folder)
    if running is not None:  # another one in its place has another address and key
        yield replace(running, has_ended=lambda: running_server(store.folder) != running)
        return
    weights = await anyio.to_thread.run_sync(store.check, abandon_on_cancel=True)
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
    with ExitStack() as stack:
        try:
            stack.enter_context(hold_lock(folder / _LOCK, wait_s=_LOOK_S))
            stack.callback(_forget, folder / _FILE)
            _write(folder / _FILE, served)
        except LockHeldError as error:
            raise ConfigError(
                f"the embedded model is served already, by process {error.pid}; use that, or end it"
            ) from None
        except OSError as exc:
            raise ConfigError(f"cannot write {folder / _FILE}: {exc.strerror}") from exc
        yield


def running_server(folder: Path) -> ServedModel | None:
    """Return the server that another process announces; None where there is none."""
    if not (folder / _FILE).exists():
        return None
    try:
        with hold_lock(folder / _LOCK, wait_s=0, lock=_share):
            return None  # nobody holds it: whoever wrote the file is gone
    except LockHeldError:
        return _read(folder / _FILE)
    except (LockUnsupportedError, ConfigError):  # a file system without locks; files of another user
        return None


def _share(fd: int, _: int) -> None:
    """Lock so that several may look at once, but not while a server is announced."""
    fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)


def _write(path: Path, served: ServedModel) -> None:
    fd = open_private_file(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        json.dump({"base_url": served.base_url, "api_key": served.api_key}, file)


def _forget(path: Path) -> None:
    with suppress(OSError):  # without the lock it counts for nothing
        path.unlink()


def _read(path: Path) -> ServedModel | None:
    try:
        with os.fdopen(open_private_file(path, os.O_RDONLY), encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return None  # in a cache that users share: whoever wrote it would get the conversation
            found = json.loads(file.read(_MAX_BYTES))
        served = ServedModel(str(found["base_url"]), str(found["api_key"]))
        return served if is_loopback(served.base_url) else None
    except (OSError, ConfigError, ValueError, KeyError, TypeError, RecursionError):
        return None  # it has just ended, or has not begun
