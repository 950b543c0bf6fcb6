"""Dialog of a permission question."""

from collections.abc import Callable, Container, Sequence
from time import monotonic
from typing import TypeAlias

from panpan.faces.permission_rows import argument_rows, head_rows
from panpan.faces.terminal.dialogs.choice_dialog import TELL, UNREAD, Choice, ChoiceDialog
from panpan.faces.terminal.dialogs.dialog import LineEditor, coloured_lines, prose
from panpan.faces.terminal.rendering.cells import break_line, cut, fit_parts, wrap_text
from panpan.faces.terminal.screen.theme import Theme
from panpan.hub.permission_answers import WHOLE_CALL, all_reasons, answers_to, exact_line, why_it_matters, with_words
from panpan.system.text.terminal_text import escape_invisible
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late
from panpan.types.permission import PermissionAnswer, PermissionQuestion

Meaning: TypeAlias = str
"""Key of an answer, or `TELL`."""


def choices_for(question: PermissionQuestion) -> Sequence[Choice[Meaning]]:
    """Return the answers, and the choice to type words for the model."""
    said = [(one.key, one.key, f"{one.text} ({one.key})", f"{one.short} ({one.key})") for one in answers_to(question)]
    said.append((TELL, "t", "No, and say what to do instead (t)", "No, tell (t)"))
    return [Choice(number, *each) for number, each in enumerate(said, 1)]


def choice_rows(
    choices: Sequence[Choice[Meaning]], lasting: Container[Meaning], selected: Meaning | None, width: int, theme: Theme
) -> list[str]:
    """Return each choice on rows of its own; rules are shown exactly, including blanks."""
    fills = [break_line if choice.meaning in lasting else wrap_text for choice in choices]
    rows = (
        choice.rows(fill, width, theme, is_selected=choice.meaning == selected)
        for choice, fill in zip(choices, fills, strict=True)
    )
    return [row for each in rows for row in each]


def choices_side_by_side(
    choices: Sequence[Choice[Meaning]], selected: Meaning | None, width: int, theme: Theme
) -> list[str]:
    """Return the short labels, as many in a row as fit; `width` is 2 cells or more."""
    texts = [(f"{choice.number}. {choice.short}", choice.meaning == selected) for choice in choices]
    painted = [theme.paint("accent", f"❯ {text}") if is_selected else f"  {text}" for text, is_selected in texts]
    return wrap_text("".join(painted), width)


@dataclass(frozen=True, slots=True)
class Form:
    """Parts of the dialog that are shown beside the call."""

    has_gaps: bool = False
    """True to show a blank row and a hint."""
    says_why: bool = False
    """True to show the bounds of the call and the reasons that may change the answer."""
    offers_lasting: bool = False
    """True to offer answers that also hold for later calls."""
    is_terse: bool = False
    """True to show the choices side by side, with short labels."""
    fewest_rows: int = 4
    """Fewest rows of the call that are shown, if it has more."""


FORMS = (
    Form(has_gaps=True, says_why=True, offers_lasting=True),
    Form(says_why=True, offers_lasting=True),
    Form(offers_lasting=True),
    Form(),
    Form(is_terse=True, fewest_rows=1),
)
"""Forms in order of preference: the first that shows the whole call, else the first that shows enough of it."""


def row_of_words(form: Form) -> int:
    """Return the index of the foot's row with the text field, counting a blank row."""
    return 2 if form.has_gaps else 0 if form.is_terse else 1


def editor_rows(words: LineEditor, title: str, form: Form, width: int, theme: Theme) -> list[str]:
    """Return the foot with the text field for words to the model; `title` names the answer that they go with."""
    keys = fit_parts([("enter sends it", 1), ("esc goes back", 0)], width - 2, ", ")
    hint = theme.paint("dim", cut(f"  {keys}", width))
    return [
        *([] if form.is_terse else [cut(f"  {title}", width)]),
        f"{theme.paint('accent', '❯')} {words.row(width - 2)[0]}",
        *([hint] if form.has_gaps else []),
    ]


SMALLEST_ROOM = 20
"""Rows of a terminal of 24 without those of the input box."""
_FOLDED_ROWS = 12
_LEFT_UNFOLDED = 24
"""Most rows that are not folded if the whole dialog fits, which saves the user a key."""
_MORE_FILES = compile_late(r" and \d+ more$")


@dataclass(frozen=True, slots=True)
class _Layout:
    """Dialog laid out in one form."""

    form: Form
    offered: Sequence[Choice[Meaning]]
    rows: Sequence[str]
    """Rows of the call or its change."""
    room: int
    """Room for these rows; negative if not even the rest fits."""
    most: int
    """Most of these rows that are shown."""
    notes: Sequence[str]
    """Bounds and reasons, below these rows."""
    foot: Sequence[str]

    @property
    def is_whole(self) -> bool:
        """True if all rows are shown."""
        return len(self.rows) <= self.most


