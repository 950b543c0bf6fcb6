"""What fills the context window, as rows: a bar, a legend, and what of it is an estimate."""

from collections.abc import Mapping, Sequence
from itertools import accumulate

from panpan.faces.terminal.rendering.plain_text import LEAST_WIDTH, plain_rows
from panpan.faces.terminal.screen.theme import Role, Theme
from panpan.session.context_usage import SOURCES, ContextUsage, Source

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


def context_rows(usage: ContextUsage, width: int, theme: Theme) -> list[str]:
    """Return the rows for a terminal of `width` cells; the notes below them are `context_note`."""
    rows = [*(theme.paint("strong", row) for row in plain_rows(used_line(usage), max(width, LEAST_WIDTH)))]
    rows.append(_bar(usage, min(width, MOST_BAR_CELLS), theme))
    rows += [_legend(_mark(part.source, theme), _NAMES[part.source], part.tokens, usage) for part in usage.parts]
    return rows if usage.free_tokens is None else [*rows, _legend(_FREE, "Free", usage.free_tokens, usage)]


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


def _bar(usage: ContextUsage, width: int, theme: Theme) -> str:
    cells = bar_cells(usage, width)
    filled = (
        theme.paint(_ROLES[source], (_BLOCK if _has_hues(theme) else _LETTERS[source]) * count)
        for source, count in zip(SOURCES, cells, strict=True)
    )
    return "".join(filled) + _FREE * (width - sum(cells))


def _legend(mark: str, name: str, tokens: int, usage: ContextUsage) -> str:
    share = usage.share_of(tokens)
    return f"{mark} {name:{_NAME_CELLS}} {tokens:>9,}" + ("" if share is None else f" {share:>6.1%}")


def _mark(source: Source, theme: Theme) -> str:
    return theme.paint(_ROLES[source], _BLOCK if _has_hues(theme) else _LETTERS[source])


def _has_hues(theme: Theme) -> bool:
    """Whether every role has a colour of its own."""
    return theme.name in ("light", "dark")
