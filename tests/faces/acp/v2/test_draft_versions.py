"""The version is what the client asks for, up to 2, and what is wrong gets an error."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from panpan.faces.acp.v2.server import DraftServer
from tests.capabilities.mcp.place import Place
from tests.faces.acp.editor import AgentError, Editor, command, options_of, program, served, silent, yes
from tests.faces.acp.test_sessions import WRITE
from tests.faces.acp.v2.draft_editor import INFO, DraftEditor, drafting


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


async def test_client_of_version_1_gets_version_1(place: Place) -> None:
    options = options_of(place, [WRITE, "done"], [], {})
    async with served(DraftServer, Editor, place, options, yes) as editor:
        assert (await editor.initialize())["protocolVersion"] == 1
        session = await editor.new(place.root)
        assert await editor.prompt(session) == "end_turn"
        await editor.request("session/set_mode", sessionId=session, modeId="plan")
        with pytest.raises(AgentError, match="no method auth/logout in version 1"):
            await editor.request("auth/logout")
        with pytest.raises(AgentError, match="version 1 was agreed upon"):
            await editor.request("initialize", protocolVersion=2, info=INFO)

    assert (place.root / "new.txt").exists()
    assert editor.updates("tool_call")[0]["sessionUpdate"] == "tool_call"
    assert "agreed upon" not in json.dumps(place.warnings)


async def test_abilities_that_are_nonsense_are_none_in_version_2(place: Place) -> None:
    async with served(DraftServer, DraftEditor, place, options_of(place, [], [], {}), silent) as editor:
        for nonsense in ([], {"elicitation": True}, {"auth": {"terminal": "yes"}}):
            params = {"protocolVersion": 2, "info": INFO, "capabilities": nonsense}
            assert (await editor.reply(await editor.begin_with("initialize", params)))["protocolVersion"] == 2
        await editor.new(place.root)


@pytest.mark.parametrize("asked", [2, 3, 65535])
async def test_later_version_gets_version_2(place: Place, asked: int) -> None:
    async with served(DraftServer, DraftEditor, place, options_of(place, [], [], {}), silent) as editor:
        result = await editor.request("initialize", protocolVersion=asked, info=INFO, capabilities={"_new": 1})
        again = await editor.initialize()

    assert result["protocolVersion"] == again["protocolVersion"] == 2


async def test_version_0_is_an_error_with_the_versions(place: Place) -> None:
    async with served(DraftServer, DraftEditor, place, options_of(place, [], [], {}), silent) as editor:
        error = await editor.refused("initialize", {"protocolVersion": 0, "info": INFO})
        (message,) = editor.replies(1)
        assert (await editor.initialize())["protocolVersion"] == 2

    assert error.code == -32022
    assert message["error"]["data"] == {"requested": 0, "supported": [1, 2]}


@pytest.mark.parametrize("method", ["session/new", "session/list", "session/load", "auth/login"])
async def test_method_before_initialize_is_an_error(place: Place, method: str) -> None:
    async with served(DraftServer, DraftEditor, place, options_of(place, [], [], {}), silent) as editor:
        error = await editor.refused(method, {"cwd": str(place.root)})

    assert (error.code, str(error)) == (-32600, "send initialize first")


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("initialize", {"protocolVersion": 2}, -32602),
        ("initialize", {"protocolVersion": 70_000, "info": INFO}, -32602),
        ("initialize", {"protocolVersion": 1}, -32600),
        ("session/load", {"sessionId": "x"}, -32601),
        ("session/set_mode", {"sessionId": "x", "modeId": "plan"}, -32601),
        ("session/dance", {}, -32601),
        ("session/prompt", {"sessionId": "x", "prompt": [{"type": "text", "text": "go"}]}, -32002),
        ("session/prompt", {"sessionId": "x", "prompt": [{"type": "_song", "notes": "cde"}]}, -32602),
        ("session/prompt", {"sessionId": "x", "prompt": "go"}, -32602),
        ("session/new", {"cwd": "relative"}, -32602),
        ("session/new", {"cwd": "/", "mcpServers": [{"type": "sse", "name": "a", "url": "http://a"}]}, -32602),
        ("session/new", {"cwd": "/", "mcpServers": [{"type": "stdio", "name": "a", "command": "/a"}] * 2}, -32602),
        ("session/list", {"cursor": ""}, -32602),
        ("auth/login", {"methodId": "x"}, -32602),
    ],
)
async def test_nonsense_gets_its_error(place: Place, method: str, params: dict[str, Any], code: int) -> None:
    async with drafting(place) as editor:
        assert (await editor.refused(method, params)).code == code
        await editor.new(place.root)


async def test_unknown_session_is_named_in_the_error(place: Place) -> None:
    async with drafting(place) as editor:
        await editor.refused("session/resume", {"sessionId": "x", "cwd": str(place.root)})

    assert editor.messages[-1]["error"]["data"] == {"sessionId": "x"}


async def test_servers_of_the_editor_count(place: Place) -> None:
    server = {"type": "stdio", "name": "My Toy", **place.entry}
    search = ("ToolSearch", {"query": "echo"})
    call = ("CallTool", {"name": "mcp__My_Toy__echo", "arguments": {"text": "hello"}})
    async with drafting(place, search, call, "called") as editor:
        await editor.prompt(await editor.new(place.root, mcpServers=[server]))

    assert place.starts >= 1
    assert editor.updates("tool_call")[-1]["status"] == "completed"


@pytest.mark.parametrize("terminal", [True, False])
def test_login_is_offered_only_without_a_model_in_version_2(place: Place, terminal: bool) -> None:
    capabilities = {"auth": {"terminal": {}}} if terminal else {}
    calls = [
        ("initialize", {"protocolVersion": 2, "info": INFO, "capabilities": capabilities}),
        ("auth/login", {"methodId": "login"}),
        ("auth/logout", {}),
    ]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        for number, (method, params) in enumerate(calls)
    ]
    words = program(place, "acp", "--protocol", "2")
    done = subprocess.run(
        words,
        input="\n".join(lines),
        env=place.env,
        cwd=place.root,
        capture_output=True,
        text=True,
        timeout=60,
    )

    replies = {one["id"]: one for one in map(json.loads, done.stdout.splitlines())}
    (method,) = replies[0]["result"]["authMethods"]
    assert (method["type"], method["methodId"]) == ("terminal" if terminal else "agent", "login")
    assert replies[1]["error"]["code"] == -32000
    assert replies[2]["result"] == {}  # nobody is logged in
    assert done.returncode == 0


def test_version_1_is_the_default(place: Place) -> None:
    params = {"protocolVersion": 2, "info": INFO, "capabilities": {}}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    done = subprocess.run(
        command(place), input=line, env=place.env, cwd=place.root, capture_output=True, text=True, timeout=60
    )

    assert json.loads(done.stdout)["result"]["protocolVersion"] == 1
