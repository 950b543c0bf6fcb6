"""History: what was said in this session and is not sent to the model any more."""

from collections.abc import Iterable
from typing import Any

from panpan.capabilities.history.read_history import ReadHistoryTool
from panpan.core.tool import Tool
from panpan.session.agent import Agent
from panpan.session.capability import Capability


class History(Capability):
    """Lets the model read what was said before."""

    name = "history"

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        return (ReadHistoryTool(lambda: self.session.conversation.messages),)
