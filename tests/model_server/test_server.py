import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.model_server import Cut, Hangup, Hold, Reply, Stall, Text, ToolCall, call, say, serving

BODY = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}], "stream": True}
HEADERS = {"x-api-key": "secret", "anthropic-version": "2023-06-01"}


def post(port: int, body: object = BODY) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    try:
        connection.request("POST", "/v1/messages", json.dumps(body), HEADERS)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_requests_are_recorded_as_received() -> None:
    with serving([say("a"), say("b")]) as server:
        post(server.port)
        post(server.port, BODY | {"max_tokens": 2})

    first, second = server.requests
    assert (first.path, first.headers["x-api-key"], first.body) == ("/v1/messages", "secret", BODY)
    assert json.loads(second.raw)["max_tokens"] == 2
    assert first.began_at <= first.arrived_at <= first.finished_at
    assert first.arrived_at <= second.began_at


def test_request_after_the_script_fails_the_block() -> None:
    answers = []

    def ask_twice() -> None:
        with serving([say("a")]) as server:
            answers.extend(post(server.port) for _ in range(2))

    with pytest.raises(AssertionError, match="the script is over, and request 2"):
        ask_twice()
    status, answer = answers[1]
    assert status == 400
    assert b"the script is over" in answer


def test_fault_of_the_script_fails_the_block() -> None:
    def ask_once() -> None:
        impossible = say("a", faults=(Cut("tool_arguments"),))
        with serving([impossible]) as server, pytest.raises(http.client.HTTPException):
            post(server.port)

    with pytest.raises(AssertionError, match="ended before these could happen"):
        ask_once()


def test_held_reply_goes_on_when_the_test_does() -> None:
    gate = threading.Event()
    answers = []
    with serving([say("abcdefgh", chunk_chars=1, faults=(Hold("text", gate),))]) as server:
        asking = threading.Thread(target=lambda: answers.append(post(server.port)))
        asking.start()
        while not server.requests:
            time.sleep(0.01)
        were_there_answers = bool(answers)
        gate.set()
        asking.join(10)

    assert not were_there_answers
    assert b"message_stop" in answers[0][1]


def test_failure_of_the_test_itself_is_not_hidden() -> None:
    def fail_with_a_script_too_short() -> None:
        with serving([]) as server:
            post(server.port)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_with_a_script_too_short()


@pytest.mark.parametrize("how", ["close", "reset"])
def test_connections_end_where_the_script_says(how) -> None:
    with serving([Hangup(how), say("abc " * 9, faults=(Cut(3, how),))]) as server:
        for _ in range(2):
            with pytest.raises((http.client.HTTPException, ConnectionError)):
                post(server.port)


def test_position_may_count_from_the_end() -> None:
    with serving([say("abcd", faults=(Cut(-1, "clean"),))]) as server:
        _, answer = post(server.port)

    assert b"message_delta" in answer
    assert b"message_stop" not in answer


@pytest.mark.parametrize("writes", ["events", "bulk", 5])
def test_bytes_are_the_same_in_any_writes(writes) -> None:
    reply = Reply((Text("Grüße 世界 🐼"), ToolCall("LS", {"path": "ü"}, id="t")), writes=writes, chunk_chars=1)
    with serving([Reply(reply.blocks, chunk_chars=1), reply]) as server:
        _, expected = post(server.port)
        _, answer = post(server.port)

    assert answer == expected


def test_client_that_leaves_a_stalled_reply_is_noticed() -> None:
    with serving([say("abc " * 9, faults=(Stall(3),)), say("next")]) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            raw = json.dumps(BODY)
            lines = [f"{name}: {value}" for name, value in HEADERS.items()]
            head = "\r\n".join(["POST /v1/messages HTTP/1.1", *lines, f"content-length: {len(raw)}", "", raw])
            client.sendall(head.encode())
            while b"message_start" not in client.recv(4096):
                pass
        status, _ = post(server.port)
        wait_until(lambda: server.requests[0].client_left)

    assert status == 200
    assert server.requests[0].finished_at is None


def wait_until(condition) -> None:
    deadline = time.monotonic() + 30
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert condition()


def test_stalled_reply_does_not_hold_up_the_end() -> None:
    with serving([say("abc", faults=(Stall(0),))]) as server:
        client = socket.create_connection(("127.0.0.1", server.port))
        raw = json.dumps(BODY)
        lines = "\r\n".join(f"{name}: {value}" for name, value in HEADERS.items())
        client.sendall(f"POST /v1/messages HTTP/1.1\r\n{lines}\r\ncontent-length: {len(raw)}\r\n\r\n{raw}".encode())
        wait_until(lambda: server.requests)

    assert server.requests[0].client_left
    client.close()


def test_probes_are_answered_only_if_scripted() -> None:
    with serving([], probes={"/api/tags": {"models": []}}, models=()) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        answers = []
        for path in ("/api/tags", "/v1/models", "/health"):
            connection.request("GET", path)
            response = connection.getresponse()
            answers.append((response.status, json.loads(response.read())))
        connection.close()

    assert answers[0] == (200, {"models": []})
    assert [status for status, _ in answers[1:]] == [404, 404]
    assert [request.path for request in server.other_requests] == ["/api/tags", "/v1/models", "/health"]


def test_script_may_be_a_function_of_the_request() -> None:
    with serving(lambda request: call(f"Tool{request.body['max_tokens']}")) as server:
        _, answer = post(server.port, BODY | {"max_tokens": 77})

    assert b'"name":"Tool77"' in answer


def test_server_runs_as_a_process_with_a_script_file(tmp_path: Path) -> None:
    script, port_file, record = tmp_path / "script.json", tmp_path / "port", tmp_path / "record.jsonl"
    replies = [
        {
            "blocks": [{"type": "tool_use", "name": "LS", "input": {}}],
            "tokens": {"input": 3},
            "stop_reason": "tool_use",
        },
        {"error": 529, "headers": {"retry-after": "1"}},
        {"text": "done", "faults": [{"type": "cut", "at": -1, "how": "clean"}]},
    ]
    script.write_text(json.dumps({"replies": replies, "repeat": 2}))
    command = [sys.executable, "-m", "tests.model_server", "--script", script, "--port-file", port_file]
    with subprocess.Popen([*command, "--record", record], stderr=subprocess.PIPE) as process:
        try:
            wait_until(lambda: port_file.exists() or process.poll() is not None)
            port = int(port_file.read_text())
            answers = [post(port) for _ in range(7)]
        finally:
            os.kill(process.pid, signal.SIGTERM)
        errors = process.stderr.read() if process.stderr else b""

    assert [status for status, _ in answers] == [200, 529, 200, 200, 529, 200, 400]
    assert b'"name":"LS"' in answers[0][1]
    assert process.returncode == 1
    assert b"the script is over" in errors
    assert len(record.read_text().splitlines()) == 7


def test_script_file_with_a_misspelt_field_is_refused(tmp_path: Path) -> None:
    from tests.model_server.files import read_script

    path = tmp_path / "script.json"
    path.write_text(json.dumps({"replies": [{"txet": "a"}]}))

    with pytest.raises(ValueError, match="txet"):
        read_script(path)
