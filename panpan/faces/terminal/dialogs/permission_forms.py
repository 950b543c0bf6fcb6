"""How much of a permission question is shown: what is secondary gives way where there is little room."""

from panpan.faces.terminal.dialogs.line_editor import LineEditor
from panpan.faces.terminal.rendering.cells import cut
from panpan.faces.terminal.rendering.fitting import fitted
from panpan.faces.terminal.screen.theme import Theme
from panpan.types.dataclass import dataclass


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
