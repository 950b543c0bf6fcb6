"""Search: listing folders, finding files by name, finding text in files."""

from collections.abc import Iterable
from typing import Any

from panpan.capabilities.search.glob import GlobTool
from panpan.capabilities.search.grep import GrepTool, GrepWords
from panpan.capabilities.search.ls import LsTool
from panpan.core.tool import Tool
from panpan.session.agent import Agent
from panpan.session.capability import Capability


class Search(Capability):
    """Lists and searches."""

    name = "search"

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        return LsTool(), GlobTool(), GrepTool()

    def services(self) -> Iterable[object]:
        return GrepWords(self.session.gate.withholds), LsTool()
