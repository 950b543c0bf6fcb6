"""Fixtures for the tests of downloads: a network with one server, and the tool in a workspace."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from panpan.capabilities.datasets.dataset_download import DatasetDownloadTool
from panpan.capabilities.datasets.download_plan import load_data_config
from panpan.capabilities.datasets.settings import DataSettings
from panpan.config.settings import settings_type
from panpan.errors import ToolError
from panpan.types.events import Output
from tests.fakes.context import context_in
from tests.fakes.file_server import Files
from tests.fakes.outside import PUBLIC, Network, serving

URL = "http://data.example.org/numbers.csv"


class Place:
    """A workspace, a server of files, and the tool."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = Files()
        self.network = Network(names={"data.example.org": [PUBLIC], "inside.example.org": ["10.0.0.7"]})
        self.ctx = context_in(root)
        self.settings: dict[str, Any] = {}
        self.env: dict[str, str] = {}
        self.clock: Callable[[], float] = anyio.current_time
        self.tool = DatasetDownloadTool()

    @asynccontextmanager
    async def served(self) -> AsyncGenerator[None, None]:
        """Serve the files at the public address."""
        async with serving(self.files.serve) as port:
            self.network.ports[PUBLIC, 80] = port
            settings = settings_type().model_validate(self.settings)
            setup = load_data_config(settings[DataSettings], settings.web, self.env, self.network.web, "panpan/test")
            self.tool = DatasetDownloadTool(setup, pause=lambda _: 0, clock=lambda: self.clock())
            yield

    async def call(self, action: str, **arguments: Any) -> Output:
        args = self.tool.input_model.model_validate({"action": action, **arguments})
        async with aclosing(self.tool.run(args, self.ctx)) as yields:
            outputs = [one async for one in yields if isinstance(one, Output)]
        (output,) = outputs
        return output

    async def prepare(self, source: str = URL, **arguments: Any) -> str:
        """Prepare a download, and return the id of its plan."""
        text = (await self.call("prepare", source=source, **arguments)).text
        assert text.startswith("plan "), text
        return text[5:13]

    async def refusal(self, action: str, **arguments: Any) -> str:
        with pytest.raises(ToolError) as caught:
            await self.call(action, **arguments)
        return str(caught.value)

    def tree(self) -> dict[str, bytes]:
        """Return every file of the workspace, so that a test sees leftovers."""
        return {str(path.relative_to(self.root)): path.read_bytes() for path in self.root.rglob("*") if path.is_file()}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "work").mkdir()
    return Place(tmp_path / "work")
