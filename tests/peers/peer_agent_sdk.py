"""Programs on the official Agent SDKs, and the Python SDK's own examples, with panpan as their command."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import mcp_server
from tests.model_server import HttpError, ModelServer, Text, Thinking, ToolCall, call, calls, say, serving
from tests.model_server.recording import RecordedRequest
from tests.model_server.script import Reply, Step
from tests.peers.installs import installed_once
from tests.peers.node import node
from tests.prepared_command import COMMAND, PREPARED

PYTHON_SDK = "claude-agent-sdk==0.2.189"
TYPESCRIPT_SDK = "@anthropic-ai/claude-agent-sdk@0.3.332"
INSTALL_S = 180
PROGRAM_S = 120
KEY = "sk-ant-test-0123456789abcdef"
DIALECTS = pytest.mark.parametrize("dialect", ["anthropic", "openai"])
EXAMPLES = {
    "quick_start.py": 3, "agents.py": 3, "filesystem_agents.py": 1, "hooks.py": 5, "include_partial_messages.py": 1,
    "mcp_calculator.py": 6, "streaming_mode.py": 10, "system_prompt.py": 4, "tool_permission_callback.py": 1,
    "tools_option.py": 3,
}  # fmt: skip
"""Examples of the Python SDK, each with the least number of answers that it prints."""
WITH_NAMES = ("hooks.py", "streaming_mode.py")
"""Examples that take the name of a part, or `all`."""


def installed(command: list[str], folder: Path) -> None:
    """Run an installer, or skip the test where the registry cannot be reached."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_S)
    except subprocess.TimeoutExpired:
        pytest.skip("the registry of packages is too slow")
    if done.returncode:
        pytest.skip(f"the SDK cannot be had: {done.stderr.strip().splitlines()[-1:]}")


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a Python with the SDK."""
    return installed_once(tmp_path_factory, "python-sdk", install_python_sdk) / "venv/bin/python"


def install_python_sdk(folder: Path) -> None:
    """Install the Python SDK from its source, which has no other program in it."""
    uv = Path(sys.executable).with_name("uv")
    installed([str(uv), "venv", "--quiet", "--seed", "--python", sys.executable, "venv"], folder)
    program = folder / "venv" / "bin" / "python"
    only_source = ["--no-binary", "claude-agent-sdk"]
    installed([str(uv), "pip", "install", "--quiet", "--python", str(program), *only_source, PYTHON_SDK], folder)
    installed([str(program), "-m", "pip", "download", "-q", "--no-deps", *only_source, "-d", ".", PYTHON_SDK], folder)
    (source,) = folder.glob("*.tar.gz")
    shutil.unpack_archive(source, folder / "source", filter="data")


@pytest.fixture(scope="session")
def examples(python: Path) -> Path:
    (folder,) = (python.parents[2] / "source").glob("*/examples")
    return folder


def environment(folder: Path, server: ModelServer, dialect: str = "anthropic") -> dict[str, str]:
    """Return the environment of a program, in which `claude` is panpan."""
    for name in ("home", "bin", "workspace"):
        (folder / name).mkdir(exist_ok=True)
    env = {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "HOME": str(folder / "home"),
        "NO_PROXY": "*",
        "PANPAN_SESSIONS_TITLE": "first-words",
        "PANPAN": str(folder / "bin" / "claude"),
    }
    script = folder / "bin" / "claude"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(PREPARED.argv(env=env))} "$@"\n')
    script.chmod(0o755)
    if dialect == "anthropic":
        return {**env, "ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": server.url}
    return {**env, "OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.openai_url, "PANPAN_MODEL": "openai/gpt-test"}


HEAD = """
import asyncio, json, os
from claude_agent_sdk import *

OPTIONS = {"cli_path": os.environ["PANPAN"], "cwd": os.getcwd()}

