"""The budget with which a session begins: its limits, and what it and its subagents have spent before."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from panpan.config.settings import Settings
from panpan.errors import SessionError
from panpan.session.budget.budget import Budget, TurnClock
from panpan.session.budget.spending import Spending, made_at
from panpan.session.log.record_kinds import SpentRecord, amount, clamp_counts, session_record
from panpan.session.log.session_log import read_records
from panpan.system.text.terminal_text import clean_line
from panpan.types.agent import SpendingLimits
from panpan.types.dataclass import dataclass
from panpan.types.messages import AssistantMessage


def spending_of(records: Iterable[Mapping[str, Any]]) -> Spending:
    """Return what was spent; damaged records do not count.

    The time is that from each of the user's messages to the last one that follows from it, with the time for questions
    to the user.
    """
    spent, seen, time = Spending(), set[str](), _TurnTime()
    for record in records:
        if record["uuid"] in seen:
            continue
        seen.add(record["uuid"])
        time.follow(record)
        if record.get("subtype") == "spent":
            if isinstance(noted := session_record(record), SpentRecord):
                spent.add(noted.spending)
            continue
        reply = record if record.get("type") == "assistant" else record.get("reply")
        if isinstance(reply, Mapping) and (message := _reply(reply)) is not None:
            spent.add_reply(message)
    spent.seconds += time.seconds
    return spent


class _TurnTime:
    def __init__(self) -> None:
        self.seconds = 0.0
        self._began_at: float | None = None
        self._so_far = 0.0

    def follow(self, record: Mapping[str, Any]) -> None:
        at = made_at(record["uuid"]) if record.get("type") in ("user", "assistant") else None
        if at is None:
            return
        if self._began_at is None or is_prompt(record):
            self._began_at, self._so_far = at, 0.0
        elif (so_far := at - self._began_at) > self._so_far:
            self.seconds += so_far - self._so_far
            self._so_far = so_far


def is_prompt(record: Mapping[str, Any]) -> bool:
    """True if a record of a log is a message of the user."""
    match record:
        case {"type": "user", "message": {"content": [{"type": "tool_result"}, *_]}}:
            return False
        case _:
            return record.get("type") == "user"


def _reply(record: Mapping[str, Any]) -> AssistantMessage | None:
    """Return a reply without its content, which costs nothing to look at; None if it was never counted."""
    match record:
        case {"type": "assistant", "message": {"model": str(model), **message}}:
            usage = clamp_counts(message.get("usage"))
        case _:
            return None
    is_interrupted = message.get("stop_reason") == "interrupted"
    if is_interrupted and not usage.context_tokens:
        return None  # its cost is in a record of its own
    duration_ms = amount(record.get("durationMs"))
    cost_usd = record.get("costUSD")
    return AssistantMessage(
        content=(),
        model=model,
        stop_reason="interrupted" if is_interrupted else "end_turn",
        usage=usage,
        cost_usd=None if cost_usd is None else amount(cost_usd),
        duration_s=duration_ms / 1000,
    )


_RESULT, _REPLY = b'"type":"tool_result"', b'"type":"assistant"'
"""Stand in the lines of results and of replies; within a text, quotes are escaped, but not in what a call is given."""


@dataclass(frozen=True, slots=True)
class SubagentSpending:
    """Total spending of a subagent in all its runs."""

    agent_id: str
    name: str
    spent: Spending


def session_budget(
    settings: Settings,
    clock: TurnClock,
    warn: Callable[[str], None],
    note: Callable[[Mapping[str, Any]], None],
) -> Budget:
    """Return the budget of a session, which `note` writes into its log; without limits it only counts."""
    limits = SpendingLimits(settings.max_budget_usd, settings.max_tokens, settings.max_seconds)
    return Budget(
        limits=limits,
        clock=clock,
        warn=warn,
        note=lambda spending, cause: note(SpentRecord.of(spending, cause).as_json()),
    )


def count_earlier(budget: Budget, log: Path, spent: Spending) -> None:
    """Count what a session, and its subagents beside its log, have spent before it goes on."""
    budget.count(spent)
    for one in spent_by_subagents(log):
        budget.child(one.name, agent_id=one.agent_id).count(one.spent)


def spent_by_subagents(log: Path) -> Iterator[SubagentSpending]:
    """Yield what the subagents of a session have spent; logs that cannot be read are passed over.

    What they spent in the session that it is a copy of is told in its own log, see `spent_beside`.
    """
    for path in sorted((log.parent / log.stem / "subagents").glob("agent-*.jsonl")):
        with suppress(SessionError):
            records = list(read_records(path, only=may_cost))
            own = [record for record in records if not record.get("forkedFrom")]
            yield SubagentSpending(path.stem.removeprefix("agent-"), _name(records) or path.stem, spending_of(own))


def spent_beside(
    log: Path, records: Sequence[Mapping[str, Any]], copied: Sequence[Mapping[str, Any]]
) -> Sequence[Mapping[str, Any]]:
    """Return the record, if one is needed, with which a copy of a session has spent what the session has.

    `copied` are those of its `records` that the copy has; other branches and the logs of subagents stay behind.
    """
    spent = spending_of(records)
    for one in spent_by_subagents(log):
        spent.add(replace(one.spent, seconds=0.0))  # it passed while the session's own turns ran
    beside = spent.since(spending_of(copied))
    return [SpentRecord.of(beside, "before the copy was made").as_json()] if beside.calls or beside.by_model else []


def may_cost(line: bytes) -> bool:
    """Return True if a line of a log may tell of costs or be the user's; results, as most are, need no parsing."""
    return _RESULT not in line or _REPLY in line


def _name(records: Sequence[Mapping[str, Any]]) -> str:
    begun = [record for record in records if record.get("subtype") == "subagent"]
    return clean_line(f"{begun[-1].get('agentType')}: {begun[-1].get('description')}") if begun else ""
