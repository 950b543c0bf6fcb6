"""The budget with which a session begins: its limits, and what it and its subagents have spent before."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from panpan.config.settings import Settings
from panpan.errors import SessionError
from panpan.services.budgets.budget import Budget
from panpan.services.budgets.recorded import spending_of
from panpan.services.budgets.spending import Spending
from panpan.services.sessions.log import read_records
from panpan.system.terminal_text import clean_line
from panpan.types.agent import SpendingLimits
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SubagentSpending:
    """What a subagent has spent, all its runs together."""

    agent_id: str
    name: str
    spent: Spending


def session_budget(settings: Settings, log: Path, spent: Spending) -> Budget:
    """Return the budget of a session.

    Args:
        settings: Give its limits.
        log: Of the session; the logs of its subagents lie beside it.
        spent: What the log tells of; nothing in a new session.
    """
    limits = SpendingLimits(settings.max_budget_usd, settings.max_tokens, settings.max_seconds)
    budget = Budget(limits=limits)
    budget.count(spent)
    for one in spent_by_subagents(log):
        budget.child(one.name, agent_id=one.agent_id).count(one.spent)
    return budget


def spent_by_subagents(log: Path) -> Iterator[SubagentSpending]:
    """Yield what the subagents of a session have spent; logs that cannot be read are passed over.

    Args:
        log: Of the session.
    """
    for path in sorted((log.parent / log.stem / "subagents").glob("agent-*.jsonl")):
        with suppress(SessionError):
            records = list(read_records(path))
            yield SubagentSpending(path.stem.removeprefix("agent-"), _name(records) or path.stem, spending_of(records))


def spent_before(log: Path, records: Sequence[Mapping[str, Any]]) -> Spending:
    """Return what a session and its subagents have spent together.

    Args:
        log: Of the session.
        records: What it holds.
    """
    spent = spending_of(records)
    for one in spent_by_subagents(log):
        spent.add(replace(one.spent, seconds=0.0))  # the session's own turns ran meanwhile
    return spent


def _name(records: Sequence[Mapping[str, Any]]) -> str:
    """Return what a subagent is called, as its log tells."""
    names = [f"{record.get('agentType')}: {record.get('description')}" for record in records if record.get("subtype") == "subagent"]
    return clean_line(names[-1]) if names else ""