"""

Run = Callable[..., Any]


@pytest.fixture
def run(python: Path, tmp_path: Path) -> Run:
    """Return a function that runs a program, and returns what it prints last, as JSON."""

    def run_it(text: str, server: ModelServer, dialect: str = "anthropic") -> Any:
        program = tmp_path / "program.py"
        program.write_text(HEAD + textwrap.dedent(text))
        env = environment(tmp_path, server, dialect)
        done = subprocess.run(
            [python, program], env=env, cwd=tmp_path / "workspace", capture_output=True, text=True, timeout=PROGRAM_S
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run_it


@DIALECTS
def test_query_returns_the_answer(run: Run, dialect: str) -> None:
    program = """
    async def main():
        found = [type(m).__name__ + getattr(m, "result", "") async for m in
                 query(prompt="hi", options=ClaudeAgentOptions(**OPTIONS)) if not isinstance(m, SystemMessage)]
        print(json.dumps(found))
    asyncio.run(main())
    """
    with serving([say("hello")]) as server:
        assert run(program, server, dialect) == ["AssistantMessage", "ResultMessagehello"]


@DIALECTS
def test_client_has_hooks_tools_and_questions(run: Run, tmp_path: Path, dialect: str) -> None:
    program = """
    log = []

    @tool("add", "Add numbers", {"a": float, "b": float})
    async def add(args):
        return {"content": [{"type": "text", "text": f"the sum is {args['a'] + args['b']}"}]}

    async def gate(name, given, context):
        log.append(["ask", name])
        if name == "Bash":
            return PermissionResultDeny(message="not that")
        return PermissionResultAllow(updated_input={**given, "file_path": "other.txt"} if name == "Write" else given)

    async def hook(given, use, context):
        log.append(["hook", given["tool_name"]])
        return {}

    async def main():
        options = ClaudeAgentOptions(
            **OPTIONS, can_use_tool=gate, hooks={"PreToolUse": [HookMatcher(hooks=[hook])]},
            mcp_servers={"calc": create_sdk_mcp_server("calc", "1.0.0", [add])},
        )
        async with ClaudeSDKClient(options) as client:
            assert (await client.get_server_info())["commands"]
            await client.query("go")
            async for message in client.receive_response():
                if isinstance(message, ResultMessage):
                    log.append(["result", message.result])
            log.append(["servers", (await client.get_mcp_status())["mcpServers"][0]["status"]])
        print(json.dumps(log))
    asyncio.run(main())
    """
    script = [
        call("mcp__calc__add", {"a": 1, "b": 2}),
        call("Bash", {"command": "touch made", "description": "x"}),
        call("Write", {"file_path": "a.txt", "content": "a\n"}),
        say("done"),
    ]
    with serving(script) as server:
        log = run(program, server, dialect)

    assert [one for one in log if one[0] != "hook"] == [
        ["ask", "mcp__calc__add"], ["ask", "Bash"], ["ask", "Write"], ["result", "done"], ["servers", "connected"],
    ]  # fmt: skip
    assert {name for kind, name in log if kind == "hook"} == {"mcp__calc__add", "Bash", "Write"}
    assert "the sum is 3" in json.dumps(server.requests[1].body)
    assert "not that" in json.dumps(server.requests[2].body)
    assert sorted(path.name for path in (tmp_path / "workspace").iterdir()) == ["other.txt"]


@DIALECTS
def test_interrupt_and_changes_work_between_turns(run: Run, dialect: str) -> None:
    program = """
    async def main():
        async with ClaudeSDKClient(ClaudeAgentOptions(**OPTIONS, include_partial_messages=True)) as client:
            await client.query("go")
            async for message in client.receive_response():
                if isinstance(message, StreamEvent):
                    await client.interrupt()
                    break
            first = [m async for m in client.receive_response() if isinstance(m, ResultMessage)]
            await client.set_permission_mode("acceptEdits")
            await client.set_model(None)
            await client.query("again")
            second = [m async for m in client.receive_response() if isinstance(m, ResultMessage)]
            usage = await client.get_context_usage()
        print(json.dumps([first[0].terminal_reason, second[0].result, usage["totalTokens"] > 0]))
    asyncio.run(main())
    """

    def answer(request: RecordedRequest) -> Step:
        return say("word " * 5_000, delta_delay_s=0.05) if "again" not in json.dumps(request.body) else say("second")

    with serving(answer) as server:
        assert run(program, server, dialect) == ["aborted_streaming", "second", True]


@DIALECTS
def test_structured_output_is_in_the_result(run: Run, dialect: str) -> None:
    program = """
    async def main():
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        options = ClaudeAgentOptions(**OPTIONS, output_format={"type": "json_schema", "schema": schema})
        async for message in query(prompt="count", options=options):
            if isinstance(message, ResultMessage):
                print(json.dumps(message.structured_output))
    asyncio.run(main())
    """
    with serving([call("StructuredOutput", {"n": "two"}), call("StructuredOutput", {"n": 2})]) as server:
        assert run(program, server, dialect) == {"n": 2}


def test_resume_goes_on_with_the_session(run: Run) -> None:
    program = """
    async def main():
        options = ClaudeAgentOptions(**OPTIONS)
        async for message in query(prompt="one", options=options):
            if isinstance(message, ResultMessage):
                options = ClaudeAgentOptions(**OPTIONS, resume=message.session_id)
        async for message in query(prompt="two", options=options):
            if isinstance(message, ResultMessage):
                print(json.dumps([message.session_id == options.resume, message.result]))
    asyncio.run(main())
    """
    with serving([say("first"), say("second")]) as server:
        assert run(program, server) == [True, "second"]

    assert "first" in json.dumps(server.requests[1].messages)


def test_failed_turn_is_an_error_of_the_sdk(run: Run) -> None:
    program = """
    async def main():
        try:
            async for message in query(prompt="one", options=ClaudeAgentOptions(**OPTIONS)):
                pass
        except Exception as error:
            print(json.dumps([type(error).__name__, str(error)]))
    asyncio.run(main())
    """
    with serving([HttpError(400, "the request is no good")]) as server:
        kind, text = run(program, server)

    assert kind == "ResultError"
    assert "the request is no good" in text


def test_every_line_is_read_by_the_parser_of_the_sdk(python: Path, tmp_path: Path) -> None:
    """Lines of a session with thinking, deltas, calls, denials, retries, a subagent, a task, a command and an error."""
    script: list[Step] = [
        Reply((Thinking("hm"), Text("Let me see."), ToolCall("LS", {}))),
        call("Bash", {"command": "touch made", "description": "x"}),
        call("Task", {"description": "look", "prompt": "look", "subagent_type": "explore"}),
        say("found"),
        HttpError(529, headers={"retry-after": "0.01"}),
        calls(ToolCall("Bash", {"command": "echo a", "description": "x", "run_in_background": True})),
        say("done"),
        HttpError(400, "no"),
    ]
    texts = ("go", "/cost", "again")
    lines = [json.dumps({"type": "user", "message": {"role": "user", "content": text}}) for text in texts]
    more = repeat(say("more"))  # the end of the task may begin a turn of its own
    with serving(chain(script, more)) as server:
        env = environment(tmp_path, server)
        options = ["--input-format", "stream-json", "--output-format", "stream-json", "--include-partial-messages"]
        done = subprocess.run(
            [COMMAND, *options, "--thinking", "--replay-user-messages", "--background", "drain"],
            env=env, cwd=tmp_path / "workspace", input="\n".join(lines), capture_output=True, text=True, timeout=60,
        )  # fmt: skip
    (tmp_path / "lines.jsonl").write_text(done.stdout)
    program = """
