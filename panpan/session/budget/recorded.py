"""What a log says that was spent, on all of its branches: what was taken back was paid for all the same."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from panpan.session.budget.spending import Spending
from panpan.session.session_costs import ModelCosts, made_at
from panpan.types.ids import new_id
from panpan.types.messages import AssistantMessage, Usage


def spent_record(spending: Spending, cause: str) -> dict[str, Any]:
    """Return the record of what was spent and no message of the log tells of.

    Args:
        spending: How much.
        cause: What for, such as "interrupted reply"; for whoever reads the log.
    """
    return {
        "type": "system",
        "subtype": "spent",
        "uuid": new_id(),
        "cause": cause,
        "calls": spending.calls,
        "seconds": spending.seconds,
        "apiSeconds": spending.api_duration_s,
        "models": [
            {
                "model": costs.model,
                "replies": costs.replies,
                "usage": costs.usage.model_dump(mode="json"),
                "costUSD": costs.known_cost_usd,
                "unpricedReplies": costs.unpriced_replies,
                "uncountedReplies": costs.uncounted_replies,
                "estimatedReplies": costs.estimated_replies,
            }
            for costs in spending.by_model.values()
        ],
    }


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
            spent.add(_noted(record))
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
            usage = _usage(message.get("usage"))
        case _:
            return None
    is_interrupted = message.get("stop_reason") == "interrupted"
    if is_interrupted and not usage.context_tokens:
        return None  # what it cost is in a record of its own
    duration_ms = _number(record.get("durationMs"))
    cost_usd = record.get("costUSD")
    return AssistantMessage(
        content=(),
        model=model,
        stop_reason="interrupted" if is_interrupted else "end_turn",
        usage=usage,
        cost_usd=None if cost_usd is None else _number(cost_usd),
        duration_s=duration_ms / 1000,
    )


def _noted(record: Mapping[str, Any]) -> Spending:
    spent = Spending(
        calls=int(_number(record.get("calls"))),
        seconds=_number(record.get("seconds")),
        api_duration_s=_number(record.get("apiSeconds")),
    )
    models = record.get("models")
    for one in models if isinstance(models, list) else ():
        match one:
            case {"model": str(model)}:
                costs = ModelCosts(
                    model,
                    int(_number(one.get("replies"))),
                    _usage(one.get("usage")),
                    _number(one.get("costUSD")),
                    int(_number(one.get("unpricedReplies"))),
                    int(_number(one.get("uncountedReplies"))),
                    int(_number(one.get("estimatedReplies"))),
                )
                spent.by_model.setdefault(model, ModelCosts(model)).join(costs)
            case _:
                pass
    return spent


def _usage(value: Any) -> Usage:
    """Return what was counted; a log gives nothing back, so that no count is below 0."""
    try:
        usage = Usage.model_validate(value)
    except ValidationError:
        return Usage()
    return Usage(**{name: max(0, count) for name, count in usage.model_dump().items()})


def _number(value: Any) -> float:
    """Return a number that is at least 0; 0 for anything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return max(0.0, float(value)) if is_number else 0.0
