"""The shell: commands."""

from collections.abc import Iterable
from typing import Any

from panpan.capabilities.shell.bash import BashTool
from panpan.core.background import Background
from panpan.core.tool import Tool
from panpan.session.agent import Agent
from panpan.session.capability import Capability


class Shell(Capability):
    """Runs commands."""

    name = "shell"

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        return (BashTool(self.session.find(Background) if agent.is_main else None),)
