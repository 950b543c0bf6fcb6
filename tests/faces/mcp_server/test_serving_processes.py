"""`panpan mcp serve` as a process, over its streams and over HTTP: it ends cleanly, and wants its token."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, Literal

import anyio
import httpx2
import pytest
import uvicorn
from anyio import create_task_group
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitRequestParams, ElicitResult
from starlette.responses import Response

from panpan.faces import http_server
from panpan.faces.mcp_server.transports import MAX_SESSIONS
from panpan.types.permission import UserAnswer, UserQuestion
from tests.capabilities.mcp.place import Place, Use, search
from tests.faces.mcp_server.processes import META, a_day, arguments, pipe, receive, running, send, serving, until

WRITE: Use = ("Write", {"file_path": "new.txt", "content": "hello\n"})
ERAS: tuple[Literal["legacy", "auto"], ...] = ("legacy", "auto")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


def sleep(seconds: str) -> Use:
    return "Bash", {"command": f"sleep {seconds}", "description": "Wait"}


async def yes(context: Any, params: ElicitRequestParams) -> ElicitResult:
    return ElicitResult(action="accept", content={"answer": "Yes"})


@pytest.mark.parametrize("era", ERAS)
async def test_client_over_streams_gets_answers_and_is_asked(place: Place, era: Literal["legacy", "auto"]) -> None:
    program, *words = arguments(place, uses=[WRITE])
    parameters = StdioServerParameters(command=program, args=words, env=place.env, cwd=place.root)

    async with Client(parameters, elicitation_callback=yes, mode=era) as one:
        tools = (await one.list_tools()).tools
        result = await one.call_tool("panpan", {"prompt": "write"})

    assert len(tools) == 3
    assert not result.is_error
    assert (place.root / "new.txt").read_text() == "hello\n"


def test_end_of_input_ends_the_server(place: Place) -> None:
    with serving(place) as process:
        send(process, "tools/list")
        answer = receive(process)
        rest, errors = process.communicate(timeout=60)

    assert len(answer["result"]["tools"]) == 3
    assert (process.returncode, rest, errors) == (0, "", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_the_server_while_its_input_is_open(place: Place, number: signal.Signals) -> None:
    with serving(place) as process:
        send(process, "tools/list")
        receive(process)
        process.send_signal(number)
        code = process.wait(60)
        errors = pipe(process.stderr).read()

    assert (code, errors) == (0, "")


def begin_waiting(process: subprocess.Popen[str]) -> None:
    """Let the server run a command, and return once it has begun."""
    call = {"name": "panpan", "arguments": {"prompt": "wait"}, "meta": {"progressToken": 1}}
    send(process, "tools/call", **call)
    assert receive(process)["params"]["message"].startswith("● Bash sleep")


@pytest.mark.parametrize("end", ["signal", "signals", "input"])
async def test_end_in_the_middle_of_a_command_leaves_nothing(place: Place, end: str) -> None:
    seconds = a_day()
    with serving(place, uses=[sleep(seconds)]) as process:
        begin_waiting(process)
        await until(lambda: bool(running(f"sleep {seconds}")))
        match end:
            case "signal":
                process.terminate()
            case "signals":
                for _ in range(20):
                    process.terminate()
                    await anyio.sleep(0.01)
            case _:
                pipe(process.stdin).close()
        code = process.wait(60)

    assert code == 0
    assert not running(f"sleep {seconds}")


def test_end_of_input_while_a_question_waits_ends_the_server(place: Place) -> None:
    with serving(place, uses=[WRITE]) as process:
        meta = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
        send(process, "tools/call", name="panpan", arguments={"prompt": "write"}, meta=meta)
        answer = receive(process)
        _, errors = process.communicate(timeout=60)

    assert answer["result"]["resultType"] == "input_required"
    assert (process.returncode, errors) == (0, "")
    assert not (place.root / "new.txt").exists()


def test_signal_of_a_closed_terminal_counts_unless_ignored(place: Place) -> None:
    with serving(place) as process:
        send(process, "tools/list")
        receive(process)
        process.send_signal(signal.SIGHUP)
        code = process.wait(60)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # programs that are started inherit it
    try:
        with serving(place) as process:
            send(process, "tools/list")
            receive(process)
            process.send_signal(signal.SIGHUP)
            send(process, "tools/list", 2)
            answer = receive(process)
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)

    assert code == 0
    assert answer["id"] == 2


CLIENT = """
import subprocess, sys, time
server = subprocess.Popen(sys.argv[3:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
server.stdin.write(sys.argv[1].encode() + b"\\n")
server.stdin.flush()
server.stdout.readline()
open(sys.argv[2], "w").write(str(server.pid))
time.sleep(86400)
"""


async def test_killed_client_leaves_no_process(place: Place) -> None:
    seconds, pid_file = a_day(), place.folder / "pid"
    params = {"name": "panpan", "arguments": {"prompt": "wait"}, "_meta": {**META, "progressToken": 1}}
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    words = [sys.executable, "-c", CLIENT, message, str(pid_file), *arguments(place, uses=[sleep(seconds)])]
    env = {**place.env, "PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(words, env=env, cwd=place.root) as client:  # noqa: ASYNC220 - it returns at once
        await until(lambda: bool(running(f"sleep {seconds}")) and pid_file.exists() and bool(pid_file.read_text()))
        server = int(pid_file.read_text())
        client.kill()

    await until(lambda: not Path(f"/proc/{server}").exists() and not running(f"sleep {seconds}"))


def test_cancelled_request_over_streams_ends_its_command(place: Place) -> None:
    seconds = a_day()
    with serving(place, uses=[sleep(seconds)]) as process:
        begin_waiting(process)
        notice = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        pipe(process.stdin).write(f"{json.dumps(notice)}\n")
        send(process, "tools/list", 2)
        messages = [receive(process)]
        while messages[-1].get("id") != 2:
            messages.append(receive(process))
        anyio.run(until, lambda: not running(f"sleep {seconds}"))
        is_alive = process.poll() is None

    assert is_alive


def test_broken_messages_do_not_end_the_server(place: Place) -> None:
    with serving(place) as process:
        pipe(process.stdin).write('nonsense\n\n[1]\n{"jsonrpc": "2.0"}\n\x00\n')
        send(process, "tools/list", 7)
        messages = [receive(process)]
        while messages[-1].get("id") != 7:
            messages.append(receive(process))

    assert "result" in messages[-1]


@pytest.fixture
def web(place: Place) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """A server over HTTP, its address and its token."""
    with serving(place, "--http", uses=[WRITE]) as process:
        url = pipe(process.stderr).readline().split()[-1]
        token = pipe(process.stderr).readline().partition("Bearer ")[2].partition("'")[0]
        yield process, url, token


@pytest.mark.parametrize("era", ERAS)
async def test_client_over_http_gets_answers_and_is_asked(
    place: Place, web: tuple[subprocess.Popen[str], str, str], era: Literal["legacy", "auto"]
) -> None:
    process, url, token = web
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), elicitation_callback=yes, mode=era) as one,
    ):
        result = await one.call_tool("panpan", {"prompt": "write"})
    process.terminate()
    code = process.wait(60)

    assert not result.is_error
    assert (place.root / "new.txt").read_text() == "hello\n"
    assert code == 0


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The address and token of a server for requests that change nothing in it."""
    with serving(Place(tmp_path_factory.mktemp("refusing").resolve()), "--http") as process:
        url = pipe(process.stderr).readline().split()[-1]
        yield url, pipe(process.stderr).readline().partition("Bearer ")[2].partition("'")[0]


@pytest.mark.parametrize("token", ["", "wrong", "Bearer", "é"])
def test_request_without_the_token_is_refused(refusing: tuple[str, str], token: str) -> None:
    url, _ = refusing

    headers = {b"Authorization": f"Bearer {token}".encode()} if token else {}
    answers = [httpx2.request(method, url, headers=headers) for method in ("GET", "POST", "DELETE")]

    assert [answer.status_code for answer in answers] == [401, 401, 401]
    assert answers[0].headers["www-authenticate"] == "Bearer"


def test_scheme_of_the_token_is_in_any_case(refusing: tuple[str, str]) -> None:
    url, token = refusing

    answer = httpx2.post(url, headers={"Authorization": f"bearer {token}"}, content=b"{}")

    assert answer.status_code != 401


@pytest.mark.parametrize("begins", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"])
async def test_connection_without_a_request_is_closed(monkeypatch: pytest.MonkeyPatch, begins: bytes) -> None:
    monkeypatch.setattr(http_server, "_HEAD_S", 0.05)

    app = Response("a token is needed", 401)
    server = uvicorn.Server(uvicorn.Config(app, http=http_server._Patient, log_config=None, lifespan="off"))
    server.capture_signals = nullcontext  # type: ignore[method-assign]
    listening = socket.create_server(("127.0.0.1", 0))
    async with anyio.create_task_group() as group:
        group.start_soon(server.serve, [listening])
        async with await anyio.connect_tcp("127.0.0.1", listening.getsockname()[1]) as silent:
            with anyio.fail_after(30), pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await silent.send(begins)
                if begins:
                    await silent.receive()
                await silent.send(b"G")
                await silent.receive()
        server.should_exit = True


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1:1"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Content-Type": "text/plain"}, 400),
    ],
)
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_request_of_a_browser_elsewhere_is_refused(
    refusing: tuple[str, str], headers: dict[str, str], status: int, version: str
) -> None:
    url, token = refusing
    usual = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": version,
    }

    answer = httpx2.post(url, headers={**usual, **headers}, content="{}")

    assert answer.status_code == status