import json, sys
from claude_agent_sdk._internal.message_parser import parse_message
for line in open(sys.argv[1]):
    value = json.loads(line)
    print(value["type"], value.get("subtype", ""), type(parse_message(value)).__name__)
"""
    parsed = subprocess.run([python, "-c", program, tmp_path / "lines.jsonl"], capture_output=True, text=True)

    assert parsed.returncode == 0, parsed.stderr
    kinds = {line.rpartition(" ")[0].strip() for line in parsed.stdout.splitlines()}
    assert not [line for line in parsed.stdout.splitlines() if line.endswith("NoneType")]
    assert {"assistant", "user", "stream_event", "system init", "system api_retry", "system permission_denied",
            "system local_command_output", "system task_started", "result success"} <= kinds  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_of_the_sdk_runs(python: Path, examples: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(examples, tmp_path / "examples")
    program = tmp_path / "examples" / name
    program.write_text(
        program.read_text().replace("asyncio.timeout(30.0)", "asyncio.timeout(8.0)")
    )  # after its answers
    words: list[str | Path] = [python, program, *(["all"] if name in WITH_NAMES else [])]
    with serving(lambda request: say("The model answers.")) as server:
        env = environment(tmp_path, server)
        done = subprocess.run(
            words, env=env, cwd=tmp_path / "examples", input="", capture_output=True, text=True, timeout=PROGRAM_S
        )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("The model answers.") >= EXAMPLES[name]


TYPESCRIPT = """
import { query, tool, createSdkMcpServer } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";

