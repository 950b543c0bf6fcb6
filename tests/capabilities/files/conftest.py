"""Fixtures for the tests of the file tools: a workspace, and a way to call a tool in it."""

from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from panpan.capabilities.files.edit import EditTool, MultiEditTool
from panpan.capabilities.files.notebook_edit import NotebookEditTool
from panpan.capabilities.files.patch import PatchTool
from panpan.capabilities.files.read import ReadTool
from panpan.capabilities.files.rename import RenameTool
from panpan.capabilities.files.write import WriteTool
from panpan.capabilities.search.grep import GrepWords
from panpan.core.tool import ToolContext
from panpan.errors import ToolError
from panpan.types.content import DiffDisplay
from panpan.types.events import Output
from tests.fakes.context import context_in

TOOLS = {
    tool.name: tool
    for tool in (
        ReadTool(), WriteTool(), EditTool(), MultiEditTool(), PatchTool(),
        RenameTool(lambda: GrepWords(lambda *_: False)), NotebookEditTool(),
    )
}  # fmt: skip


class Workspace:
    """A folder with a tool context in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ctx: ToolContext = context_in(root)

    def put(self, name: str, data: bytes | str) -> Path:
        """Make a file, as the user would."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def put_seen(self, name: str, data: bytes | str) -> Path:
        """Make a file that the model has read."""
        path = self.put(name, data)
        self.ctx.seen_files.add(path.resolve(), path.read_bytes())
        return path

    async def call(self, tool_name: str, **arguments: Any) -> Output:
        """Call a tool as the executor does, and return its one output."""
        tool = TOOLS[tool_name]
        outputs = []
        async with aclosing(tool.run(tool.input_model.model_validate(arguments), self.ctx)) as yields:
            async for one in yields:
                outputs.append(one)
        assert len(outputs) == 1
        assert isinstance(outputs[0], Output)
        return outputs[0]

    async def preview(self, tool_name: str, **arguments: Any) -> DiffDisplay | None:
        """Return the preview that the user sees before they allow a call."""
        tool = TOOLS[tool_name]
        return await tool.preview(tool.input_model.model_validate(arguments), self.ctx)

    async def refusal(self, tool_name: str, **arguments: Any) -> str:
        """Call a tool that must refuse, check that no file changed, and return the error."""
        before = self.contents()
        with pytest.raises(ToolError) as caught:
            await self.call(tool_name, **arguments)
        assert self.contents() == before
        text = str(caught.value)
        assert text
        assert not text.endswith(".")
        return text

    def contents(self) -> dict[str, bytes]:
        """Return every regular file in the folder, so that a test sees leftovers."""
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and not path.is_symlink()
        }


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    root = tmp_path / "work"
    root.mkdir()
    return Workspace(root.resolve())
