"""Fake of the embedded model's runtime, in the process that panpan starts for it.

The weights are a JSON object with instructions, see `tests.fakes.runtime_weights`; requests are written to files beside
them.
"""

import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ANSWERED: dict[str, list[Any]] = {"replies": []}


class CommonParams:
    def __init__(self) -> None:
        self.model = SimpleNamespace(path="")
        self.cpuparams = SimpleNamespace(n_threads=0, poll=50)
        self.cpuparams_batch = SimpleNamespace(n_threads=0, poll=50)
        self.hostnames: list[str] = []
        self.api_keys: list[str] = []
        self.port = 8080
        self.slot_save_path = ""


class Server:
    def __init__(self, params: CommonParams) -> None:
        os.write(1, b"loading the model\n")  # like the real one; it must not spoil the line with the address
        weights = Path(params.model.path)
        order = json.loads(weights.open("rb").read(100_000).partition(b"\0")[0])
        note = {
            "pid": os.getpid(),
            "environment": dict(os.environ),
            "parameters": {name: value for name, value in vars(params).items() if isinstance(value, (int, str, list))},
            "modules": [str(getattr(sys.modules[name], "__file__", "")) for name in ("json", "panpan", __name__)],
        }
        _append(weights, "starts", note)
        if "signal" in order:
            os.kill(os.getpid(), getattr(signal, order["signal"]))
        if "failure" in order:
            raise RuntimeError(order["failure"])
        self._http = _Http((params.hostnames[0], params.port), _Handler)
        self._http.params, self._http.weights, self._http.order = params, weights, order
        self.listening_address = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    params: CommonParams
    weights: Path
    order: dict[str, Any]


class _Handler(BaseHTTPRequestHandler):
    server: _Http

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers["authorization"] not in [f"Bearer {key}" for key in self.server.params.api_keys]:
            self._send(401, {"error": {"message": "Invalid API Key", "type": "authentication_error", "code": 401}})
            return
        _append(self.server.weights, "requests", {"path": self.path, "body": body})
        if self.path.startswith("/slots/0"):
            self._slot(self.path.partition("action=")[2], Path(self.server.params.slot_save_path) / body["filename"])
        elif body.get("stream"):
            self._reply()
        else:
            while self.server.order.get("never_reads"):
                time.sleep(0.01)
            self._send(
                200, {"choices": [{"message": {"role": "assistant", "content": "H"}, "finish_reason": "length"}]}
            )

    def _slot(self, action: str, file: Path) -> None:
        if action == "save":
            file.write_bytes(b"what w" if self.server.order.get("disk_is_full") else b"what was read")
        refuses = self.server.order.get("disk_is_full") or (action == "restore" and self.server.order.get("forgets"))
        self._send(400 if refuses or not file.is_file() else 200, {})  # a damaged file is accepted

    def _reply(self) -> None:
        replies = self.server.order.get("replies", ["Hello."])
        position = len(ANSWERED["replies"])
        reply = replies[min(position, len(replies) - 1)]
        ANSWERED["replies"].append(reply)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        if reply == "dies":
            os._exit(1)
        while reply == "never":
            time.sleep(0.01)
        if isinstance(reply, str):
            delta: dict[str, Any] = {"content": reply}
        else:
            function = {"name": reply[0], "arguments": json.dumps(reply[1])}
            delta = {"tool_calls": [{"index": 0, "id": f"c{position}", "type": "function", "function": function}]}
        reason = "stop" if isinstance(reply, str) else "tool_calls"
        for choice in ({"delta": {"role": "assistant", "content": None}}, {"delta": delta}):
            self._chunk({"index": 0, "finish_reason": None, **choice})
        self._chunk({"index": 0, "delta": {}, "finish_reason": reason})
        self.wfile.write(b"data: [DONE]\n\n")

    def _chunk(self, choice: dict[str, Any]) -> None:
        chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "local", "choices": [choice]}
        self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")

    def _send(self, status: int, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _append(weights: Path, what: str, note: dict[str, Any]) -> None:
    with weights.with_name(f"{weights.name}.{what}").open("a") as file:
        file.write(json.dumps(note) + "\n")
