"""Why a budget lets no further request be sent, and what the user can do about it."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["usd", "tokens", "calls"]

_OPTIONS: Mapping[str, str] = {"usd": "--max-budget-usd", "tokens": "--max-tokens", "seconds": "--max-seconds"}


def not_enough(whose: str, kind: Kind, limit: float, spent: float, held: float, wanted: float) -> str:
    """Return why a request does not fit.

    Args:
        whose: The subagent whose limit it is; empty: the session's.
        kind: What is limited.
        limit: The limit.
        spent: What is spent of it.
        held: What requests that run may still cost.
        wanted: What the request may cost.
    """
    is_are = "is" if kind == "usd" else "are"
    of_limit = f"{_amount(kind, spent)} of a budget of {_amount(kind, limit)}{_of(whose)} {is_are} spent"
    running = f" and {_amount(kind, held)} reserved for requests that run" if held else ""
    advice = _advice(whose, kind)
    if spent >= limit or kind == "calls":
        return f"{of_limit}{running}; {advice}"
    verb = "may cost" if kind == "usd" else "may take"
    return f"the next request {verb} {_amount(kind, wanted)}, and {of_limit}{running}; {advice}"


def nothing_known(whose: str, model: str | None) -> str:
    """Return that money cannot be counted.

    Args:
        whose: The subagent whose limit it is; empty: the session's.
        model: Whose reply has no price; None: that of the request.
    """
    what = "the next request" if model is None else f"a reply of {model or 'the model'}"
    advice = "go on without --max-budget-usd" if not whose else "go on without a limit on its money"
    return (
        f"the price of {what} is not known, so that what is spent{_of(whose, by='by')} cannot be counted; {advice}, or "
        "choose a model with a known price"
    )


def time_is_up(whose: str, limit_s: float) -> str:
    """Return that the time of turns is used up."""
    return f"the {limit_s:,g} seconds that the turns{_of(whose)} may take are over; {_advice(whose, 'seconds')}"


def _of(whose: str, by: str = "of") -> str:
    return f" {by} the subagent {whose}" if whose else ""


def _advice(whose: str, kind: str) -> str:
    if not whose:
        return f"raise {_OPTIONS[kind]}" if kind in _OPTIONS else "begin a new session"
    return "give it a smaller task, or more in its definition"


def _amount(kind: Kind, amount: float) -> str:
    match kind:
        case "usd":
            return f"${amount:.4f}"
        case "tokens":
            return f"{amount:,.0f} tokens"
        case "calls":
            return f"{amount:,.0f} requests"
