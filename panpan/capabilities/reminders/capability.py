"""Reminders: what all features want the model to know while it works, each thing once and not too many."""

from collections.abc import Iterable

from panpan.capabilities.reminders.settings import ReminderSettings
from panpan.core.hooks import Hook
from panpan.session.agent import Agent
from panpan.session.capability import Capability
from panpan.session.reminders import Reminders


class RemindersCapability(Capability):
    """Collects the reminders of all capabilities, those behind it included."""

    name = "reminders"
    settings_model = ReminderSettings
    settings: ReminderSettings

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        sources = [source for one in self.session.capabilities for source in one.reminders(agent)]
        return (Reminders(sources, self.settings.max_per_session),)
