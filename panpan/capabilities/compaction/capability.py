"""Compaction: what a model is sent becomes shorter before it overflows the context window."""

from collections.abc import Iterable

from panpan.capabilities.compaction.compactor import Compactor
from panpan.capabilities.compaction.context_nearly_full import ContextNearlyFull
from panpan.capabilities.compaction.long_session import LongSession
from panpan.capabilities.compaction.make_room import MakeRoom
from panpan.core.hooks import Hook
from panpan.session.agent import Agent
from panpan.session.capability import Capability
from panpan.session.command import Command
from panpan.session.context import SessionContext
from panpan.session.reminders.source import ReminderSource


class Compaction(Capability):
    """Makes room in the context window of each agent."""

    name = "compaction"

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        self.compactor = Compactor(lambda: session.main.hooks)

    def offers(self) -> Iterable[object]:
        return (self.compactor,)

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        compactor = self.compactor if agent.is_main else Compactor()
        label = agent.identity.label
        settings = self.session.settings.compaction
        return (MakeRoom(compactor, settings, lambda: agent.model.context_window, self.session.warn, subagent=label),)

    def reminders(self, agent: Agent) -> Iterable[ReminderSource]:
        settings = self.session.settings.compaction
        nearly_full = ContextNearlyFull(settings, lambda: agent.model.context_window)
        return (nearly_full, LongSession()) if agent.is_main else (nearly_full,)

    @classmethod
    def commands(cls) -> Iterable[Command]:
        from panpan.capabilities.compaction.compact_command import COMPACT_COMMANDS

        return COMPACT_COMMANDS
