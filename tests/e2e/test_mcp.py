"""MCP servers of the real program: headless, recorded and played back without the servers, and in the first line."""

import json
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import Panpan
from tests.fakes import mcp_server
from tests.model_server import call, say, serving

SCRIPT = [
    call("ToolSearch", {"query": "echo"}),
    call("CallTool", {"name": "mcp__toy__echo", "arguments": {"message": "hi"}}),
    say("done"),
]


@pytest.fixture
def config(tmp_path: Path) -> str:
    (tmp_path / "state.json").write_text("{}")
    arguments = ["-I", "-S", mcp_server.__file__, str(tmp_path / "state.json"), str(tmp_path / "mcp.log")]
    return json.dumps({"mcpServers": {"toy": {"command": sys.executable, "args": arguments}}})


def test_recorded_calls_are_played_without_the_server(panpan: Panpan, config: str, tmp_path: Path) -> None:
    tape = str(tmp_path / "tape.jsonl")
    with serving(SCRIPT) as server:
        panpan.use(server)
        done = panpan.run("-p", "go", "--yes", "--mcp-config", config, "--record", tape)
    lines = (tmp_path / "mcp.log").read_text()

    replays = [panpan.run("replay", tape, "--mode", mode) for mode in ("strict", "semantic")]

    assert done.stdout == "done\n"
    assert [replay.code for replay in replays] == [0, 0], replays
    assert "hi" in replays[0].stdout
    assert (tmp_path / "mcp.log").read_text() == lines


def test_first_line_and_results_name_the_server(panpan: Panpan, config: str) -> None:
    with serving(SCRIPT) as server:
        panpan.use(server)
        done = panpan.run("-p", "go", "--yes", "--mcp-config", config, "-f", "stream-json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]

    assert lines[0]["mcp_servers"] in (
        [{"name": "toy", "status": "pending", "scope": "flag"}],
        [{"name": "toy", "status": "connected", "scope": "flag"}],
    )
    assert "/mcp" in {f"/{name}" for name in lines[0]["slash_commands"]}
    assert "hi" in json.dumps(lines)


def test_call_that_nobody_allows_is_in_the_denials(panpan: Panpan, config: str) -> None:
    with serving(SCRIPT) as server:
        panpan.use(server)
        done = panpan.run("-p", "go", "--mcp-config", config, "-f", "json")
    (denial,) = json.loads(done.stdout)["permission_denials"]

    assert denial["tool_name"] == "mcp__toy__echo"
    assert denial["tool_input"] == {"message": "hi"}


def test_wrong_config_is_exit_two(panpan: Panpan) -> None:
    with serving([]) as server:
        panpan.use(server)
        done = panpan.run("-p", "go", "--mcp-config", "{")

    assert done.code == 2
    assert "--mcp-config: it is not JSON" in done.stderr
