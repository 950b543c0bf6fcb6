"""The server of the embedded model: started as a child process, found where it runs already, warmed up, and ended."""

import errno
import fcntl
import json
import os
import secrets
import signal
import socket
import sys
import tomllib
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import field, replace
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import anyio
from anyio import CancelScope, move_on_after
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from panpan.capabilities.local_model.serve import ServeConfig, WarmUp
from panpan.capabilities.local_model.weight_store import WeightStore, require_machine
from panpan.errors import ConfigError
from panpan.models.model_choice import is_loopback
from panpan.models.provider_kind import ModelProfile
from panpan.models.providers.openai_request import OpenAIEncoder
from panpan.models.providers.vendor_profiles import LLAMA_CPP
from panpan.models.wire import WireHistory, joined_body
from panpan.system.environment import child_environment
from panpan.system.files.file_lock import LockHeldError, LockUnsupportedError, hold_lock
from panpan.system.files.folder_tree import open_private_file
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.content import TextBlock, ToolResultBlock, ToolUseBlock
from panpan.types.dataclass import dataclass
from panpan.types.llm import ModelOptions, ToolDefinition
from panpan.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage

# Start the server of the embedded model as a child process, and stop it. The child never outlives the process that
# entered `serve_model`: it reads from a pipe that only this process holds, and exits when that closes, even after a
# crash. Leaving the context closes the pipe and, if that does not help, kills the child.

START_TIMEOUT_S = 300.0
"""Reading 1.1 GB from a slow disk takes a minute, and the first warm-up up to three; most starts take 3 to 7 s."""

_END_S = 2.0
_MAX_ADDRESS_BYTES = 10_000
_MAX_REASON_CHARS = 300


@dataclass(frozen=True, slots=True)
class ServedModel:
    """Address and key of the server of the embedded model."""

    base_url: str
    """Base address for chat completions, including `/v1`."""
    api_key: str = field(repr=False)
    """Made for this run, so that no other user of the machine can use the server."""
    has_ended: Callable[[], bool] = lambda: False
    """True if the server is gone, as far as whoever started it can tell."""


