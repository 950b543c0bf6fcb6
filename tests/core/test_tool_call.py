"""Calls with wrong arguments are answered in the words of JSON, which the model writes."""

from pydantic import BaseModel

from panpan.core.tool_call import prepared
from panpan.types.content import ToolUseBlock
from tests.fakes.tools import FakeTool


class Arguments(BaseModel):
    command: tuple[str, ...] = ()


class Run(FakeTool):
    input_model = Arguments  # type: ignore[assignment]  # other arguments than those of its fake


def test_what_should_be_a_list_is_called_one() -> None:
    call = prepared(ToolUseBlock(id="1", name="Look", input={"command": "python train.py"}), {"Look": Run()})

    assert call.problem.endswith("- command: Input should be a valid list")


def test_of_a_tool_that_is_not_there_those_are_named_that_the_model_was_told_of() -> None:
    tools = {"Look": Run(), "Hide": Run()}

    call = prepared(ToolUseBlock(id="1", name="Loop", input={}), tools, ["Look"])

    assert call.problem == "There is no tool named 'Loop'. Did you mean Look? The tools are: Look."