const log = [];
const add = tool("add", "Add", { a: z.number(), b: z.number() }, async ({ a, b }) => (
  { content: [{ type: "text", text: `the sum is ${a + b}` }] }));
let finish;
const finished = new Promise((resolve) => { finish = resolve; });
async function* prompts() {
  yield { type: "user", message: { role: "user", content: "go" }, parent_tool_use_id: null, session_id: "" };
  await finished;
}
const run = query({ prompt: prompts(), options: {
  pathToClaudeCodeExecutable: process.env.PANPAN,
  mcpServers: { calc: createSdkMcpServer({ name: "calc", version: "1.0.0", tools: [add] }) },
  canUseTool: async (name, input) => {
    log.push(["ask", name]);
    return name === "Bash" ? { behavior: "deny", message: "no" } : { behavior: "allow", updatedInput: input };
  },
  hooks: { PreToolUse: [{ hooks: [async (input) => { log.push(["hook", input.tool_name]); return {}; }] }] },
} });
for await (const message of run) {
  if (message.type === "result") {
    log.push(["result", message.result]);
    await run.setPermissionMode("acceptEdits");
    log.push(["commands", (await run.supportedCommands()).length > 0]);
    finish();
  }
}
console.log(JSON.stringify(log));
"""


@pytest.fixture(scope="session")
def typescript(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the SDK and `program.mjs`."""
    return installed_once(tmp_path_factory, "typescript-sdk", install_typescript_sdk)


def install_typescript_sdk(folder: Path) -> None:
    """Install the TypeScript SDK without its own program."""
    npm = Path(node()).resolve().parents[1] / "lib/node_modules/npm/bin/npm-cli.js"
    (folder / "package.json").write_text('{"type": "module"}')
    quiet = ["--silent", "--no-audit", "--no-fund", "--omit=optional", "--ignore-scripts"]
    installed([node(), str(npm), "install", *quiet, TYPESCRIPT_SDK], folder)
    (folder / "program.mjs").write_text(TYPESCRIPT)


@DIALECTS
def test_typescript_program_runs(typescript: Path, tmp_path: Path, dialect: str) -> None:
    script = [
        call("mcp__calc__add", {"a": 1, "b": 2}),
        call("Bash", {"command": "touch x", "description": "x"}),
        say("end"),
    ]
    with serving(script) as server:
        env = environment(tmp_path, server, dialect)
        done = subprocess.run(
            [node(), typescript / "program.mjs"],
            env=env, cwd=tmp_path / "workspace", capture_output=True, text=True, timeout=PROGRAM_S,
        )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [
        ["hook", "mcp__calc__add"], ["ask", "mcp__calc__add"], ["hook", "Bash"], ["ask", "Bash"], ["result", "end"],
        ["commands", True],
    ]  # fmt: skip
    assert "the sum is 3" in json.dumps(server.requests[1].body)


STORE = """
LOOK = {"description": "look", "prompt": "look", "subagent_type": "explore"}

class Counting(InMemorySessionStore):
    async def append(self, key, entries):
        COUNTS.extend((key["session_id"], key.get("subpath"), entry["uuid"]) for entry in entries)
        await super().append(key, entries)

COUNTS = []

async def turn(store, prompt, **more):
    async for message in query(prompt=prompt, options=ClaudeAgentOptions(**OPTIONS, session_store=store, **more)):
        if isinstance(message, ResultMessage):
            return message
        if getattr(message, "subtype", "") == "mirror_error":
            raise AssertionError(message)

async def main():
    store = Counting()
    first = await turn(store, "remember 7")
    session = first.session_id
    os.environ["PANPAN_HOME"] = os.path.join(os.environ["HOME"], "other")
    second = await turn(store, "and 8", resume=session)
    os.environ["PANPAN_HOME"] = os.path.join(os.environ["HOME"], "third")
    third = await turn(store, "and 9", continue_conversation=True)
    key = project_key_for_directory(os.getcwd())
    messages = await get_session_messages_from_store(store, session)
    listed = await list_sessions_from_store(store)
    agents = await list_subagents_from_store(store, session)
    forked = await fork_session_via_store(store, session)
    fourth = await turn(store, "and 10", resume=forked.session_id)
    logs = [line for folder, _, names in os.walk(os.path.join(os.environ["HOME"], "third", "projects"))
            for name in names if name == session + ".jsonl" for line in open(os.path.join(folder, name))]
    stored = await store.load({"project_key": key, "session_id": session})
    print(json.dumps({
        "ids": [second.session_id == session, third.session_id == session, fourth.session_id == forked.session_id],
        "results": [first.result, second.result, third.result, fourth.result],
        "once": len(COUNTS) == len(set(COUNTS)),
        "same": [json.loads(line) for line in logs] == stored,
        "told": [text in json.dumps([one.message for one in messages]) for text in ("remember 7", "first", "and 9")],
        "listed": [one.session_id for one in listed] == [session],
        "prompt": listed[0].first_prompt,
        "agents": len(agents),
    }))

asyncio.run(main())
"""