class PermissionDialog(ChoiceDialog[PermissionAnswer, Meaning]):
    """Asks for permission for a call, and shows the call exactly.

    Args:
        question: The permission question.
        preview: Rows with colours, such as a diff, to show instead of the arguments; may be empty.
        room: Returns the rows that the dialog may take; called at each drawing. The smallest form is drawn even if
            it takes more.
        clock: Monotonic clock in seconds.
        ends_turn: Returns True if ESC also ends the turn; False for a subagent in the background.
    """

    def __init__(
        self,
        question: PermissionQuestion,
        preview: Sequence[str],
        *,
        room: Callable[[], int] = lambda: SMALLEST_ROOM,
        clock: Callable[[], float] = monotonic,
        ends_turn: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__(choices_for(question), clock)
        self._answers = {one.key: one for one in answers_to(question)}
        self.needs_selection = {key for key, one in self._answers.items() if one.is_lasting}
        self._selected = self._choices[0].meaning
        self._question = question
        self._preview = [part for line in preview for part in coloured_lines(line)]
        self._ends_turn = ends_turn
        self._room = room
        self._drawn: tuple[int, Theme] | None = None
        self._notes: Sequence[str] = ()
        self._why: Sequence[str] = ()
        self._what: Sequence[str] = ()
        self._is_folded = True
        self._says_all = False
        """True to show all reasons."""
        self._told: Meaning = "n"
        """Answer that the words for the model go with."""

    @property
    def blocks_turn(self) -> bool:  # type: ignore[override]
        """True unless the call is that of a subagent in the background."""
        return self._ends_turn()

    def lay_out(self, width: int, theme: Theme) -> None:
        """Lay out the rows of the call, which may take a second if it is long; `lines` does the rest."""
        if self._drawn != (width, theme):  # it may be drawn ten times a second
            self._drawn = width, theme
            self._notes, self._why = self._note_rows(width - 2, theme), self._reason_rows(width - 2, theme)
            self._what = self._change_rows(width - 2, theme)

    def lines(self, width: int, theme: Theme) -> Sequence[str]:
        """Return the question, the call and the answers; in little room, only the most important parts."""
        self.lay_out(width, theme)
        head = head_rows(self._question, width, theme)
        layouts = [self._layout(form, self._room() - len(head), width, theme) for form in FORMS]
        whole = (layout for layout in layouts if layout.is_whole)
        part = (layout for layout in layouts if layout.room > layout.form.fewest_rows)
        layout = next(whole, None) or next(part, layouts[-1])
        self._offered, form, foot = layout.offered, layout.form, layout.foot
        body = self._body(layout, width, theme)
        self.cursor = None
        if self._is_telling:
            row = len(head) + len(body) + len(layout.notes) + row_of_words(form)
            self.cursor = (row, 2 + self._words.row(width - 2)[1])
        return [*head, *body, *layout.notes, *foot]

    def takes(self, key: str) -> bool:
        return key == "?" or super().takes(key)

    def press(self, key: str) -> None:
        if self.answer is not None or self._is_telling:
            super().press(key)
        elif key in ("c-o", "c-e"):
            self._is_folded, self._warned_for = not self._is_folded, None
        elif key == "?":
            self._says_all, self._warned_for = not self._says_all, None
        elif key == "tab" and self._selected is not None:
            self._told = "n" if self._selected == TELL else self._selected
            self._tell()
        else:
            super().press(key)

    def as_lines(self, width: int, theme: Theme) -> Sequence[str]:
        self.lay_out(width, theme)
        body = [*self._what, *(self._why if self._says_all else self._notes)]
        return self._lines_of(head_rows(self._question, width, theme), body, "? = why; or type what to do instead: ")

    def take_line(self, said: str) -> str:
        if said == "?":
            self._says_all = True
            return ""
        return super().take_line(said)

    def _choose(self, meaning: Meaning) -> None:
        if meaning == TELL:
            self._told = "n"
            self._tell()
        elif meaning == "n":
            self._refuse("")
        else:
            self._allow(meaning, self._answers[meaning].given)

    def _refuse(self, words: str) -> None:
        """Answer with the words for the model; without a text field it is a no."""
        told = self._answers[self._told if self._is_telling else "n"]
        answer = with_words(told.given, words)
        if answer.is_allowed:
            self._allow(told.key, answer)
        else:
            self.answer = answer

    def _layout(self, form: Form, room: int, width: int, theme: Theme) -> _Layout:
        offered = [each for each in self._choices if form.offers_lasting or each.meaning not in self.needs_selection]
        foot = self._foot(form, offered, width, theme)
        notes = self._why if self._says_all else self._notes if form.says_why else ()
        indented = [f"  {row}" for row in notes]
        rows, room = self._what, room - len(foot) - len(indented)
        folds = self._is_folded and not (form.has_gaps and len(rows) <= min(_LEFT_UNFOLDED, room))
        return _Layout(form, offered, rows, room, min(room, _FOLDED_ROWS) if folds else room, indented, foot)

    def _body(self, layout: _Layout, width: int, theme: Theme) -> list[str]:
        room = max(layout.room, 1)
        size = len(layout.rows) if len(layout.rows) <= room else max(room - 1, 1)
        return self._shown_rows(layout.rows, min(size, max(layout.most, 1)), width, theme, is_folded=self._is_folded)

    def _note_rows(self, width: int, theme: Theme) -> Sequence[str]:
        """Return the bounds of the call and the reasons that may change the answer."""
        bounds, why = self._question.offer.bounds, why_it_matters(self._question)
        rows = [theme.paint("dim", row) for row in _of_words(bounds, width)] if bounds else []
        return [*rows, *(theme.paint("warn", row) for row in (_of_words(why, width) if why else ()))]

    def _reason_rows(self, width: int, theme: Theme) -> Sequence[str]:
        """Return the bounds and all reasons, for the key `?`."""
        said = [*filter(None, [self._question.offer.bounds]), *all_reasons(self._question)]
        return [theme.paint("dim", row) for text in said for row in _of_words(text, width)]

    def _change_rows(self, width: int, theme: Theme) -> Sequence[str]:
        """Return the whole call or its change; the names of several files come first."""
        question = self._question
        wording = question.wording
        effect = _of_words(wording.effect, width) if wording.effect else []
        if not self._preview:
            return [*effect, *argument_rows(question.input, width, theme, main=wording.main_argument)]
        paths = [file.path for file in question.preview.files] if question.preview is not None else []
        is_said = question.title in question.head or _names_only(question.title, paths)
        heads = [] if is_said else [exact_line(question.title)]
        if len(paths) > 1:
            heads.append(exact_line(f"{len(paths)} files: {', '.join(paths)}"))
        rows = [theme.paint("strong", row) for head in heads for row in break_line(head, width)]
        rows += [row for line in self._preview for row in break_line(line, width)]
        if question.preview is not None and question.preview.is_cut:  # the whole call is shown, whatever its size
            rows.append(theme.paint("strong", WHOLE_CALL))
            rows += argument_rows(question.input, width, theme, main=wording.main_argument)
        return [*effect, *rows]

    def _foot(self, form: Form, offered: Sequence[Choice[Meaning]], width: int, theme: Theme) -> list[str]:
        gap = [""] if form.has_gaps else []
        if self._is_telling:
            title = self._answers[self._told].text if self._told != "n" else "No. What should be done instead?"
            rows = gap + editor_rows(self._words, title, form, width, theme)
            return rows if self._warned_for is None else rows + _unread_rows(width, theme)
        rows = gap + (
            choices_side_by_side(offered, self._selected, width, theme)
            if form.is_terse
            else choice_rows(offered, self.needs_selection, self._selected, width, theme)
        )
        if self._warned_for is not None:
            return rows + _unread_rows(width, theme)
        said = "no, and stop" if self._ends_turn() else "no"
        keys = fit_parts([("tab adds words", 2), ("? says why", 1), (f"esc: {said}", 0)], width - 2, " · ")
        if self._selected is not None and self._selected in self.needs_selection:
            answer = self._answers[self._selected]
            keys = f"enter, or {answer.key} again, {'keeps it' if answer.given.is_remembered else 'switches to it'}"
        hint = theme.paint("dim", cut(f"  {keys}", width))
        return [*rows, hint] if form.has_gaps else rows


def _unread_rows(width: int, theme: Theme) -> list[str]:
    return [theme.paint("warn", row) for row in wrap_text(UNREAD, width)]


def _names_only(title: str, paths: Sequence[str]) -> bool:
    """Return True if a title only names the paths of a change, or the first of them."""
    names = ", ".join(paths)
    if match := _MORE_FILES.search(title):
        return names.startswith(f"{title[: match.start()]}, ")
    return title == names or (len(paths) == 1 and title.endswith(f"/{names}"))


def _of_words(text: str, width: int) -> list[str]:
    return wrap_text(prose(escape_invisible(text)), width)
