"""What the model is told of the kinds of subagents with every request: all of them, within bounds.

The rule: any project may bring hundreds along, with pages of description; none of that fills a context window.
"""

from collections.abc import Sequence

from panpan.types.agent import AgentDefinition

MAX_CHARS = 16_000
"""Of all descriptions together."""
MAX_KINDS = 100


def told_kinds(kinds: Sequence[AgentDefinition]) -> list[str]:
    """Return a line for each kind; where they are too long together, the longest descriptions are cut.

    Args:
        kinds: All that there are, in their order.
    """
    told, left_out = kinds[:MAX_KINDS], len(kinds) - MAX_KINDS
    descriptions = [" ".join(kind.description.split()) for kind in told]
    limit = _limit([len(description) for description in descriptions])
    lines = [f"- {kind.name}: {_cut(text, limit)}" for kind, text in zip(told, descriptions, strict=True)]
    return [*lines, f"… and {left_out:,} more kinds, not told here"] if left_out > 0 else lines


def _limit(lengths: Sequence[int]) -> int:
    """Return how long each may be at most, so that all together are no longer than `MAX_CHARS`."""
    left, limit = MAX_CHARS, MAX_CHARS
    for number, length in enumerate(sorted(lengths)):
        limit = left // (len(lengths) - number)
        if length > limit:
            return limit
        left -= length
    return MAX_CHARS


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
