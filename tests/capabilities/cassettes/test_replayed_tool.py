"""A replayed tool looks like the one that it stands in for."""

from typing import Any

import pytest

from panpan.capabilities.cassettes.replay_parts import replayed_tool
from panpan.core.tool import Tool
from tests.fakes.every_tool import every_tool


async def no_wait() -> None:
    pass


@pytest.mark.parametrize("tool", every_tool(), ids=lambda tool: tool.name)
def test_taped_tool_describes_itself_like_the_real_one(tool: Tool[Any]) -> None:
    stand_in = replayed_tool(tool, {}, no_wait)

    for attribute in ("name", "input_model", "only_reads", "is_shared", "is_for_subagents"):
        assert getattr(stand_in, attribute) == getattr(tool, attribute)
