"""Fixtures for the tests of the search tools: a workspace, and a way to call a tool in it."""

import os
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from panpan.capabilities.search.glob import GlobTool
from panpan.capabilities.search.grep import GrepTool
from panpan.capabilities.search.ls import LsTool
from panpan.core.tool import ToolContext
from panpan.types.events import Output
from tests.fakes.context import context_in


class Workspace:
    """A folder with a tool context in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ctx: ToolContext = context_in(root)
        self._clock = 1_000_000_000

    def put(self, name: str, data: bytes | str = "") -> Path:
        """Make a file; each is a second newer than the one before."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        self._clock += 1
        os.utime(path, (self._clock, self._clock))
        return path

    async def call(self, tool: GlobTool | GrepTool | LsTool, arguments: dict[str, Any]) -> Output:
        """Call a tool as the executor does, and return its one output."""
        outputs = []
        async with aclosing(tool.run(tool.input_model.model_validate(arguments), self.ctx)) as yields:
            async for one in yields:
                outputs.append(one)
        assert len(outputs) == 1
        assert isinstance(outputs[0], Output)
        return outputs[0]

    async def glob(self, pattern: str, **arguments: Any) -> list[str]:
        return text_of(await self.call(GlobTool(), {"pattern": pattern, **arguments})).split("\n")

    async def grep(self, pattern: str, **arguments: Any) -> list[str]:
        """Call Grep; context flags are written `A`, `B`, `C`, `n` and `i` here."""
        named = {f"-{key}" if len(key) == 1 else key: value for key, value in arguments.items()}
        return text_of(await self.call(GrepTool(), {"pattern": pattern, **named})).split("\n")

    async def ls(self, **arguments: Any) -> list[str]:
        return text_of(await self.call(LsTool(), arguments)).split("\n")


def text_of(output: Output) -> str:
    assert isinstance(output.content, str)
    return output.content


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    root = tmp_path / "work"
    root.mkdir()
    return Workspace(root.resolve())
