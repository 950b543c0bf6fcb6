"""Questions: what the model asks the user."""

from collections.abc import Iterable
from typing import Any

from panpan.capabilities.questions.ask_user import AskUserQuestionTool
from panpan.core.tool import Tool
from panpan.session.agent import Agent
from panpan.session.capability import Capability


class Questions(Capability):
    """Puts the model's questions to the user."""

    name = "questions"

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        return (AskUserQuestionTool(self.session.frontend.askers.user),)
