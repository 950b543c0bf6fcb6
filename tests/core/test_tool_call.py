"""What a call says whose arguments do not fit is in the words of JSON, which the model writes."""

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
