"""Starts the server of the embedded model as a child process, and ends it.

The rule: the child lives no longer than whoever entered `serving`. It reads from a pipe that only this process holds,
and ends when that closes, also after a crash; leaving the context closes it and, should that not help, kills the child.
"""

import errno
import json
import secrets
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import field
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import anyio
from anyio import CancelScope, move_on_after
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from panpan.capabilities.local_model.machine import require_machine
from panpan.capabilities.local_model.order import Order, WarmUp
from panpan.capabilities.local_model.warm_up import prefix_key
from panpan.errors import ConfigError
from panpan.system.environment import child_environment
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.dataclass import dataclass

START_TIMEOUT_S = 300.0
"""Reading 1.1 GB from a slow disk takes a minute, and the first warm-up up to three; most starts take 3 to 7 s."""

_END_S = 2.0
_MAX_ADDRESS_BYTES = 10_000
_MAX_REASON_CHARS = 300


@dataclass(frozen=True, slots=True)
class ServedModel:
    """Where the embedded model is served."""

    base_url: str
    """For chat completions, with its `/v1`."""
    api_key: str = field(repr=False)
    """Made for this run, so that no other user of the machine can use the server."""
    has_ended: Callable[[], bool] = lambda: False
    """Whether the server is gone, as far as whoever started it can tell."""


@asynccontextmanager
async def serving(
    weights: Path,
    *,
    name: str,
    context_tokens: int,
    warm_up: dict[str, Any] | None = None,
    port: int = 0,
    api_key: str | None = None,
) -> AsyncGenerator[ServedModel, None]:
    """Serve a model on the loopback address while the context lasts.

    Args:
        weights: The GGUF file.
        name: What the server calls the model.
        context_tokens: Tokens of its context window.
        warm_up: A chat completion that the server is to read before it is ready; what it read is kept beside the
            weights for the next start.
        port: Where to listen; 0: any free port.
        api_key: What clients have to send; None: a new one.

    Raises:
        ConfigError: The machine cannot run it, the port is taken, or the server could not be started.
    """
    require_machine()
    _require_free(port)
    key = secrets.token_urlsafe(24) if api_key is None else api_key
    template = files(__package__).joinpath("tool_calls.jinja").read_text(encoding="utf-8")
    order = Order(
        weights=str(weights),
        name=name,
        template=template,
        context_tokens=context_tokens,
        port=port,
        api_key=key,
        warm_up=None if warm_up is None else WarmUp(warm_up, prefix_key(weights.name, warm_up, template)),
    )
    with TemporaryFile() as log:
        process = await _started(log)
        try:
            address = await _address(process, order, log)
            yield ServedModel(f"{address}/v1", key, lambda: process.returncode is not None)
        finally:
            await _end(process)


def _require_free(port: int) -> None:
    """Find out before the model is loaded, which takes seconds, and in words that the runtime does not have."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as a server does: what has just ended is free
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as exc:
            taken = exc.errno == errno.EADDRINUSE
            reason = "another program listens there" if taken else exc.strerror
            raise ConfigError(f"the port {port} cannot be used: {reason}; name another one, or none") from exc


async def _started(log: IO[bytes]) -> Process:
    # -P: the folder that panpan works in must not be a place for modules
    command = [sys.executable, "-P", "-m", "panpan.capabilities.local_model.serve"]
    with CancelScope(shield=True):  # a cancelled start would leave a process that nobody knows
        return await anyio.open_process(command, stderr=log, env=child_environment(), start_new_session=True)
    raise AssertionError("a shielded scope swallows nothing")


async def _address(process: Process, order: Order, log: IO[bytes]) -> str:
    """Tell the child what to serve, and return where it does; it says so once the model is loaded."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with anyio.fail_after(START_TIMEOUT_S):
            await process.stdin.send(order.line())
            line = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", _MAX_ADDRESS_BYTES)
    except TimeoutError:
        raise ConfigError(f"the embedded model was not ready after {START_TIMEOUT_S:.0f} s") from None
    except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError):
        with move_on_after(_END_S):
            await process.wait()
        raise ConfigError(f"the embedded model could not be started: {_reason(process.returncode, log)}") from None
    except anyio.DelimiterNotFound:
        line = b""
    try:
        return str(json.loads(line)["address"])
    except (ValueError, TypeError, KeyError):  # something that Python loads at its start prints, say
        raise ConfigError("the embedded model could not be started: its server does not say where it is") from None


def _reason(exit_code: int | None, log: IO[bytes]) -> str:
    if exit_code == -signal.SIGILL:
        return "this processor lacks instructions that the runtime needs (AVX2)"
    if exit_code == -signal.SIGKILL:
        return "it was killed, most likely for want of memory; it needs about 2.5 GB"
    log.seek(0)
    lines = [line for line in log.read().decode("utf-8", "replace").splitlines() if line.strip()]
    telling = [line for line in lines if "error" in line.lower() or "fail" in line.lower()]
    last = (telling or lines or ["it said nothing"])[-1]
    return clean_for_terminal(last).strip()[:_MAX_REASON_CHARS]


async def _end(process: Process) -> None:
    with CancelScope(shield=True):
        if process.stdin is not None:
            await process.stdin.aclose()
        with move_on_after(_END_S):
            await process.wait()
        if process.returncode is None:
            process.kill()
            await process.wait()
        await process.aclose()
