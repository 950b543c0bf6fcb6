"""What a session cost, as names and sentences."""

from collections.abc import Iterator, Sequence

from panpan.faces.cost_text import shown_cost
from panpan.faces.terminal.rendering.cells import cut
from panpan.faces.waiting_time import SHOWN_FROM_S
from panpan.session.budget.budget import NO_LIMITS, Budget
from panpan.session.session_costs import ModelCosts, SessionCosts

MOST_NAME_CELLS = 36
"""Of a subagent's name."""


def cost_pairs(costs: SessionCosts, waited_s: float) -> Sequence[tuple[str, str]]:
    """Return what was spent, by model, and what it was spent on.

    Args:
        costs: Whose time in turns has those in which the user was waited for.
        waited_s: How long that was, as far as it is known.
    """
    models = [(model.model or "(a model without a name)", _model(model)) for model in costs.by_model.values()]
    return [
        *models,
        ("Together", together(costs)),
        *_not_counted(costs.uncounted_replies),
        *_estimated(costs.estimated_replies),
        ("Time", _time(costs, waited_s)),
        ("Lines", f"{costs.lines_added:,} added, {costs.lines_removed:,} removed"),
    ]


def together(costs: SessionCosts) -> str:
    """Return what all models cost."""
    is_estimated = costs.estimated_replies > 0
    return shown_cost(costs.known_cost_usd, is_whole=costs.cost_usd is not None, is_estimated=is_estimated)


def _time(costs: SessionCosts, waited_s: float) -> str:
    answers = f" (and {duration(waited_s)} for your answers)" if waited_s >= SHOWN_FROM_S else ""
    in_turns = max(costs.duration_s - waited_s, 0.0)
    return f"{duration(in_turns)} in turns{answers}, {duration(costs.api_duration_s)} of it waiting for models"


def _not_counted(replies: int) -> Sequence[tuple[str, str]]:
    """Return what is said of replies whose tokens nobody knows, since the user interrupted them."""
    if not replies:
        return ()
    what = "1 interrupted reply" if replies == 1 else f"{replies:,} interrupted replies"
    return (("Not counted", f"{what}: the provider had not told the tokens yet"),)


def _estimated(replies: int) -> Sequence[tuple[str, str]]:
    if not replies:
        return ()
    what = "1 reply that was cut short or came" if replies == 1 else f"{replies:,} replies that were cut short or came"
    return (("Estimated", f"the cost of {what} without a credible count; it is in the sums"),)


def budget_pairs(budget: Budget) -> Sequence[tuple[str, str]]:
    """Return what the session and each of its subagents have spent, and of what; nothing where that is all the same."""
    if not budget.children and budget.limits == NO_LIMITS:
        return ()
    return [("Spent", _spent(budget)), *_below(budget, 1)]


def _below(budget: Budget, depth: int) -> Iterator[tuple[str, str]]:
    for child in budget.children:
        yield f"{'·' * depth} {cut(child.name, MOST_NAME_CELLS)}", _spent(child)
        yield from _below(child, depth + 1)


def _spent(budget: Budget) -> str:
    """Return what was spent of what: `3 requests, 12,345 of 50,000 tokens, $0.0123, 4.5 s`."""
    spent, limits = budget.spent, budget.limits
    usd = shown_cost(spent.known_usd, is_whole=spent.usd is not None, is_estimated=spent.is_estimated)
    parts = [
        _of(f"{spent.calls:,}", None if limits.calls is None else f"{limits.calls:,}", "request", spent.calls),
        _of(f"{spent.tokens:,}", None if limits.tokens is None else f"{limits.tokens:,}", "token", spent.tokens),
        usd if limits.usd is None else f"{usd} of ${limits.usd:.4f}",
        _of(duration(spent.seconds), None if limits.seconds is None else duration(limits.seconds)),
    ]
    return ", ".join(parts)


def _of(amount: str, limit: str | None, unit: str = "", number: int = 0) -> str:
    text = amount if limit is None else f"{amount} of {limit}"
    return f"{text} {unit}{'s' if number != 1 or limit is not None else ''}" if unit else text


def _model(costs: ModelCosts) -> str:
    usage, is_estimated = costs.usage, costs.estimated_replies > 0
    usd = shown_cost(costs.known_cost_usd, is_whole=costs.cost_usd is not None, is_estimated=is_estimated)
    return (
        f"{usage.input_tokens:,} input, {usage.output_tokens:,} output, "
        f"{usage.cache_read_input_tokens:,} read from the cache, "
        f"{usage.cache_creation_input_tokens:,} written to it; "
        f"{usd}"
    )


def duration(seconds: float) -> str:
    """Return a time in words: `42.1 s`, `3 min 5 s`, `2 h 10 min`."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
