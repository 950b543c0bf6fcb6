"""Packages: pip, uv, conda and pixi."""

from collections.abc import Iterable
from typing import Any

from panpan.capabilities.packages.conda import CondaTool
from panpan.capabilities.packages.offered import tools_without_use
from panpan.capabilities.packages.package_tool import PackageSetup
from panpan.capabilities.packages.pip import PipTool
from panpan.capabilities.packages.pixi import PixiTool
from panpan.capabilities.packages.uv import UvTool
from panpan.core.tool import Tool
from panpan.session.agent import Agent
from panpan.session.capability import Capability
from panpan.session.context import SessionContext


class Packages(Capability):
    """Installs and removes packages."""

    name = "packages"

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        self._setup = PackageSetup(
            session.settings.packages, session.setup.locations.packages_folder, session.gate.withholds
        )

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        return PipTool(self._setup), UvTool(self._setup), CondaTool(self._setup), PixiTool(self._setup)

    def unavailable(self) -> Iterable[str]:
        return tools_without_use(self.session.paths, self.session.setup.env)
