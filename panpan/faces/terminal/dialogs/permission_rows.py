"""The rows of a permission question: whose call it is, exactly what it does, and the answers."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from panpan.faces.terminal.dialogs.line_editor import LineEditor
from panpan.faces.terminal.rendering.cells import broken, broken_between_words, cell_width, cut, fitted, wrapped
from panpan.faces.terminal.screen.theme import Theme
from panpan.permissions.rules.suggestions import holds_for
from panpan.system.text.terminal_text import spelled_out
from panpan.types.dataclass import dataclass
from panpan.types.permission import PermissionQuestion

# What a person has to judge, shown exactly: every argument, with what cannot be seen spelled out.
#
# A bar stands before each line, a broken one where a line goes on in the next row: no text can pass for two lines, for
# another argument, or for a part of the dialog.

_TAB = "<U+0009>"
_LINE_FEED = "<U+000A>"


def exact_line(text: str) -> str:
    """Return `text` on one line, with every character spelled out that could not be seen."""
    return spelled_out(text).replace("\t", _TAB).replace("\n", _LINE_FEED)


def argument_rows(arguments: Mapping[str, Any], width: int, theme: Theme) -> list[str]:
    """Return the arguments of a call as rows of at most `width` cells."""
    if not arguments:
        return [theme.paint("dim", "(no arguments)")]
    return [row for name, value in arguments.items() for row in _rows_of(exact_line(name), value, width, theme)]


def _rows_of(name: str, value: Any, width: int, theme: Theme) -> list[str]:
    text = value if isinstance(value, str) else _json_of(value)
    if "\n" not in text and cell_width(f"{name}: {exact_line(text)}") <= width:
        return [f"{theme.paint('dim', f'{name}:')} {exact_line(text)}"]
    if not isinstance(value, str):
        text = _json_of(value, indent=2)
    lines = [exact_line(line) for line in text.split("\n")]
    rows = [theme.paint("dim", row) for row in broken(f"{name}:", width)]
    for line in lines:
        first, *more = broken(line, width - 2)
        rows += [f"{theme.paint('dim', '│')} {first}", *(f"{theme.paint('dim', '┊')} {row}" for row in more)]
    return rows


def _json_of(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent, default=str)


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


_ASKS = " asks:"


def head_rows(question: PermissionQuestion, width: int, theme: Theme) -> list[str]:
    """Return the name of the tool, whole, and before it, in one row, the subagent that asks."""
    tool, agent = exact_line(question.tool_name), exact_line(question.agent)
    if not agent:
        return [theme.paint("question", row) for row in broken(f"? {tool}", width)]
    who = cut(f"? {cut(agent, max(width - len(_ASKS) - 2, 1))}{_ASKS}", width)
    return [theme.paint("question", row) for row in (who, *(f"  {row}" for row in broken(tool, width - 2)))]


@dataclass(frozen=True, slots=True)
class Form:
    """How much of the question is shown beside what would run."""

    has_gaps: bool = False
    """Whether there are a blank row and a hint."""
    says_why: bool = False
    """Whether the reason is shown also where the rest is folded."""
    offers_rule: bool = False
    """Whether "always" is offered, with the rules that it may save."""
    is_terse: bool = False
    """Whether the choices stand side by side, in few words."""
    fewest_rows: int = 4
    """Of what would run, where it has more."""


FORMS = (
    Form(has_gaps=True, says_why=True, offers_rule=True),
    Form(says_why=True, offers_rule=True),
    Form(offers_rule=True),
    Form(),
    Form(is_terse=True, fewest_rows=1),
)
"""The first one is taken that shows all of what would run; where none does, the first that shows enough of it."""


def row_of_words(form: Form) -> int:
    """Return the row in the foot, blank row included, where words for the model are typed."""
    return 2 if form.has_gaps else 0 if form.is_terse else 1


def editor_rows(words: LineEditor, form: Form, width: int, theme: Theme) -> list[str]:
    """Return the foot where words for the model are typed."""
    title = cut("  Not this. What should be done instead?", width)
    keys = fitted([("enter sends it with the no", 1), ("esc goes back", 0)], width - 2, ", ")
    hint = theme.paint("dim", cut(f"  {keys}", width))
    return [
        *([] if form.is_terse else [title]),
        f"{theme.paint('accent', '❯')} {words.row(width - 2)[0]}",
        *([hint] if form.has_gaps else []),
    ]
