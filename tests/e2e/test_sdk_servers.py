"""MCP servers beside a program on the Agent SDK: their questions, and requests about them."""

import json
import sys
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
