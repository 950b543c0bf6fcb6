"""JSON-RPC over two streams, a message a line: requests of the client, and ours to it.

The rule: whatever arrives, the connection goes on. A bad message gets an error, or a line on standard error where the
protocol has no reply for it. Each request gets one reply, and what follows a reply is written after it.
"""

import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import count
from typing import Any, Generic, TypeAlias, TypeVar

import anyio
from acp.exceptions import RequestError
from anyio import CancelScope, create_task_group
from anyio.abc import TaskGroup
from pydantic import BaseModel, ValidationError

from panpan.cli_kit.failures import StdoutWriter, json_line, report_failure
from panpan.cli_kit.stdin import StdinReader
from panpan.errors import ConfigError, PanpanError, unwrap_single_exception
from panpan.faces.mcp_server.turns import unexpected
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass

MAX_MESSAGE_BYTES = 64_000_000
MAX_REQUESTS = 128
"""Most requests of the client that wait for a reply."""
END_S = 10.0
"""Seconds that open requests have for their reply after the end of the input, and replies to be read."""

_MESSAGES_AHEAD = 64
"""Messages that may wait to be written; who sends more waits."""
_MAX_REMEMBERED = 1_000
_MAX_QUOTED_CHARS = 100
METHOD_NOT_FOUND, INTERNAL_ERROR, CANCELLED = -32601, -32603, -32800
_PARSE_ERROR, _INVALID_REQUEST, _INVALID_PARAMS = -32700, -32600, -32602
_CANCEL = "$/cancel_request"
_GONE = (anyio.ClosedResourceError, anyio.BrokenResourceError)

ParamsT = TypeVar("ParamsT", bound=BaseModel)
Id: TypeAlias = int | str | None


@dataclass(frozen=True, slots=True)
class Reply:
    """Reply to a request."""

    result: BaseModel | None = None
    """The result; None for an empty one."""
    then: Callable[[], Awaitable[None]] | None = None
    """Sends what comes right behind the reply."""


@dataclass(frozen=True, slots=True)
class Method(Generic[ParamsT]):
    """A method that the client may call."""

    params: type[ParamsT]
    call: Callable[[ParamsT], Awaitable[Reply]]
    """Raises `RequestError`, or `PanpanError` for an internal error."""
    is_notification: bool = False


class ClientError(Exception):
    """The client answered a request with an error, withdrew, or is gone."""


class _Asked:
    """A request to the client that waits for its reply."""

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.result: Any = None
        self.error = "the client is gone"

    def close(self, result: Any, error: str) -> None:
        self.result, self.error = result, error
        self.done.set()


