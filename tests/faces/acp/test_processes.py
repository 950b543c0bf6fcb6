"""`panpan acp` as a process: with the library's own client, and with editors that go away."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from acp import spawn_agent_process
from acp.interfaces import Client
from acp.schema import AllowedOutcome, RequestPermissionResponse, TextContentBlock

from tests.capabilities.mcp.place import Place, Use
from tests.faces.acp.editor import ROOT, command, problems_of, program
from tests.faces.mcp_server.processes import a_day, pipe, running, until
from tests.model_server import Reply, Text, Thinking, Tokens, ToolCall, serving

WRITE: Use = ("Write", {"file_path": "new.txt", "content": "hello\n"})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


class LibraryClient(Client):
    """Allows everything, and keeps what it is told."""

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.asked: list[Any] = []

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **more: Any) -> Any:
        self.asked.append(tool_call)
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=options[0].option_id))

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        self.updates.append(update)

    def of(self, kind: str) -> list[Any]:
        return [one for one in self.updates if one.session_update == kind]


async def test_client_of_the_library_works_over_pipes_and_http(place: Place) -> None:
    """With the real program, real pipes, and a real provider that a scripted server plays."""
    replies = [
        Reply((Thinking("hmm"), Text("I write."), ToolCall("Write", dict(WRITE[1]))), tokens=Tokens(1_000, 20)),
        Reply((Text("All done."),), tokens=Tokens(1_100, 5)),
    ]
    titles = Reply((Text("A title"),))
    left = iter(replies[:2])

    def answer(request: Any) -> Reply:
        return titles if not request.body.get("tools") else next(left)

    client = LibraryClient()
    with serving(answer) as server:
        env = {
            **place.env,
            "ANTHROPIC_API_KEY": "sk-ant-test-0123456789abcdef",
            "ANTHROPIC_BASE_URL": server.url,
            "PANPAN_MODEL": "claude-sonnet-4-5",
        }
        words = program(place, "--sandbox", "off", "--thinking", "acp")
        async with spawn_agent_process(client, *words, env=env, cwd=place.root) as (agent, process):
            first = await agent.initialize(protocol_version=1)
            session = await agent.new_session(cwd=str(place.root), mcp_servers=[])
            models = next(one for one in session.config_options or [] if one.id == "model")
            result = await agent.prompt(
                session_id=session.session_id, prompt=[TextContentBlock(type="text", text="write it")]
            )
            listed = await agent.list_sessions(cwd=str(place.root))
            await until(lambda: bool(client.of("session_info_update")))
            again = LibraryClient()
        assert await process.wait() == 0
        async with spawn_agent_process(again, *words, env=env, cwd=place.root) as (agent, process):
            await agent.initialize(protocol_version=1)
            await agent.load_session(cwd=str(place.root), session_id=session.session_id, mcp_servers=[])
            await until(lambda: bool(again.of("usage_update")))

    assert (first.protocol_version, first.auth_methods) == (1, [])
    assert len(models.options) > 1  # type: ignore[union-attr]
    assert result.stop_reason == "end_turn"
    assert (place.root / "new.txt").read_text() == "hello\n"
    assert [one.title for one in client.asked] == ["Write new.txt"]
    assert "".join(one.content.text for one in client.of("agent_message_chunk")) == "I write.All done."
    assert "".join(one.content.text for one in client.of("agent_thought_chunk")) == "hmm"
    assert len({one.message_id for one in client.of("agent_message_chunk")}) == 2
    usage = client.of("usage_update")[-1]
    assert usage.used == 1_105
    assert usage.size > 100_000
    assert usage.cost.amount > 0
    kinds = [one.session_update for one in client.updates]
    begun, ended = kinds.index("tool_call"), len(kinds) - kinds[::-1].index("tool_call_update")
    assert "usage_update" not in kinds[begun:ended]
    assert result.usage is not None
    assert (result.usage.input_tokens, result.usage.output_tokens) >= (2_100, 25)  # a title may count, too
    assert client.of("session_info_update")[-1].title == "A title"
    assert [one.session_id for one in listed.sessions] == [session.session_id]
    said = "".join(one.content.text for one in again.of("agent_message_chunk"))
    assert said == "I write.All done."
    assert again.of("session_info_update")[-1].title == "A title"


@contextmanager
def started(place: Place, *uses: Any, **env: str) -> Iterator[subprocess.Popen[str]]:
    """Run the program; it has ended at the end."""
    process = subprocess.Popen(
        [*command(place, *uses)[:-1], "--allowedTools", "Bash(sleep *)", "acp"],
        env={**place.env, **env},
        cwd=place.root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def send(process: subprocess.Popen[str], method: str, number: int | None = 1, **params: Any) -> None:
    message = {"jsonrpc": "2.0", "method": method, "params": params, **({} if number is None else {"id": number})}
    pipe(process.stdin).write(f"{json.dumps(message)}\n")
    pipe(process.stdin).flush()


def messages(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    """Yield the messages of the agent; everything on standard output has to be one."""
    for line in pipe(process.stdout):
        message = json.loads(line)
        assert list(problems_of(message, {1: "initialize", 2: "session/new", 3: "session/prompt"})) == []
        yield message


def begin(process: subprocess.Popen[str], place: Place, until_told: str) -> None:
    """Begin a turn, and return when a message with these words has come."""
    send(process, "initialize", 1, protocolVersion=1, clientCapabilities={})
    send(process, "session/new", 2, cwd=str(place.root), mcpServers=[])
    for message in messages(process):
        if message.get("id") == 2 and "result" in message:
            prompt = [{"type": "text", "text": "go"}]
            send(process, "session/prompt", 3, sessionId=message["result"]["sessionId"], prompt=prompt)
        if until_told in json.dumps(message):
            return


def test_server_loads_no_terminal() -> None:
    code = "import sys, panpan.faces.acp.server, panpan.faces.session_commands; print('prompt_toolkit' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert out.stdout == "False\n"


def test_end_of_input_ends_the_program_after_its_replies(place: Place) -> None:
    with started(place) as process:
        send(process, "initialize", 1, protocolVersion=1)
        send(process, "session/list", 2)
        out, errors = process.communicate(timeout=60)

    replies = [json.loads(line) for line in out.splitlines()]
    assert {one["id"] for one in replies if "result" in one} == {1, 2}
    assert (process.returncode, errors) == (0, "")


@pytest.mark.parametrize("end", ["input", "signal", "both streams"])
async def test_end_in_a_turn_leaves_a_valid_session_and_no_process(place: Place, end: str) -> None:
    seconds = a_day()
    sleep: Use = ("Bash", {"command": f"sleep {seconds}", "description": "Wait"})
    with started(place, sleep) as process:
        begin(process, place, "in_progress")
        await until(lambda: bool(running(f"sleep {seconds}")))
        match end:
            case "input":
                pipe(process.stdin).close()
                replies = [one for one in messages(process) if one.get("id") == 3]
                assert [one["result"]["stopReason"] for one in replies] == ["cancelled"]
            case "signal":
                process.send_signal(signal.SIGTERM)
            case _:
                pipe(process.stdout).close()
                pipe(process.stdin).close()
        code = process.wait(60)
        errors = pipe(process.stderr).read()

    assert (code, errors) == (0, "")
    assert not running(f"sleep {seconds}")
    (log,) = place.home.glob("projects/*/sessions/*.jsonl")
    records = [json.loads(line) for line in log.read_text().splitlines()]
    results = [one for one in records if "tool_result" in json.dumps(one)]
    assert results, "the call has a result"


async def test_background_tasks_end_with_the_session(place: Place) -> None:
    seconds = a_day()
    task = {"command": f"sleep {seconds}", "description": "Wait", "run_in_background": True}
    with started(place, ("Bash", task)) as process:
        begin(process, place, "stopReason")
        assert running(f"sleep {seconds}")
        pipe(process.stdin).close()
        code = process.wait(60)

    assert code == 0
    assert not running(f"sleep {seconds}")


async def test_editor_that_dies_in_a_question_is_a_refusal(place: Place) -> None:
    with started(place, WRITE) as process:
        begin(process, place, "session/request_permission")
        with suppress(BrokenPipeError):
            pipe(process.stdin).close()
        pipe(process.stdout).close()
        code = process.wait(60)
        errors = pipe(process.stderr).read()

    assert (code, errors) == (0, "")
    assert not (place.root / "new.txt").exists()
    assert len(list(place.home.glob("projects/*/sessions/*.jsonl"))) == 1


def test_commands_and_hooks_print_nothing_into_the_protocol(place: Place) -> None:
    (place.home / "settings.toml").write_text(
        '[[hooks.SessionStart]]\nhooks = [{ type = "command", command = "echo hook; echo hook >&2; cat" }]\n'
    )
    loud: Use = ("Bash", {"command": "sleep 0; echo out; echo err >&2; cat", "description": "Print"})
    with started(place, loud) as process:
        begin(process, place, "stopReason")
        pipe(process.stdin).close()
        assert list(messages(process)) == []
        process.wait(60)


@pytest.mark.parametrize(("terminal", "kind"), [(True, "terminal"), (False, None)])
def test_login_is_offered_only_without_a_model(place: Place, terminal: bool, kind: str | None) -> None:
    words = program(place, "acp")
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": 1, "clientCapabilities": {"auth": {"terminal": terminal}}}},
        {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": str(place.root), "mcpServers": []}},
        {"jsonrpc": "2.0", "id": 3, "method": "authenticate", "params": {"methodId": "login"}},
    ]  # fmt: skip
    done = subprocess.run(
        words,
        input="".join(f"{json.dumps(line)}\n" for line in lines),
        env=place.env,
        cwd=place.root,
        capture_output=True,
        text=True,
        timeout=60,
    )

    replies = {one["id"]: one for one in map(json.loads, done.stdout.splitlines())}
    (method,) = replies[1]["result"]["authMethods"]
    assert method.get("type") == kind
    assert method.get("args") == (["--login"] if terminal else None)
    for number in (2, 3):
        assert replies[number]["error"]["code"] == -32000
        assert "panpan login" in replies[number]["error"]["message"]
    assert done.returncode == 0


def test_login_option_is_the_login_of_the_terminal(place: Place) -> None:
    said = [
        subprocess.run(
            program(place, *words),
            env=place.env,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        for words in (["acp", "--login"], ["login"])
    ]

    assert said[0].stderr
    assert [(one.returncode, one.stdout, one.stderr) for one in said] == [
        (said[1].returncode, said[1].stdout, said[1].stderr)
    ] * 2


def test_missing_library_is_one_clear_sentence(place: Place) -> None:
    script = (
        "import sys, importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'acp' else real(name, *more)\n"
        "import panpan.cli.acp_command as one; one.find_spec = u.find_spec\n"
        "from panpan.cli.main import main; sys.argv = ['panpan', 'acp']; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=place.env, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )

    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "the library that speaks the protocol is not installed; install it: " in line
    assert "agent-client-protocol" in line


@pytest.mark.parametrize("option", ["--output-format=json", "-c", "--record=x"])
def test_option_without_effect_is_refused(place: Place, option: str) -> None:
    done = subprocess.run(
        program(place, option, "acp"),
        env=place.env,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )

    assert done.returncode == 2
    assert "does not go with the command acp" in done.stderr


async def test_client_that_reads_nothing_and_leaves_ends_the_program(place: Place) -> None:
    with started(place, "word " * 200_000) as process:
        begin(process, place, "agent_message_chunk")
        await anyio.lowlevel.checkpoint()
        pipe(process.stdin).close()
        code = await anyio.to_thread.run_sync(process.wait, 60)

    assert code == 0