@DIALECTS
def test_session_goes_on_from_the_store_of_the_sdk(run: Run, dialect: str) -> None:
    look = {"description": "look", "prompt": "look", "subagent_type": "explore"}
    script = [call("Task", look), say("found"), say("first"), say("second"), say("third"), say("fourth")]
    with serving(script) as server:
        told = run(STORE, server, dialect)

    assert told == {
        "ids": [True] * 3, "results": ["first", "second", "third", "fourth"], "once": True, "same": True,
        "told": [True] * 3, "listed": True, "prompt": "remember 7", "agents": 1,
    }  # fmt: skip
    sent = json.dumps(server.requests[-1].messages)
    words = ("first", "and 8", "second", "and 9", "third")
    assert [sent.count(json.dumps(text)) for text in words] == [1] * len(words)
    assert sent.count("remember 7") == 1


TYPESCRIPT_STORE = """
import { query } from "@anthropic-ai/claude-agent-sdk";

const kept = new Map();
const name = (key) => [key.projectKey, key.sessionId, key.subpath ?? ""].join("|");
const store = {
  append: async (key, entries) => { kept.set(name(key), [...(kept.get(name(key)) ?? []), ...entries]); },
  load: async (key) => kept.get(name(key)) ?? null,
  listSubkeys: async (key) => [...kept.keys()].map((one) => one.split("|"))
    .filter((parts) => parts[0] === key.projectKey && parts[1] === key.sessionId && parts[2]).map((parts) => parts[2]),
};
async function turn(prompt, more, env) {
  const options = { pathToClaudeCodeExecutable: process.env.PANPAN, sessionStore: store, ...more,
    env: { ...process.env, ...env } };
  for await (const message of query({ prompt, options })) {
    if (message.type === "result") return message;
  }
}
const first = await turn("remember 7", {}, {});
const second = await turn("and 8", { resume: first.session_id }, { PANPAN_HOME: `${process.env.HOME}/other` });
const ids = [...kept.values()].flat().map((one) => one.uuid);
console.log(JSON.stringify([second.session_id === first.session_id, second.result, kept.size,
  ids.length === new Set(ids).size]));
"""


def test_typescript_session_goes_on_from_the_store(typescript: Path, tmp_path: Path) -> None:
    look = {"description": "look", "prompt": "look", "subagent_type": "explore"}
    (typescript / "store.mjs").write_text(TYPESCRIPT_STORE)
    with serving([call("Task", look), say("found"), say("first"), say("second")]) as server:
        env = environment(tmp_path, server)
        workspace = tmp_path / "workspace" / ("long \N{SNAKE} " * 20)
        workspace.mkdir()
        done = subprocess.run(
            [node(), typescript / "store.mjs"],
            env=env, cwd=workspace, capture_output=True, text=True, timeout=PROGRAM_S,
        )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [True, "second", 2, True]
    assert "remember 7" in json.dumps(server.requests[-1].messages)