def test_large_request_is_refused(refusing: tuple[str, str]) -> None:
    url, token = refusing

    answer = httpx2.post(url, headers={"Authorization": f"Bearer {token}"}, content=b"x" * 10_000_000)

    assert answer.status_code == 413


@pytest.mark.parametrize("era", ERAS)
async def test_end_over_http_leaves_nothing(place: Place, era: Literal["legacy", "auto"]) -> None:
    seconds = a_day()
    with serving(place, "--http", "--no-token", uses=[sleep(seconds)]) as process:
        url = pipe(process.stderr).readline().split()[-1]
        async with Client(url, mode=era) as one, create_task_group() as group:

            async def call() -> None:
                with suppress(MCPError):  # the server ends
                    await one.call_tool("panpan", {"prompt": "wait"})

            group.start_soon(call)
            await until(lambda: bool(running(f"sleep {seconds}")))
            process.terminate()
            code = await anyio.to_thread.run_sync(process.wait, 60)
            group.cancel_scope.cancel()

    assert code == 0
    assert not running(f"sleep {seconds}")


async def test_client_that_hangs_up_ends_its_turn(place: Place) -> None:
    seconds = a_day()
    with serving(place, "--http", "--no-token", uses=[sleep(seconds)]) as process:
        url = pipe(process.stderr).readline().split()[-1]
        async with create_task_group() as group:

            async def call() -> None:
                async with Client(url) as one:
                    await one.call_tool("panpan", {"prompt": "wait"})

            group.start_soon(call)
            await until(lambda: bool(running(f"sleep {seconds}")))
            group.cancel_scope.cancel()
        await until(lambda: not running(f"sleep {seconds}"))


