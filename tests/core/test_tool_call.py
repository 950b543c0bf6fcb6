"""Calls with wrong arguments are answered in the words of JSON, which the model writes."""

from pydantic import BaseModel

from panpan.core.tool_call import prepare_call
from panpan.types.content import ToolUseBlock
from tests.fakes.tools import FakeTool


class Arguments(BaseModel):
    command: tuple[str, ...] = ()


class Run(FakeTool):
    input_model = Arguments  # type: ignore[assignment]  # other arguments than those of its fake


def test_tool_call_problem_names_json_types() -> None:
    call = prepare_call(ToolUseBlock(id="1", name="Look", input={"command": "python train.py"}), {"Look": Run()})

    assert call.problem.endswith("- command: Input should be a valid list")


def test_unknown_tool_problem_names_the_offered_tools() -> None:
    tools = {"Look": Run(), "Hide": Run()}

    call = prepare_call(ToolUseBlock(id="1", name="Loop", input={}), tools, ["Look"])

    assert call.problem == "There is no tool named 'Loop'. Did you mean Look? The tools are: Look."