class Connection:
    """Exchanges messages with a client.

    Args:
        stdin: Where its messages come from.
        stdout: Where ours go.
        warn: Prints one line on standard error.
    """

    def __init__(self, stdin: StdinReader, stdout: StdoutWriter, warn: Callable[[str], None]) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._warn = warn
        self._methods: Mapping[str, Method[Any]] = {}
        self._ids = count(1)
        self._asked: dict[int, _Asked] = {}
        self._withdrawn: deque[int] = deque(maxlen=_MAX_REMEMBERED)
        """Ids of requests that we gave up; the client may answer them all the same."""
        self._open: dict[Id, CancelScope] = {}
        """Requests of the client that run."""
        self._no_more = anyio.Event()
        self._send, self._receive = anyio.create_memory_object_stream[str](_MESSAGES_AHEAD)

    async def serve(self, methods: Mapping[str, Method[Any]], at_end: Callable[[], None]) -> None:
        """Answer requests until the input ends or nobody reads.

        Args:
            methods: Methods by name.
            at_end: Called when the input has ended, before open requests get some seconds for their reply.
        """
        self._methods = methods
        with unwrap_single_exception(), self._send, self._receive:
            async with create_task_group() as group:
                group.start_soon(self._write, group.cancel_scope)
                async with create_task_group() as requests:
                    await self._read(requests)
                    self._no_more.set()
                    for asked in self._asked.values():
                        asked.done.set()
                    at_end()
                    requests.cancel_scope.deadline = anyio.current_time() + END_S
                self._send.close()  # the rest is written, if somebody reads
                group.cancel_scope.deadline = anyio.current_time() + END_S

    async def request(self, method: str, params: BaseModel) -> Any:
        """Send a request and return the result of the reply; cancelling withdraws it.

        Raises:
            ClientError: The client answered with an error, or is gone.
        """
        if self._no_more.is_set():
            raise ClientError("the client is gone")
        number, asked = next(self._ids), _Asked()
        self._asked[number] = asked
        try:
            await self._tell({"id": number, "method": method, "params": dump(params)})
            await asked.done.wait()
        except BaseException:
            self._withdraw(number)
            raise
        finally:
            self._asked.pop(number, None)
        if asked.error:
            raise ClientError(asked.error)
        return asked.result

    async def notify(self, method: str, params: BaseModel) -> None:
        await self._tell({"method": method, "params": dump(params)})

    def _withdraw(self, number: int) -> None:
        self._withdrawn.append(number)
        with suppress(anyio.WouldBlock, *_GONE):  # it is told as well as it can be
            self._send.send_nowait(_line({"method": _CANCEL, "params": {"requestId": number}}))

    async def _tell(self, message: Mapping[str, Any]) -> None:
        with suppress(*_GONE):  # nobody reads any more, and the connection ends
            await self._send.send(_line(message))

    async def _write(self, scope: CancelScope) -> None:
        try:
            async for line in self._receive:
                await self._stdout.write(line)
        except BrokenPipeError:
            scope.cancel("nobody reads")

    async def _read(self, group: TaskGroup) -> None:
        while True:
            try:
                line = await self._stdin.line(max_bytes=MAX_MESSAGE_BYTES)
            except ConfigError:
                await self._stdin.skip_line()
                await self._refuse(None, _INVALID_REQUEST, f"a message has more than {MAX_MESSAGE_BYTES:,} bytes")
                continue
            if line is None:
                return
            if line.strip():
                await self._take(line, group)

    async def _take(self, line: bytes, group: TaskGroup) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
            await self._refuse(None, _PARSE_ERROR, f"a line is no JSON: {reason[:_MAX_QUOTED_CHARS]}")
            return
        match message:
            case {"jsonrpc": "2.0", "method": str(method)} if "id" not in message:
                self._take_notification(method, message.get("params"), group)
            case {"jsonrpc": "2.0", "method": str(method), "id": key} if _is_id(key):
                await self._take_request(key, method, message.get("params"), group)
            case {"jsonrpc": "2.0", "id": key} if "method" not in message and {"result", "error"} & message.keys():
                self._take_reply(key, message)
            case _:
                given = message.get("id") if isinstance(message, dict) else None
                await self._refuse(
                    given if _is_id(given) else None,
                    _INVALID_REQUEST,
                    'this is no message of JSON-RPC 2.0; it needs "jsonrpc", and a method, a result or an error',
                )

    def _take_notification(self, method: str, params: Any, group: TaskGroup) -> None:
        if method == _CANCEL:
            given = params.get("requestId") if isinstance(params, dict) else None
            if _is_id(given) and (scope := self._open.get(given)) is not None:
                scope.cancel("the client has cancelled the request")
            return
        known = self._methods.get(method)
        if known is not None and known.is_notification:
            group.start_soon(self._run_notification, method, known, params)
        elif not method.startswith(("$/", "_")):
            self._warn(f"the client sent {_quoted(method)}, which is not known; it has no effect")

    async def _run_notification(self, name: str, method: Method[Any], params: Any) -> None:
        try:
            with unwrap_single_exception():
                await method.call(parsed(method, params))
        except (RequestError, PanpanError) as error:
            self._warn(f"{name} has no effect: {error}")
        except Exception as error:
            report_failure(error)

    async def _take_request(self, key: Id, name: str, params: Any, group: TaskGroup) -> None:
        method = self._methods.get(name)
        if key in self._open:
            await self._refuse(None, _INVALID_REQUEST, f"the request {_quoted(key)} is not answered yet; use a new id")
        elif method is None or method.is_notification:
            await self._refuse(key, METHOD_NOT_FOUND, f"there is no method {_quoted(name)}")
        elif len(self._open) >= MAX_REQUESTS:
            await self._refuse(key, INTERNAL_ERROR, f"{MAX_REQUESTS} requests are open; wait for a reply")
        else:
            self._open[key] = CancelScope()
            group.start_soon(self._answer, key, method, params)

    async def _answer(self, key: Id, method: Method[Any], params: Any) -> None:
        reply = Reply()
        problem: RequestError | None = None
        with self._open[key] as scope:
            try:
                with unwrap_single_exception():
                    reply = await method.call(parsed(method, params))
            except RequestError as error:
                problem = error
            except PanpanError as error:
                problem = RequestError(INTERNAL_ERROR, str(error))
            except Exception as error:  # the client gets no traceback
                report_failure(error)
                problem = RequestError(INTERNAL_ERROR, unexpected(error))
        del self._open[key]
        if scope.cancelled_caught:
            problem = RequestError(CANCELLED, "the request was cancelled")
        if problem is not None:
            await self._refuse(key, problem.code, str(problem), problem.data)
            return
        await self._tell({"id": key, "result": {} if reply.result is None else dump(reply.result)})
        if reply.then is not None:
            await reply.then()

    def _take_reply(self, key: Any, message: Mapping[str, Any]) -> None:
        asked = self._asked.get(key) if type(key) is int else None
        if asked is None or asked.done.is_set():
            if key not in self._withdrawn:
                self._warn(f"the client answered the request {_quoted(key)}, which is not open; it has no effect")
        elif "error" not in message:
            asked.close(message["result"], "")
        else:
            error = message["error"]
            said = error.get("message") if isinstance(error, dict) else None
            asked.close(None, clean_line(str(said or "the client could not answer"))[:1_000])

    async def _refuse(self, key: Id, code: int, text: str, data: Any = None) -> None:
        error = {"code": code, "message": text}
        await self._tell({"id": key, "error": error if data is None else {**error, "data": data}})


def dump(value: BaseModel) -> Any:
    """Return a value of the protocol as JSON."""
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def invalid(text: str) -> RequestError:
    """Return the error of a request that cannot be carried out as it is."""
    return RequestError(_INVALID_PARAMS, text)


def parsed(method: Method[ParamsT], params: Any) -> ParamsT:
    """Return the parameters of a call.

    Raises:
        RequestError: They do not fit the method.
    """
    if params is not None and not isinstance(params, dict):
        raise invalid("params is no object")
    try:
        return method.params.model_validate(params or {})
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)[:5]
        said = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in problems)
        raise invalid(clean_line(said)[:1_000]) from error


def _line(message: Mapping[str, Any]) -> str:
    return json_line({"jsonrpc": "2.0", **message})


def _is_id(value: Any) -> bool:
    return value is None or isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))


def _quoted(value: object) -> str:
    return clean_line(str(value))[:_MAX_QUOTED_CHARS]
