"""Functions as tools: what is refused when the tool is made, and not with the first call."""

from collections.abc import Callable
from typing import Any

import pytest

from panpan.tools import Output, tool
from tests.fakes.context import context_in


async def repeat(word: str, times: int = 2) -> str:
    """Repeat a word."""
    return word * times


async def test_function_tool_takes_its_schema_from_the_signature(tmp_path: Any) -> None:
    made = tool(repeat)

    args = made.input_model.model_validate({"word": "ab"})
    yields = [one async for one in made.run(args, context_in(tmp_path))]

    assert made.definition.description == "Repeat a word."
    assert made.definition.input_schema["required"] == ["word"]
    assert [one.text for one in yields if isinstance(one, Output)] == ["abab"]


async def untold(word: str) -> str:
    return word


async def untyped(word) -> str:
    """Say a word."""
    return word


async def many(*words: str) -> str:
    """Say words."""
    return " ".join(words)


async def named(**words: str) -> str:
    """Say words."""
    return " ".join(words)


async def placed(word: str, /) -> str:
    """Say a word."""
    return word


def blocking(word: str) -> str:
    """Say a word."""
    return word


@pytest.mark.parametrize("function", [untold, untyped, many, named, placed, blocking])
def test_function_tool_refuses_functions_that_no_call_can_reach(function: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=function.__name__):
        tool(function)
