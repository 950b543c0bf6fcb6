"""Hooks that hold for a while in one agent, such as those of a skill that it follows."""

from abc import ABC, abstractmethod

from panpan.config.places import BroughtFile
from panpan.session.agent import Agent


class HeldHooks(ABC):
    """Lets the hooks of a file run in an agent. The capability for hooks has it, among its services."""

    @abstractmethod
    def hold(self, agent: Agent, file: BroughtFile) -> None:
        """Let the hooks in a file run in an agent until its turn ends; with those that are in force already, once."""
