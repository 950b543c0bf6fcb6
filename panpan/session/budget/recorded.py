"""What a log says that was spent, on all of its branches: what was taken back was paid for all the same."""

from collections.abc import Iterable, Mapping
from typing import Any

from panpan.session.budget.spending import Spending
from panpan.session.record_kinds import SpentRecord, amount, counted, session_record
from panpan.session.session_costs import made_at
from panpan.types.messages import AssistantMessage


def spending_of(records: Iterable[Mapping[str, Any]]) -> Spending:
    """Return what was spent; what is damaged counts for nothing.

    The time is that from each of the user's messages to the last one that follows from it, questions to him included.
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
    """Adds up the time of turns."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._began_at: float | None = None
        self._so_far = 0.0

    def follow(self, record: Mapping[str, Any]) -> None:
        at = made_at(record["uuid"]) if record.get("type") in ("user", "assistant") else None
        if at is None:
            return
        if self._began_at is None or _is_prompt(record):
            self._began_at, self._so_far = at, 0.0
        elif (so_far := at - self._began_at) > self._so_far:
            self.seconds += so_far - self._so_far
            self._so_far = so_far


def _is_prompt(record: Mapping[str, Any]) -> bool:
    match record:
        case {"type": "user", "message": {"content": [{"type": "tool_result"}, *_]}}:
            return False
        case _:
            return record.get("type") == "user"


def _reply(record: Mapping[str, Any]) -> AssistantMessage | None:
    """Return a reply without its content, which costs nothing to look at; None where it was never counted."""
    match record:
        case {"type": "assistant", "message": {"model": str(model), **message}}:
            usage = counted(message.get("usage"))
        case _:
            return None
    is_interrupted = message.get("stop_reason") == "interrupted"
    if is_interrupted and not usage.context_tokens:
        return None  # what it cost is in a record of its own
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
