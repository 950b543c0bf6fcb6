"""One of each shape that may be shown, about the same words."""

from collections.abc import Sequence

from panpan.types.content import (
    ChecklistDisplay,
    ChecklistItem,
    DiffDisplay,
    Display,
    FileDiff,
    PlanDisplay,
    Span,
    SummaryDisplay,
    TextDisplay,
    table,
    text,
)


def shapes(words: str) -> Sequence[Display]:
    """Return every shape, with `words` wherever it takes some."""
    return (
        text(words),
        TextDisplay(spans=(Span(text=words, role="good", without_hues=words), Span(text=words))),
        table([(words, words)]),
        table([(words, words, words)], header=("a", words, "c")),
        ChecklistDisplay(todos=(ChecklistItem(content=words, active_form=words, status="in_progress"),)),
        DiffDisplay(files=(FileDiff(path=words, diff="@@ -1 +1 @@\n-a\n+b", added=1, removed=1),), notes=(words,)),
        SummaryDisplay(text=words),
        PlanDisplay(text=words, summary=words),
    )