TYPESCRIPT_ELICITATION = """
import { query } from "@anthropic-ai/claude-agent-sdk";

const log = [];
async function* prompts() {
  yield { type: "user", message: { role: "user", content: "go" }, parent_tool_use_id: null, session_id: "" };
  await finished;
}
let finish;
const finished = new Promise((resolve) => { finish = resolve; });
const run = query({ prompt: prompts(), options: {
  pathToClaudeCodeExecutable: process.env.PANPAN, allowedTools: ["mcp__toy__echo"],
  mcpServers: { toy: JSON.parse(process.env.TOY) },
  onElicitation: async (asked) => {
    log.push([asked.serverName, asked.message, Object.keys(asked.requestedSchema.properties)]);
    return { action: "accept", content: { city: "Rome" } }; },
} });
for await (const message of run) {
  if (message.type === "result") { log.push(message.result); finish(); }
}
console.log(JSON.stringify(log));
"""


def test_typescript_program_answers_a_server(typescript: Path, tmp_path: Path) -> None:
    (typescript / "asked.mjs").write_text(TYPESCRIPT_ELICITATION)
    (tmp_path / "state.json").write_text('{"trap": "asks"}')
    arguments = ["-I", "-S", mcp_server.__file__, str(tmp_path / "state.json"), str(tmp_path / "mcp.log")]
    script = [
        call("ToolSearch", {"query": "echo"}),
        call("CallTool", {"name": "mcp__toy__echo", "arguments": {"message": "hi"}}),
        say("end"),
    ]
    with serving(script) as server:
        env = {
            **environment(tmp_path, server),
            "TOY": json.dumps({"type": "stdio", "command": sys.executable, "args": arguments}),
        }
        done = subprocess.run(
            [node(), typescript / "asked.mjs"],
            env=env, cwd=tmp_path / "workspace", capture_output=True, text=True, timeout=PROGRAM_S,
        )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [["toy", "Where?", ["city"]], "end"]
    assert "Rome" in json.dumps(server.requests[-1].messages[-1])


TYPESCRIPT_REQUESTS = """
import { query, tool, createSdkMcpServer } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";

const log = [];
const sum = tool("add", "Add", { a: z.number() }, async ({ a }) => (
  { content: [{ type: "text", text: `the sum is ${a}` }] }));
const add = (name) => createSdkMcpServer({ name, version: "1.0.0", tools: [sum] });
let finish;
const finished = new Promise((resolve) => { finish = resolve; });
let begin;
const begun = new Promise((resolve) => { begin = resolve; });
async function* prompts() {
  await begun;
  yield { type: "user", message: { role: "user", content: "go" }, parent_tool_use_id: null, session_id: "" };
  await finished;
}
const run = query({ prompt: prompts(), options: {
  pathToClaudeCodeExecutable: process.env.PANPAN, allowedTools: ["mcp__later__add"], mcpServers: { calc: add("calc") },
} });
const reading = (async () => {
  for await (const message of run) {
    if (message.type === "result") { log.push(message.result); finish(); }
  }
})();
await run.supportedCommands();
log.push(await run.setMcpServers({ later: add("later"), toy: JSON.parse(process.env.TOY) }));
log.push((await run.mcpServerStatus()).map((one) => one.name));
log.push((await run.readFile("a.txt")).contents);
log.push(await run.cancelAsyncMessage("11111111-2222-4333-8444-555555555555"));
await run.applyFlagSettings({ effortLevel: "low" });
begin();
await reading;
console.log(JSON.stringify(log));
"""


def test_typescript_program_sends_requests(typescript: Path, tmp_path: Path) -> None:
    (typescript / "requests.mjs").write_text(TYPESCRIPT_REQUESTS)
    arguments = ["-I", "-S", mcp_server.__file__, str(tmp_path / "state.json"), str(tmp_path / "mcp.log")]
    script = [
        call("ToolSearch", {"query": "add"}),
        call("CallTool", {"name": "mcp__later__add", "arguments": {"a": 3}}),
        say("end"),
    ]
    with serving(script) as server:
        env = {
            **environment(tmp_path, server),
            "TOY": json.dumps({"type": "stdio", "command": sys.executable, "args": arguments}),
        }
        (tmp_path / "workspace" / "a.txt").write_text("a\n")
        done = subprocess.run(
            [node(), typescript / "requests.mjs"],
            env=env, cwd=tmp_path / "workspace", capture_output=True, text=True, timeout=PROGRAM_S,
        )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [
        {"added": ["later", "toy"], "removed": ["calc"], "errors": {}}, ["later", "toy"], "a\n", False, "end",
    ]  # fmt: skip
    assert "the sum is 3" in json.dumps(server.requests[-1].messages[-1])
