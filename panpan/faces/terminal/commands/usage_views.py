"""What a session has used: what fills its context window, and what it cost."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from panpan.faces.amounts import SHOWN_FROM_S, shown_cost
from panpan.faces.terminal.rendering.cells import cut
from panpan.session.budget.budget import NO_LIMITS, Budget
from panpan.session.context_usage import SOURCES, ContextUsage, Source
from panpan.session.session_costs import ModelCosts, SessionCosts
from panpan.types.display import Span, TextDisplay, text
from panpan.types.role import Role

MOST_BAR_CELLS = 80
_FREE = "·"
_BLOCK = "█"
_LETTERS: Mapping[Source, str] = {
    "system prompt": "s",
    "tools": "t",
    "project and reminders": "p",
    "user": "u",
    "tool results": "f",
    "replies": "r",
    "thinking": "h",
}
"""Tell the sources apart where colours do not."""
_ROLES: Mapping[Source, Role] = {
    "system prompt": "dim",
    "tools": "accent",
    "project and reminders": "plan",
    "user": "good",
    "tool results": "warn",
    "replies": "strong",
    "thinking": "bad",
}
_NAMES: Mapping[Source, str] = {
    "system prompt": "System prompt",
    "tools": "Tool definitions",
    "project and reminders": "Project, reminders",
    "user": "Your messages",
    "tool results": "Files, tool results",
    "replies": "Replies and calls",
    "thinking": "Thinking",
}
_NAME_CELLS = max(map(len, _NAMES.values()))


def context_shapes(usage: ContextUsage, width: int) -> list[TextDisplay]:
    """Return the shapes for a terminal of `width` cells; the notes below them are `context_note`."""
    rows = [text(used_line(usage), "strong"), _bar(usage, min(width, MOST_BAR_CELLS))]
    rows += [_legend(_blocks(part.source, 1), _NAMES[part.source], part.tokens, usage) for part in usage.parts]
    free = usage.free_tokens
    return rows if free is None else [*rows, _legend(Span(text=_FREE), "Free", free, usage)]


def used_line(usage: ContextUsage) -> str:
    """Return how full the window is, in one line."""
    about = "" if usage.is_counted else "about "
    share = usage.share_of(usage.used_tokens)
    if share is None:
        return f"{about}{usage.used_tokens:,} tokens; how many the model takes is not known"
    return f"{about}{usage.used_tokens:,} of {usage.window_tokens:,} tokens ({share:.0%})"


def context_note(usage: ContextUsage, *, is_kept_short: bool = True) -> str:
    """Return what the reader must know of the numbers, and of what happens when the window is full.

    Args:
        usage: What is shown.
        is_kept_short: Whether the user wants the conversation to be made shorter by itself.
    """
    shares = "The shares are estimates by length"
    if usage.is_exact:
        sum_ = "; the sum is what the provider counts for the next request."
    elif usage.is_counted:
        sum_ = "; the sum is what the provider counted for the newest reply, and an estimate of what came since."
    else:
        sum_ = ", and so is the sum: no reply has been counted by a provider yet."
    return " ".join(filter(None, (f"{shares}{sum_}", _note_when_full(usage, is_kept_short=is_kept_short))))


def _note_when_full(usage: ContextUsage, *, is_kept_short: bool) -> str:
    if not is_kept_short:
        return "Nothing makes the conversation shorter by itself ([compaction] enabled is off); /compact does."
    if usage.window_tokens is None:
        return (
            "Since the size of the window is not known, the conversation is made shorter only once a request is "
            "refused as too long; [compaction] window_tokens says how large it is."
        )
    return ""


def bar_cells(usage: ContextUsage, width: int) -> Sequence[int]:
    """Return how many cells of the bar each source fills, in the order of `SOURCES`; the rest is free."""
    whole = max(usage.window_tokens or 0, usage.used_tokens, 1)
    ends = [round(end * width / whole) for end in accumulate(part.tokens for part in usage.parts)]
    return [end - begin for begin, end in zip([0, *ends], ends, strict=False)]


def _bar(usage: ContextUsage, width: int) -> TextDisplay:
    cells = bar_cells(usage, width)
    filled = (_blocks(source, count) for source, count in zip(SOURCES, cells, strict=True) if count)
    return TextDisplay(spans=(*filled, Span(text=_FREE * (width - sum(cells)))))


def _legend(mark: Span, name: str, tokens: int, usage: ContextUsage) -> TextDisplay:
    share = usage.share_of(tokens)
    words = f" {name:{_NAME_CELLS}} {tokens:>9,}" + ("" if share is None else f" {share:>6.1%}")
    return TextDisplay(spans=(mark, Span(text=words)))


def _blocks(source: Source, count: int) -> Span:
    return Span(text=_BLOCK * count, role=_ROLES[source], without_hues=_LETTERS[source] * count)


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
