"""Progress of a session, for who runs it from outside: read from its log, without opening it."""

from dataclasses import replace
from pathlib import Path

from panpan.session.budget.session_budget import is_prompt, may_cost, spending_of, spent_by_subagents
from panpan.session.budget.spending import Spending
from panpan.session.log.session_log import read_records
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SessionProgress:
    """Progress of a session."""

    prompts: int
    """Messages of the user that are in its log, so that no later run has to send them again."""
    spent: Spending
    """Spending of all its runs, subagents included."""


def progress_of(log: Path | None) -> SessionProgress:
    """Return the progress of a session; that of one without a log is none.

    Raises:
        SessionError: The log cannot be read.
    """
    if log is None:
        return SessionProgress(0, Spending())
    records = list(read_records(log, only=may_cost))
    spent = spending_of(records)
    for one in spent_by_subagents(log):
        spent.add(replace(one.spent, seconds=0.0))  # it passed while the session's own turns ran
    return SessionProgress(len({record["uuid"] for record in records if is_prompt(record)}), spent)