@asynccontextmanager
async def serve_model(
    weights: Path,
    *,
    name: str,
    context_tokens: int,
    warm_up: dict[str, Any] | None = None,
    port: int = 0,
    api_key: str | None = None,
) -> AsyncGenerator[ServedModel, None]:
    """Serve a model on the loopback address while the context lasts.

    What the server reads of `warm_up` before it is ready is kept beside the weights for the next start. Port 0 is any
    free port, and without `api_key` there is a new one.

    Raises:
        ConfigError: The machine cannot run it, the port is taken, or the server could not be started.
    """
    require_machine()
    _require_free(port)
    key = secrets.token_urlsafe(24) if api_key is None else api_key
    template = files(__package__).joinpath("tool_calls.jinja").read_text(encoding="utf-8")
    config = ServeConfig(
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
            address = await _address(process, config, log)
            yield ServedModel(f"{address}/v1", key, lambda: process.returncode is not None)
        finally:
            await _end(process)


def _require_free(port: int) -> None:
    """Find out before the model is loaded, which takes seconds, and in words that the runtime does not have."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: a just released port is free
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as exc:
            taken = exc.errno == errno.EADDRINUSE
            reason = "another program listens there" if taken else exc.strerror
            raise ConfigError(f"the port {port} cannot be used: {reason}; name another one, or none") from exc


async def _started(log: IO[bytes]) -> Process:
    # -P: do not import modules from panpan's working directory
    command = [sys.executable, "-P", "-m", "panpan.capabilities.local_model.serve"]
    with CancelScope(shield=True):  # a cancelled start would leave an unknown process
        return await anyio.open_process(command, stderr=log, env=child_environment(), start_new_session=True)
    raise AssertionError("a shielded scope swallows nothing")


async def _address(process: Process, config: ServeConfig, log: IO[bytes]) -> str:
    """Tell the child what to serve, and return where it does; it says so once the model is loaded."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with anyio.fail_after(START_TIMEOUT_S):
            await process.stdin.send(config.line())
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
    except (ValueError, TypeError, KeyError):  # such as a line that a module prints when Python starts
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


# Find the server that `panpan local run` keeps running, so that other panpan processes need not start their own. A
# private file beside the weights has its address and key. The file counts only while its writer holds the lock beside
# it: after a crash the lock is free, and nothing is sent to the new owner of the port.

_FILE = "server.json"
_LOCK = "server.lock"
_MAX_BYTES = 10_000
_LOCK_WAIT_S = 0.5
"""Whoever looks for a server after a crash holds the lock for a moment, too."""


@asynccontextmanager
async def use_or_start_server(store: WeightStore) -> AsyncGenerator[ServedModel, None]:
    """Use the server that runs, or serve the embedded model for as long as the context lasts.

    Raises:
        ConfigError: The weights are not the right ones, or the server could not be started.
    """
    running = running_server(store.folder)
    if running is not None:  # a new server would have another address and key
        yield replace(running, has_ended=lambda: running_server(store.folder) != running)
        return
    weights = await anyio.to_thread.run_sync(store.check, abandon_on_cancel=True)
    async with start_server(weights) as served:
        yield served


def start_server(
    weights: Path, *, port: int = 0, api_key: str | None = None
) -> AbstractAsyncContextManager[ServedModel]:
    """Serve the embedded model for as long as the context lasts; see `serve_model`."""
    return serve_model(
        weights,
        name=MODEL_NAME,
        context_tokens=CONTEXT_TOKENS,
        warm_up=warm_up_request(embedded_profile(), MODEL_NAME),
        port=port,
        api_key=api_key,
    )


@contextmanager
def announce(folder: Path, served: ServedModel) -> Iterator[None]:
    """Let other processes of the same user find a server for as long as the context lasts.

    Raises:
        ConfigError: Another process announces one already, or the files cannot be written.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(hold_lock(folder / _LOCK, wait_s=_LOCK_WAIT_S))
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
            return None  # the lock is free, so the writer of the file has ended
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
    with suppress(OSError):  # without the lock the file does not count
        path.unlink()


def _read(path: Path) -> ServedModel | None:
    try:
        with os.fdopen(open_private_file(path, os.O_RDONLY), encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return None  # in a cache that users share, the writer would get the conversation
            found = json.loads(file.read(_MAX_BYTES))
        served = ServedModel(str(found["base_url"]), str(found["api_key"]))
        return served if is_loopback(served.base_url) else None
    except (OSError, ConfigError, ValueError, KeyError, TypeError, RecursionError):
        return None  # the server has just ended, or has not started yet


# The embedded model's prompt, few tools and worked examples, all from `profile.toml`. They are data, so that they can
# be changed and measured (`make eval`) without touching code.

MODEL_NAME = "local"

CONTEXT_TOKENS = 8_192
"""Context window of the server; a larger one would take more memory than a laptop has to spare."""

MAX_OUTPUT_TOKENS = 1_500
"""Most tokens of one reply: a minute on two cores, and a small model that writes more has lost its way."""

BANNER = (
    "small local model: good for look-ups, small edits and renames; it does not find bugs, and its word is not proof"
)

_MAX_RESULT_CHARS = 6_000  # a quarter of the context


@dataclass(frozen=True, slots=True)
class EmbeddedProfile:
    """Prompt, tools and worked examples that are sent to the embedded model besides the conversation."""

    model: ModelProfile
    examples: tuple[Message, ...]
    """Sent before the conversation, in every request; never in its log."""


@cache
def embedded_profile() -> EmbeddedProfile:
    """Return the profile that panpan ships."""
    table = tomllib.loads(files(__package__).joinpath("profile.toml").read_text(encoding="utf-8"))
    tools = {tool["name"]: _definition(tool) for tool in table["tools"]}
    model = ModelProfile(
        name="small",
        system_prompt=table["system"],
        tools=tools,
        max_result_chars=_MAX_RESULT_CHARS,
        fits_window=True,
        temperature=0.0,
        banner=BANNER,
    )
    examples = [
        message for number, example in enumerate(table["examples"]) for message in _conversation(number, example)
    ]
    return EmbeddedProfile(model, tuple(examples))


def _definition(tool: Mapping[str, Any]) -> ToolDefinition:
    parameters: Mapping[str, str] = tool["parameters"]
    schema = {
        "type": "object",
        "properties": {name: _type(kind) for name, kind in parameters.items()},
        "required": [name for name, kind in parameters.items() if kind != "boolean"],
    }
    return ToolDefinition(tool["name"], tool["description"], schema)


def _type(kind: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}} if kind == "strings" else {"type": kind}


def _conversation(number: int, example: Mapping[str, Any]) -> Iterator[Message]:
    yield UserMessage.of(example["prompt"])
    for position, step in enumerate(example["steps"]):
        if "answer" in step:
            yield AssistantMessage(content=(TextBlock(text=step["answer"]),), model="example", stop_reason="end_turn")
            continue
        call = step["call"]
        use = ToolUseBlock(id=f"example_{number}_{position}", name=call["name"], input=dict(call["arguments"]))
        yield AssistantMessage(content=(use,), model="example", stop_reason="tool_use")
        result = ToolResultBlock(tool_use_id=use.id, content=(TextBlock(text=step["result"]),))
        yield ToolResultMessage(result=result)


# The request that makes the server read the beginning of every conversation in advance. The result is kept in a file
# beside the weights, so that later starts load it: some 100 ms in place of 15 s per thousand tokens on two cores. The
# file contains only panpan's own text, never a user's.


def warm_up_request(profile: EmbeddedProfile, model: str) -> dict[str, Any]:
    """Return a request with the beginning that a new conversation has, for a reply of one token."""
    encoder = OpenAIEncoder(LLAMA_CPP)
    options = ModelOptions(model=model, max_output_tokens=1, temperature=0.0)
    tools = tuple((profile.model.tools or {}).values())
    head = encoder.encode_head(options, profile.model.system_prompt or "", tools, is_stream=False)
    history = WireHistory(lambda reply: encoder.encode_reply(reply, model=model), encoder.encode_user_side)
    groups = history.groups([*profile.examples, UserMessage.of("hello")])
    request: dict[str, Any] = json.loads(joined_body(head, [group.data for group in groups]))
    return request


def prefix_key(weights: str, request: dict[str, Any], template: str) -> str:
    """Return a digest of weights, request and template, for the file that keeps what the model has read of it."""
    return blake2b(json.dumps([weights, request, template]).encode(), digest_size=8).hexdigest()
