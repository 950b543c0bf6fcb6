"""Fixtures for the tests of the Bash tool: a shell in a workspace."""

from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from panpan.capabilities.shell.bash import BashInput, BashTool
from panpan.core.tool import ToolContext
from panpan.types.events import Output, Progress
from tests.fakes.context import context_in


@dataclass
class Shell:
    """Runs commands in a folder, as a session does."""

    root: Path
    ctx: ToolContext
    progress: list[str] = field(default_factory=list)
    """Progress of the last command."""

    async def run(self, command: str, *, timeout: int = 60_000, runs_alone: bool = True) -> Output:
        ctx = replace(self.ctx, runs_alone=runs_alone)
        self.progress.clear()
        outputs = []
        async with aclosing(BashTool().run(BashInput(command=command, timeout=timeout), ctx)) as yields:
            async for one in yields:
                if isinstance(one, Progress):
                    self.progress.append(one.text)
                else:
                    outputs.append(one)
        assert len(outputs) == 1
        return outputs[0]

    async def text(self, command: str, *, timeout: int = 60_000, runs_alone: bool = True) -> str:
        output = await self.run(command, timeout=timeout, runs_alone=runs_alone)
        return output.text


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    root = tmp_path / "work"
    root.mkdir()
    return Shell(root.resolve(), context_in(root.resolve(), tool_use_id="toolu_1"))
