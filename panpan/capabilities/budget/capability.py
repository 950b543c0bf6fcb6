"""The budget: what the model is told when it is nearly spent."""

from collections.abc import Iterable

from panpan.session.agent import Agent
from panpan.session.budget.budget import BudgetNearlySpent
from panpan.session.capability import Capability
from panpan.session.reminders import ReminderSource


class BudgetCapability(Capability):
    """Tells each agent of its own budget."""

    name = "budget"

    def reminders(self, agent: Agent) -> Iterable[ReminderSource]:
        return (BudgetNearlySpent(agent.budget.nearly_spent, lambda: agent.budget.limits),)
