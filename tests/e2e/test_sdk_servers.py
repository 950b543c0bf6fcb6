"""MCP servers beside a program on the Agent SDK: their questions, and requests about them."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Panpan
from tests.e2e.sdk_program import ASKS, Line, Program, running
from tests.fakes import mcp_server
from tests.model_server import call, say, serving

SEARCH = call("ToolSearch", {"query": "echo"})
ECHO = call("CallTool", {"name": "mcp__toy__echo", "arguments": {"message": "hi"}})
MAY = ("--allowedTools", "mcp__toy__echo")
FORM = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class Toy:
    """A server for tests, as a program beside panpan."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.set_state()

    def set_state(self, **state: Any) -> None:
        (self._folder / "state.json").write_text(json.dumps(state))

    @property
    def entry(self) -> dict[str, Any]:
        arguments = ["-I", "-S", mcp_server.__file__, str(self._folder / "state.json"), str(self._folder / "mcp.log")]
        return {"command": sys.executable, "args": arguments, "alwaysLoad": True}

    @property
    def option(self) -> tuple[str, str]:
        return "--mcp-config", json.dumps({"mcpServers": {"toy": self.entry}})

    @property
    def log(self) -> str:
        file = self._folder / "mcp.log"
        return file.read_text() if file.exists() else ""


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    return Toy(tmp_path)


def asked(program: Program) -> Line:
    """Let the server ask, and return the request."""
    program.say("go")
    return program.request("elicitation")


def result_of_call(server: Any) -> str:
    """Return the last result of a tool, as JSON."""
    return json.dumps(server.requests[-1].messages[-1]).replace("\\", "")


@pytest.mark.parametrize("options", [(), ASKS])
def test_question_of_a_server_is_put_to_the_program(panpan: Panpan, toy: Toy, options: tuple[str, ...]) -> None:
    toy.set_state(trap="asks")
    with serving([SEARCH, ECHO, say("done")]) as server:
        panpan.use(server)
        with running(panpan, *toy.option, *MAY, *options) as program:
            request = asked(program)
            program.answer(request, action="accept", content={"city": "Rome"})
            assert program.result()["result"] == "done"
            program.end()

    told = request["request"]
    assert (told["mcp_server_name"], told["message"], told["mode"]) == ("toy", "Where?", "form")
    assert told["requested_schema"] == FORM
    assert told["property_order"] == ["city"]
    assert '"content": {"city": "Rome"}' in result_of_call(server)


@pytest.mark.parametrize("answer", [{"action": "decline"}, {"action": "perhaps"}, {}])
def test_answer_that_is_no_yes_declines(panpan: Panpan, toy: Toy, answer: dict[str, Any]) -> None:
    toy.set_state(trap="asks")
    with serving([SEARCH, ECHO, say("done")]) as server:
        panpan.use(server)
        with running(panpan, *toy.option, *MAY) as program:
            program.answer(asked(program), **answer)
            program.result()
            program.end()

    assert '"action": "decline"' in result_of_call(server)


def test_program_without_the_question_is_asked_otherwise(panpan: Panpan, toy: Toy) -> None:
    toy.set_state(trap="asks")
    with serving([SEARCH, ECHO, say("done")]) as server:
        panpan.use(server)
        with running(panpan, *toy.option, *MAY, *ASKS) as program:
            program.fail(asked(program), "Unsupported control request subtype: elicitation")
            request = program.request("can_use_tool")
            (question,) = request["request"]["input"]["questions"]
            given = {**request["request"]["input"], "answers": {question["question"]: "Rome"}}
            program.answer(request, behavior="allow", updatedInput=given)
            program.result()
            program.end()

    assert '"content": {"city": "Rome"}' in result_of_call(server)


def test_question_that_waits_holds_up_no_interrupt(panpan: Panpan, toy: Toy) -> None:
    toy.set_state(trap="asks")
    with serving([SEARCH, ECHO, say("next")]) as server:
        panpan.use(server)
        with running(panpan, *toy.option, *MAY) as program:
            request = asked(program)
            assert program.call("interrupt")["subtype"] == "success"
            assert program.result()["terminal_reason"].startswith("aborted")
            program.answer(request, action="accept", content={"city": "Rome"})
            program.say("again")
            assert program.result()["result"] == "next"
            assert program.end().code == 0


def test_tool_of_a_server_is_called_for_the_program(panpan: Panpan, toy: Toy) -> None:
    with serving([]) as server:
        panpan.use(server)
        with running(panpan, *toy.option) as program:
            answer = program.call("mcp_call", tool="mcp__toy__echo", arguments={"message": "hi"})["response"]
            unknown = program.call("mcp_call", tool="mcp__other__echo", arguments={})
            staged = program.call("mcp_call", tool="mcp__toy__echo", arguments={}, timeout_ms=1000)
            wrong = program.call("mcp_call", tool="mcp__toy__echo", arguments=[1])
            toy.set_state(trap="error")
            program.call("mcp_reconnect", serverName="toy")
            failed = program.call("mcp_call", tool="mcp__toy__echo", arguments={"message": "hi"})
            program.end()

    assert answer == {"content": [{"type": "text", "text": "hi"}]}
    assert "there is no MCP server with the tool mcp__other__echo" in unknown["error"]
    assert "timeout_ms" in staged["error"]
    assert "no object" in wrong["error"]
    assert failed["subtype"] == "error"
    assert toy.log.count("call ") == 2


