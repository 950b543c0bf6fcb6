"""Hooks of the user, for other parts of a session: moments that they may hear of, and hooks that hold for a while."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from panpan.config.places import BroughtFile
from panpan.session.agent import Agent


class HooksOfUser(ABC):
    """Runs hooks of the user. The capability for hooks has it, among its services."""

    @abstractmethod
    def hold(self, agent: Agent, file: BroughtFile) -> None:
        """Let the hooks in a file run in an agent until its turn ends; with those that are in force already, once."""

    @abstractmethod
    async def tell(self, event: str, subject: str, told: Mapping[str, Any]) -> None:
        """Run the hooks of an event of the session.

        Args:
            event: Its name.
            subject: Name that matchers are compared with.
            told: What the hooks are told beside what each is told.

        Raises:
            HookRefusedError: One says no, where a no means something.
        """
