"""The model server: HTTP on a loopback port, in threads of its own, so that sync and async tests can use it alike.

It plays a script, validates requests as the real APIs do, and records them. A request after the end of the script gets
an error that says so, and also fails the `with` block; so does a fault of the server itself.
"""

import json
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.model_server.anthropic_wire import AnthropicDialect
from tests.model_server.openai_wire import OpenAIDialect
from tests.model_server.playing import ClientLeftError, Playback
from tests.model_server.recording import RecordedRequest
from tests.model_server.script import Hangup, HttpError, Reply, Script, Step
from tests.model_server.wire import Dialect, RequestRefused, unique_of

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER with no time: close() sends RST


class ModelServer:
    """A running server; made by `serving`.

    Args:
        script: Answers to requests.
        api_key: The only key it accepts; None: any.
        models: Names that GET /v1/models lists.
        probes: JSON answers to GET of other paths, such as /api/tags, as the local servers give them.
        input_tokens: Answer of count_tokens; None: a quarter of the request's bytes.
        finished: Called with each request when its answer is written.
    """

    def __init__(
        self,
        script: Script,
        *,
        api_key: str | None = None,
        models: Sequence[str] = ("scripted-model",),
        probes: Mapping[str, Any] | None = None,
        input_tokens: int | None = None,
        finished: Callable[[RecordedRequest], None] | None = None,
    ) -> None:
        self.requests: list[RecordedRequest] = []
        """Requests to a model in the order of arrival, including refused ones."""
        self.other_requests: list[RecordedRequest] = []
        """All other requests: counts, lists, probes."""
        self.refusals: list[str] = []
        """Reasons for refusing invalid requests."""
        self.problems: list[str] = []
        """Problems that fail the test whatever it asserts: a script that is too short, or a failure of the server."""
        self._answer = script if callable(script) else None
        self._steps = iter(()) if callable(script) else iter(script)
        self._api_key = api_key
        self._models = models
        self._probes = dict(probes or {})
        self._input_tokens = input_tokens
        self._finished = finished
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """Address for the Messages API, whose clients add /v1 themselves."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        """Address for the chat completions API."""
        return f"{self.url}/v1"

    @property
    def port(self) -> int:
        """Port on 127.0.0.1."""
        return int(self._http.server_address[1])

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Close the port and all connections, and wait for their threads."""
        self._stopping.set()
        self._http.shutdown()
        self._http.server_close()
        self._http.close_connections()
        self._thread.join(5)

    def next_step(self, request: RecordedRequest) -> Step:
        """Record a request, and return its answer."""
        with self._lock:
            self.requests.append(request)
            if self._answer is not None:
                return self._answer(request)
            step = next(self._steps, None)
            if step is not None:
                return step
            number = len(self.requests)
            problem = f"model server: the script is over, and request {number} came: {request.raw[-300:]!r}"
            self.problems.append(problem)
            # Not a 500, which a client would retry several times before the test could see the text.
            return HttpError(400, problem)

    def other_answer(self, request: RecordedRequest) -> Any:
        """Return the JSON for a request that is not to a model, if there is any."""
        self.other_requests.append(request)
        path = request.path.partition("?")[0]
        if request.method == "POST" and path.endswith("/messages/count_tokens"):
            count = len(request.raw) // 4 if self._input_tokens is None else self._input_tokens
            return {"input_tokens": count}
        if request.method == "GET" and path in self._probes:
            return self._probes[path]
        if request.method == "GET" and path == "/v1/models" and self._models:
            return {
                "object": "list",
                "data": [{"id": name, "object": "model", "type": "model"} for name in self._models],
            }
        return None

    def check(self, dialect: Dialect, request: RecordedRequest) -> HttpError | None:
        """Return the real API's error for an invalid request; None if the request is valid."""
        try:
            dialect.check(request.headers, request.body, self._api_key)
        except RequestRefused as refusal:
            self.refusals.append(str(refusal))
            return refusal.answer
        return None

    def takes_key_of(self, request: RecordedRequest) -> bool:
        """Return True if a request that is not to a model has the right key."""
        key = request.headers.get("x-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")
        return self._api_key in (None, key)

    def note_finished(self, request: RecordedRequest) -> None:
        """Call `finished`, since the answer is written."""
        if self._finished is not None:
            self._finished(request)

    def wait(self, connection: socket.socket, seconds: float | None) -> None:
        """Pause for a time (None: for ever), unless the client leaves or the server is stopped.

        Raises:
            ClientLeftError: The client left, or the server is being stopped.
        """
        end = None if seconds is None else time.monotonic() + seconds
        while not self._stopping.is_set():
            left = 0.05 if end is None else min(0.05, end - time.monotonic())
            if left <= 0:
                return
            readable, _, _ = select.select([connection], [], [], left)
            if readable and not connection.recv(1, socket.MSG_PEEK):
                break
            if readable:
                self._stopping.wait(left)  # a pipelined request: it is read when this answer is done
        raise ClientLeftError


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    owner: ModelServer

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._open: dict[threading.Thread, socket.socket] = {}

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(target=self.process_request_thread, args=(request, client_address), daemon=True)
        self._open = {worker: open_ for worker, open_ in self._open.items() if worker.is_alive()} | {thread: request}
        thread.start()

    def close_connections(self) -> None:
        for thread, connection in self._open.items():
            with suppress(OSError):  # closed already
                connection.shutdown(socket.SHUT_RDWR)
            thread.join(5)

    def handle_error(self, request: Any, client_address: Any) -> None:
        import traceback

        self.owner.problems.append(f"model server failed: {traceback.format_exc()}")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Http

    def log_message(self, *_: Any) -> None:
        """Say nothing: the requests are recorded."""

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:
            self.close_connection = True  # the client left, or the server is stopping

    def parse_request(self) -> bool:
        self.began_at = time.monotonic()
        return super().parse_request()

    def do_GET(self) -> None:
        self._answer_other(self._recorded())

    def do_POST(self) -> None:
        request = self._recorded()
        path = request.path.partition("?")[0]
        if path.endswith("/messages"):
            self._answer_model(request, AnthropicDialect())
        elif path.endswith("/chat/completions"):
            self._answer_model(request, OpenAIDialect())
        else:
            self._answer_other(request)

    def _recorded(self) -> RecordedRequest:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        return RecordedRequest(self.command, self.path, headers, raw, self.began_at, time.monotonic())

    def _answer_other(self, request: RecordedRequest) -> None:
        answer, status = self.server.owner.other_answer(request), 200
        if not self.server.owner.takes_key_of(request):
            error = {"type": "authentication_error", "message": "invalid x-api-key"}
            answer, status = {"type": "error", "error": error}, 401
        elif answer is None:
            answer, status = {"error": "not found"}, 404
        self._send_whole(status, json.dumps(answer).encode(), {})
        self._finish(request)

    def _answer_model(self, request: RecordedRequest, dialect: Dialect) -> None:
        owner = self.server.owner
        refusal = owner.check(dialect, request)
        if refusal is None:
            step = owner.next_step(request)
        else:
            owner.requests.append(request)
            step = refusal
        try:
            self._play(step, request, dialect)
        except (ClientLeftError, OSError):
            request.client_left = True
            self.close_connection = True
        self._finish(request)

    def _finish(self, request: RecordedRequest) -> None:
        request.finished_at = None if request.client_left else time.monotonic()
        self.server.owner.note_finished(request)

    def _play(self, step: Step, request: RecordedRequest, dialect: Dialect) -> None:
        request_id = f"req_{unique_of(request.raw)}"
        match step:
            case HttpError():
                body = step.body
                if body is None:
                    body = json.dumps(dialect.error_body(step, request_id)).encode()
                self._send_whole(step.status, body, {dialect.request_id_header: request_id, **step.headers})
            case Hangup(how=how):
                self._hang_up(is_reset=how == "reset")
            case Reply():
                self._send_stream_headers({dialect.request_id_header: request_id})
                playback = Playback(step, dialect, self.wfile.write, self._wait)
                ending = playback.play(request.body, unique_of(request.raw))
                if ending == "whole":
                    self.wfile.write(b"0\r\n\r\n")
                else:
                    self._hang_up(is_reset=ending == "reset")

    def _send_whole(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response_only(status)
        lower = {name.lower() for name in headers}
        if "content-type" not in lower:
            self.send_header("content-type", "application/json")
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _send_stream_headers(self, headers: dict[str, str]) -> None:
        self.send_response_only(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("cache-control", "no-cache")
        self.send_header("transfer-encoding", "chunked")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _hang_up(self, *, is_reset: bool) -> None:
        self.close_connection = True
        if is_reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            # Not left to socketserver, which sends a FIN first and so makes the reset invisible.
            os.close(self.connection.detach())
        else:
            self.connection.shutdown(socket.SHUT_WR)

    def _wait(self, seconds: float | None) -> None:
        self.server.owner.wait(self.connection, seconds)


@contextmanager
def serving(script: Script, **options: Any) -> Iterator[ModelServer]:
    """Run a model server for the length of a `with` block; `options` are those of `ModelServer`.

    Raises:
        AssertionError: At the end, if the script was too short or the server failed.
    """
    server = ModelServer(script, **options)
    server.start()
    try:
        yield server
    finally:
        server.stop()
    assert not server.problems, "\n".join(server.problems)