def test_tool_cannot_be_called_without_servers(panpan: Panpan) -> None:
    with serving([]) as server:
        panpan.use(server)
        with running(panpan) as program:
            assert "there is no MCP server" in program.call("mcp_call", tool="mcp__toy__echo")["error"]
            program.end()


def test_servers_are_replaced_within_the_session(panpan: Panpan, toy: Toy) -> None:
    first = ("--mcp-config", json.dumps({"mcpServers": {"fixed": toy.entry}}))
    with serving([SEARCH, ECHO, say("done"), SEARCH, ECHO, say("gone")]) as server:
        panpan.use(server)
        with running(panpan, *first, *MAY) as program:
            given = {"toy": toy.entry, "gone": {"command": "/no/such/program"}, "FIXED": toy.entry, "wrong": {"url": 3}}
            added = program.call("mcp_set_servers", servers=given)["response"]
            again = program.call("mcp_set_servers", servers={"toy": toy.entry})["response"]
            program.say("go")
            program.result()
            first_call = result_of_call(server)
            starts = toy.log.count("start ")
            removed = program.call("mcp_set_servers", servers={})["response"]
            left = [one["name"] for one in program.call("mcp_status")["response"]["mcpServers"]]
            program.say("again")
            program.result()
            program.end()

    assert added["added"] == ["gone", "toy"]
    assert "there is no such program" in added["errors"]["gone"]
    assert "hard to tell from fixed" in added["errors"]["FIXED"]
    assert set(added["errors"]) == {"gone", "FIXED", "wrong"}
    assert again == {"added": [], "removed": ["gone"], "errors": {}}
    assert "hi" in first_call
    assert removed == {"added": [], "removed": ["toy"], "errors": {}}
    assert left == ["fixed"]
    assert "there is no" in result_of_call(server) or "unknown" in result_of_call(server)
    assert toy.log.count("start ") == starts


def test_server_of_the_program_comes_later(panpan: Panpan, toy: Toy) -> None:
    add = [call("ToolSearch", {"query": "add"}), call("CallTool", {"name": "mcp__calc__add", "arguments": {}})]
    with serving([*add, say("done")]) as server:
        panpan.use(server)
        with running(panpan, *toy.option, "--allowedTools", "mcp__calc__add") as program:
            request = program.ask("mcp_set_servers", servers={"calc": {"type": "sdk", "name": "calc"}})
            answer = answered_until(program, lambda line: line.get("response", {}).get("request_id") == request)
            program.say("go")
            answered_until(program, lambda line: line["type"] == "result")
            program.end()

    assert answer["response"]["response"] == {"added": ["calc"], "removed": [], "errors": {}}
    assert "the sum is 3" in result_of_call(server)


def test_servers_cannot_come_into_a_session_without_any(panpan: Panpan, toy: Toy) -> None:
    with serving([]) as server:
        panpan.use(server)
        with running(panpan) as program:
            assert "began without MCP servers" in program.call("mcp_set_servers", servers={"toy": toy.entry})["error"]
            assert program.call("mcp_set_servers", servers={})["response"]["errors"] == {}
            assert "no object" in program.call("mcp_set_servers", servers=[])["error"]
            program.end()


def test_page_of_a_server_is_read(panpan: Panpan, toy: Toy) -> None:
    with serving([]) as server:
        panpan.use(server)
        with running(panpan, *toy.option) as program:
            page = program.call("mcp_read_resource", serverName="toy", uri="ui://page")["response"]
            asked = [("toy", "ui://none"), ("toy", "toy://notes"), ("nope", "ui://page")]
            refused = [
                program.call("mcp_read_resource", serverName=name, uri=uri).get("error", "") for name, uri in asked
            ]
            toy.set_state(page="x" * 10_000_001)
            program.call("mcp_reconnect", serverName="toy")
            large = program.call("mcp_read_resource", serverName="toy", uri="ui://page")
            program.end()

    assert page == {"contents": [{"uri": "ui://page", "mimeType": "text/html", "text": "<p>"}]}
    assert "there is no such resource" in refused[0]
    assert "begin with ui://" in refused[1]
    assert "there is no MCP server nope" in refused[2]
    assert "too much to show" in large["error"]


def answered_until(program: Program, is_last: Callable[[Line], bool]) -> Line:
    """Answer as the MCP server of the program until a line comes."""
    tool = {"name": "add", "description": "Add", "inputSchema": {"type": "object", "properties": {}}}
    info = {"name": "calc", "version": "1"}
    results: dict[str, Any] = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info},
        "tools/list": {"tools": [tool]},
        "tools/call": {"content": [{"type": "text", "text": "the sum is 3"}]},
    }
    while True:
        line = program.until(lambda line: line["type"] == "control_request" or is_last(line))
        if line["type"] != "control_request":
            return line
        message = line["request"]["message"]
        result = results.get(message["method"], {})
        program.answer(line, mcp_response={"jsonrpc": "2.0", "id": message.get("id", 0), "result": result})