def test_open_clients_of_the_older_era_are_bounded(web: tuple[subprocess.Popen[str], str, str]) -> None:
    _, url, token = web
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}

    with httpx2.Client(headers=headers, timeout=60) as http:
        answers = [http.post(url, json=request).status_code for _ in range(MAX_SESSIONS + 1)]

    assert answers == [*[200] * MAX_SESSIONS, 503]


async def test_older_client_whose_connection_breaks_ends_its_turn(place: Place) -> None:
    seconds = a_day()
    with serving(place, "--http", "--no-token", uses=[sleep(seconds)]) as process:
        url = pipe(process.stderr).readline().split()[-1]
        async with httpx2.AsyncClient(headers={"Accept": "application/json, text/event-stream"}, timeout=60) as http:
            hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
            begun = await http.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
            http.headers.update(
                {"MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": begun.headers["mcp-session-id"]}
            )
            await http.post(url, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
            params = {"name": "panpan", "arguments": {"prompt": "wait"}}
            call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
            async with http.stream("POST", url, json=call):
                await until(lambda: bool(running(f"sleep {seconds}")))
        await until(lambda: not running(f"sleep {seconds}"))


@pytest.mark.parametrize(
    ("words", "env", "said"),
    [
        (["--port", "1"], {}, "--port and --no-token go with --http"),
        (["--http", "--host", "0.0.0.0"], {}, "is every address of this machine"),
        (["--http", "--host", "192.0.2.1", "--no-token"], {}, "--no-token would let in everybody on the network"),
        (["--http", "--host", "192.0.2.1"], {}, "cannot listen at 192.0.2.1:0"),
        (["--http"], {"PANPAN_MCP_TOKEN": "short"}, "PANPAN_MCP_TOKEN is no token"),
        (["no/such/folder"], {}, "is not a folder"),
    ],
)
def test_wrong_start_is_refused_in_a_line(place: Place, words: list[str], env: dict[str, str], said: str) -> None:
    with serving(place, *words, **env) as process:
        out, errors = process.communicate(timeout=60)

    assert process.returncode == 2
    assert out == ""
    assert said in errors
    assert len(errors.splitlines()) == 1


def test_token_of_the_environment_is_not_printed(place: Place) -> None:
    token = "abcdefghijklmnop0123"
    with serving(place, "--http", PANPAN_MCP_TOKEN=token) as process:
        url = pipe(process.stderr).readline().split()[-1]
        hint = pipe(process.stderr).readline()
        answer = httpx2.post(url, headers={"Authorization": f"Bearer {token}"}, content="{}")

    assert "${PANPAN_MCP_TOKEN}" in hint
    assert token not in hint
    assert answer.status_code != 401


def test_command_line_imports_no_server(place: Place) -> None:
    code = (
        "import sys; from panpan.cli.main import cli; cli(['mcp', 'serve', '--help'], standalone_mode=False); "
        "print([one for one in ('mcp', 'mcp_types', 'uvicorn', 'starlette') if one in sys.modules], file=sys.stderr)"
    )
    env = {**place.env, "PYTHONPATH": os.pathsep.join(sys.path)}

    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)

    assert done.stderr.strip() == "[]"
    assert "--no-token" in done.stdout


async def test_panpan_is_a_client_of_panpan(place: Place) -> None:
    inner = Place(place.folder / "inner")
    program, *words = arguments(inner, uses=[WRITE])
    entry = {"command": program, "args": words, "env": inner.env}
    asked: list[UserQuestion] = []

    async def ask_user(questions: Sequence[UserQuestion]) -> Sequence[UserAnswer]:
        asked.extend(questions)
        return [UserAnswer(("Yes",)) for _ in questions]

    _, result = await place.results(
        search("task"),
        ("CallTool", {"name": "mcp__panpan__panpan", "arguments": {"prompt": "write"}}),
        ask_user=ask_user,
        mcp_config=[json.dumps({"mcpServers": {"panpan": {**entry, "cwd": str(inner.root)}}})],
    )

    assert "new.txt" in asked[0].question
    assert "done" in result
    assert (inner.root / "new.txt").exists()
