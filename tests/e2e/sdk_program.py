"""A program that speaks the control protocol of the Agent SDK over the pipes of a running panpan."""

import json
import queue
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, Self

from tests.e2e.conftest import Done, Panpan, finished

STREAM = ("--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
ASKS = ("--permission-prompt-tool", "stdio")
PATIENCE_S = 30.0

Line = Mapping[str, Any]


class Program:
    """The program. It reads all lines at once, and answers requests only as the test says."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.seen: list[Line] = []
        """All lines so far."""
        self._lines: queue.Queue[Line | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, args=(_pipe(process.stdout),), daemon=True)
        self._reader.start()
        self._number = 0

    def _read(self, pipe: IO[bytes]) -> None:
        for line in pipe:
            self._lines.put(json.loads(line))
        self._lines.put(None)

    def send(self, line: Line | bytes) -> None:
        data = line if isinstance(line, bytes) else json.dumps(line).encode()
        pipe = _pipe(self.process.stdin)
        pipe.write(data + b"\n")
        pipe.flush()

    def say(self, text: str, **fields: Any) -> None:
        self.send({"type": "user", "message": {"role": "user", "content": text}, **fields})

    def ask(self, subtype: str, **fields: Any) -> str:
        """Send a request, and return its id."""
        self._number += 1
        request_id = f"req-{self._number}"
        request = {"subtype": subtype, **fields}
        self.send({"type": "control_request", "request_id": request_id, "request": request})
        return request_id

    def answer(self, request: Line, **response: Any) -> None:
        body = {"subtype": "success", "request_id": request["request_id"], "response": response}
        self.send({"type": "control_response", "response": body})

    def fail(self, request: Line, why: str) -> None:
        body = {"subtype": "error", "request_id": request["request_id"], "error": why}
        self.send({"type": "control_response", "response": body})

    def until(self, is_wanted: Callable[[Line], bool]) -> Line:
        """Return the next line that is wanted; those before it are passed over."""
        while (line := self._lines.get(timeout=PATIENCE_S)) is not None:
            self.seen.append(line)
            if is_wanted(line):
                return line
        raise AssertionError(f"the output has ended; the last lines: {self.seen[-3:]}")

    def response_to(self, request_id: str) -> Line:
        """Return the answer to a request: its success or error."""
        found = self.until(lambda line: _id_of(line) == request_id)["response"]
        assert isinstance(found, dict)
        return found

    def call(self, subtype: str, **fields: Any) -> Line:
        """Send a request, and return its answer."""
        return self.response_to(self.ask(subtype, **fields))

    def request(self, subtype: str) -> Line:
        """Return the next request of panpan of a kind."""
        return self.until(lambda line: line["type"] == "control_request" and line["request"]["subtype"] == subtype)

    def result(self) -> Line:
        return self.until(lambda line: line["type"] == "result")

    def system(self, subtype: str) -> Line:
        return self.until(lambda line: line["type"] == "system" and line["subtype"] == subtype)

    def end(self) -> Done:
        """Close the input, and wait for the end."""
        _pipe(self.process.stdin).close()
        self.process.stdin = None
        code = self.process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return Done("", _pipe(self.process.stderr).read().decode(), code)

    def __iter__(self) -> Iterator[Line]:
        """Yield the rest of the lines."""
        while (line := self._lines.get(timeout=PATIENCE_S)) is not None:
            self.seen.append(line)
            yield line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _id_of(line: Line) -> object:
    return line["response"].get("request_id") if line["type"] == "control_response" else None


@contextmanager
def running(panpan: Panpan, *options: str, begins: bool = True, **initialize: Any) -> Iterator[Program]:
    """Start panpan for a program, which then begins with `initialize`."""
    panpan.env["CLAUDE_AGENT_SDK_VERSION"] = "0.2.189"
    program = Program(panpan.start(*STREAM, *options, is_installed=False))
    if begins:
        assert program.call("initialize", **initialize)["subtype"] == "success"
    yield program


__all__ = ["ASKS", "STREAM", "Line", "Program", "finished", "running"]
