"""What a permission question can be answered with, and how the answers are shown."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from panpan.faces.terminal.dialogs.exact_text import exact_line
from panpan.faces.terminal.rendering.cells import broken_between_words, cell_width, wrapped
from panpan.faces.terminal.screen.theme import Theme
from panpan.permissions.rules.suggestions import holds_for
from panpan.types.dataclass import dataclass

ONLY_YOU = "No rule and no --yes answers this; only you can."
"""Stands below a question about what is protected, or about the sandbox."""
MAX_RULE_CELLS = 200
"""A longer rule is not offered to be kept: nobody would read it, and the question has to fit the screen."""
_MARK_CELLS = 5
"""Before a row that goes on; also left free by the first."""

Meaning: TypeAlias = Literal["once", "always", "always-like", "no", "tell"]

SAVES_RULE: frozenset[Meaning] = frozenset({"always", "always-like"})
"""What holds for ever."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer."""

    number: int
    """Counted from 1; it stays where other choices are not offered."""
    meaning: Meaning
    key: str
    text: str
    short: str
    """Where there is one row for all choices."""

    def is_meant_by(self, key: str) -> bool:
        """Return whether a key chooses this."""
        return key.lower() == self.key or key == str(self.number)


def choices_for(
    tool: str, rule: str | None, prefix_rule: str | None, place: str, *, ends_turn: bool = True
) -> Sequence[Choice]:
    """Return the answers.

    Args:
        tool: The one that asks.
        rule: What "always" would save; None: it is not offered.
        prefix_rule: What may be saved in its place; None: it is not offered.
        place: Where it would be saved, as people know it.
        ends_turn: Whether Esc ends the turn, too.
    """
    said: list[tuple[Meaning, str, str, str]] = [("once", "y", "Yes, once (y)", "Yes (y)")]
    if rule is not None and cell_width(exact_line(rule)) <= MAX_RULE_CELLS:
        always = f"Yes, always (a): saves {exact_line(rule)}{holds_for(rule, tool)} in {exact_line(place)}"
        said.append(("always", "a", always, "Always (a)"))
    if prefix_rule is not None:
        like = f"Yes, always the like (l): saves {exact_line(prefix_rule)} in {exact_line(place)}"
        said.append(("always-like", "l", like, "Always the like (l)"))
    said.append(("no", "n", f"No (n); esc {'ends the turn, too' if ends_turn else 'says so, too'}", "No (n)"))
    said.append(("tell", "t", "No, and tell the model what to do instead (t)", "No, tell (t)"))
    return [Choice(number, *each) for number, each in enumerate(said, 1)]


def choice_rows(choices: Sequence[Choice], selected: Meaning | None, width: int, theme: Theme) -> list[str]:
    """Return each choice on rows of its own; `width` is 7 cells or more."""
    rows: list[str] = []
    for choice in choices:
        # a rule is shown as it is, blanks and all
        fill = broken_between_words if choice.meaning in SAVES_RULE else wrapped
        first, *more = fill(f"{choice.number}. {choice.text}", width - _MARK_CELLS)
        is_selected = choice.meaning == selected
        text = [f"{'❯' if is_selected else ' '} {first}", *(" " * _MARK_CELLS + row for row in more)]
        rows += [theme.paint("accent", row) if is_selected else row for row in text]
    return rows


def choices_side_by_side(choices: Sequence[Choice], selected: Meaning | None, width: int, theme: Theme) -> list[str]:
    """Return the choices in few words, as many on a row as fit; `width` is 2 cells or more."""
    texts = [
        theme.paint("accent", f"❯ {choice.number}. {choice.short}")
        if choice.meaning == selected
        else f"  {choice.number}. {choice.short}"
        for choice in choices
    ]
    return wrapped("".join(texts), width)
