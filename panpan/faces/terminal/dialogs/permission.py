"""The question whether a call may run."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any, Literal, TypeAlias

from panpan.faces.terminal.dialogs.choice_dialog import Choice, ChoiceDialog
from panpan.faces.terminal.dialogs.dialog import LineEditor, coloured_lines, prose
from panpan.faces.terminal.rendering.cells import broken, broken_between_words, cell_width, cut, fitted, wrapped
from panpan.faces.terminal.screen.theme import Theme
from panpan.permissions.rules.suggestions import holds_for
from panpan.system.text.terminal_text import spelled_out
from panpan.types.dataclass import dataclass
from panpan.types.permission import PermissionAnswer, PermissionQuestion

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
Meaning: TypeAlias = Literal["once", "always", "always-like", "no", "tell"]

SAVES_RULE: frozenset[Meaning] = frozenset({"always", "always-like"})
"""Answers that hold for ever."""


def choices_for(question: PermissionQuestion, place: str, *, ends_turn: bool = True) -> Sequence[Choice[Meaning]]:
    """Return the answers; a rule would be saved in `place`, and with `ends_turn`, Esc ends the turn, too."""
    rule, prefix_rule = question.rule, question.prefix_rule
    said: list[tuple[Meaning, str, str, str]] = [("once", "y", "Yes, once (y)", "Yes (y)")]
    if rule is not None and cell_width(exact_line(rule)) <= MAX_RULE_CELLS:
        always = (
            f"Yes, always (a): saves {exact_line(rule)}{holds_for(rule, question.tool_name)} in {exact_line(place)}"
        )
        said.append(("always", "a", always, "Always (a)"))
    if prefix_rule is not None:
        like = f"Yes, always the like (l): saves {exact_line(prefix_rule)} in {exact_line(place)}"
        said.append(("always-like", "l", like, "Always the like (l)"))
    said.append(("no", "n", f"No (n); esc {'ends the turn, too' if ends_turn else 'says so, too'}", "No (n)"))
    said.append(("tell", "t", "No, and tell the model what to do instead (t)", "No, tell (t)"))
    return [Choice(number, *each) for number, each in enumerate(said, 1)]


def choice_rows(choices: Sequence[Choice[Meaning]], selected: Meaning | None, width: int, theme: Theme) -> list[str]:
    """Return each choice on rows of its own; a rule is shown as it is, blanks and all."""
    fills = [broken_between_words if choice.meaning in SAVES_RULE else wrapped for choice in choices]
    rows = (
        choice.rows(fill, width, theme, is_selected=choice.meaning == selected)
        for choice, fill in zip(choices, fills, strict=True)
    )
    return [row for each in rows for row in each]


def choices_side_by_side(
    choices: Sequence[Choice[Meaning]], selected: Meaning | None, width: int, theme: Theme
) -> list[str]:
    """Return the choices in few words, as many on a row as fit; `width` is 2 cells or more."""
    texts = [(f"{choice.number}. {choice.short}", choice.meaning == selected) for choice in choices]
    painted = [theme.paint("accent", f"❯ {text}") if is_selected else f"  {text}" for text, is_selected in texts]
    return wrapped("".join(painted), width)


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
    """Parts of the question that are shown beside what would run."""

    has_gaps: bool = False
    """True if there are a blank row and a hint."""
    says_why: bool = False
    """True if the reason is shown also where the rest is folded."""
    offers_rule: bool = False
    """True if "always" is offered, with the rules that it may save."""
    is_terse: bool = False
    """True if the choices stand side by side, in few words."""
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


SMALLEST_ROOM = 20
"""Rows of a terminal of 24, less those of the input."""
_FOLDED_ROWS = 12
_LEFT_UNFOLDED = 24
"""Rows that are not folded where there is room for all of the question: a key fewer, and nothing gives way for it."""
_MORE_FILES = re.compile(r" and \d+ more$")


@dataclass(frozen=True, slots=True)
class _Layout:
    """The question in one form."""

    form: Form
    offered: Sequence[Choice[Meaning]]
    rows: Sequence[str]
    """The change that would be made, with the reason where there is room."""
    room: int
    """For these rows; negative where not even the rest has room."""
    most: int
    """Of these rows that are shown: only what would run is folded, and the reason is not."""
    foot: Sequence[str]

    @property
    def is_whole(self) -> bool:
        """True if all rows are shown."""
        return len(self.rows) <= self.most


class PermissionDialog(ChoiceDialog[PermissionAnswer, Meaning]):
    """Asks whether a call may run, and shows exactly what would.

    Args:
        question: What is asked.
        preview: Rows with colours, such as a diff, that are shown in place of the arguments; none: the arguments.
        rule_place: File of the rule of "always", as people know it.
        room: Returns how many rows there are for the dialog; asked at each drawing. Where there are too few even for
            the least that can be shown, there are more rows than that.
        clock: Returns seconds that only ever grow.
        ends_turn: Returns whether ESC ends the turn, too; it does not where the call is that of a subagent beside it.
    """

    needs_selection = SAVES_RULE  # a rule holds for ever, so one letter is not enough

    def __init__(
        self,
        question: PermissionQuestion,
        preview: Sequence[str],
        rule_place: str,
        *,
        room: Callable[[], int] = lambda: SMALLEST_ROOM,
        clock: Callable[[], float] = monotonic,
        ends_turn: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__(choices_for(question, rule_place, ends_turn=ends_turn()), clock)
        self._question = question
        self._preview = [part for line in preview for part in coloured_lines(line)]
        self._ends_turn = ends_turn
        self._rule_place = rule_place
        self._room = room
        self._drawn: tuple[int, Theme] | None = None
        self._why: Sequence[str] = ()
        self._what: Sequence[str] = ()
        self._is_folded = True

    @property
    def holds_up_turn(self) -> bool:  # type: ignore[override]
        """True unless the call is that of a subagent beside the turn."""
        return self._ends_turn()

    def lay_out(self, width: int, theme: Theme) -> None:
        """Make the rows of what would run, which may take a second where that is long; `lines` does what is left."""
        if self._drawn != (width, theme):  # it may be drawn ten times a second
            self._drawn = width, theme
            self._why, self._what = self._reason_rows(width - 2, theme), self._change_rows(width - 2, theme)

    def lines(self, width: int, theme: Theme) -> Sequence[str]:
        """Return what is asked, what would run, and the answers; where there is little room, only what matters most."""
        self.lay_out(width, theme)
        self._choices = choices_for(self._question, self._rule_place, ends_turn=self._ends_turn())
        head = head_rows(self._question, width, theme)
        layouts = [self._layout(form, self._room() - len(head), width, theme) for form in FORMS]
        whole = (layout for layout in layouts if layout.is_whole)
        part = (layout for layout in layouts if layout.room > layout.form.fewest_rows)
        layout = next(whole, None) or next(part, layouts[-1])
        self._offered, form, foot = layout.offered, layout.form, layout.foot
        body = self._body(layout, width, theme)
        self.cursor = None
        if self._is_telling:
            self.cursor = (len(head) + len(body) + row_of_words(form), 2 + self._words.row(width - 2)[1])
        return [*head, *body, *foot]

    def press(self, key: str) -> None:
        if key in ("c-o", "c-e") and self.answer is None and not self._is_telling:
            self._is_folded, self._warned_for = not self._is_folded, None
        else:
            super().press(key)

    def _choose(self, meaning: Meaning) -> None:
        match meaning:
            case "no":
                self._refuse("")
            case "tell":
                self._tell()
            case _:
                answer = PermissionAnswer(
                    is_allowed=True, is_remembered=meaning in SAVES_RULE, is_for_prefix=meaning == "always-like"
                )
                self._allow(meaning, answer)

    def _refuse(self, words: str) -> None:
        feedback = f"The user refused it and said: {words}" if words else ""
        self.answer = PermissionAnswer(is_allowed=False, feedback=feedback)

    def _layout(self, form: Form, room: int, width: int, theme: Theme) -> _Layout:
        offered = [each for each in self._choices if form.offers_rule or each.meaning not in SAVES_RULE]
        foot = self._foot(form, offered, width, theme)
        why = self._why if form.says_why or not self._is_folded else ()
        rows, room = [*why, *self._what], room - len(foot)
        folds = self._is_folded and not (form.has_gaps and len(self._what) <= _LEFT_UNFOLDED and len(rows) <= room)
        most = min(room, len(why) + _FOLDED_ROWS) if folds else room
        return _Layout(form, offered, rows, room, most, foot)

    def _body(self, layout: _Layout, width: int, theme: Theme) -> list[str]:
        room = max(layout.room, 1)
        size = len(layout.rows) if len(layout.rows) <= room else max(room - 1, 1)
        return self._shown_rows(layout.rows, min(size, max(layout.most, 1)), width, theme, is_folded=self._is_folded)

    def _reason_rows(self, width: int, theme: Theme) -> Sequence[str]:
        said = filter(None, (self._question.reason, self._question.bounds))
        rows = [theme.paint("dim", row) for text in said for row in _of_words(text, width)]
        if self._question.is_protected:
            rows += [theme.paint("warn", row) for row in wrapped(ONLY_YOU, width)]
        return rows

    def _change_rows(self, width: int, theme: Theme) -> Sequence[str]:
        """Return all that would run or change; where that is several files, their names come first."""
        question = self._question
        effect = _of_words(question.effect, width) if question.effect else []
        if not self._preview:
            return [*effect, *argument_rows(question.input, width, theme)]
        paths = [file.path for file in question.preview.files] if question.preview is not None else []
        heads = [] if _names_only(question.title, paths) else [exact_line(question.title)]
        if len(paths) > 1:
            heads.append(exact_line(f"{len(paths)} files: {', '.join(paths)}"))
        rows = [theme.paint("strong", row) for head in heads for row in broken(head, width)]
        return [*effect, *rows, *(row for line in self._preview for row in broken(line, width))]

    def _foot(self, form: Form, offered: Sequence[Choice[Meaning]], width: int, theme: Theme) -> list[str]:
        gap = [""] if form.has_gaps else []
        if self._is_telling:
            return gap + editor_rows(self._words, form, width, theme)
        layout = choices_side_by_side if form.is_terse else choice_rows
        rows = gap + layout(offered, self._selected, width, theme)
        if self._warned_for is not None:
            unread = "Not all of it has been on the screen. The same key again allows it all the same."
            return rows + [theme.paint("warn", row) for row in wrapped(unread, width)]
        keys = fitted([("a letter or number answers", 0), ("or arrows and enter", 1)], width - 2, ", ")
        if self._selected in SAVES_RULE:
            letter = next(choice.key for choice in self._choices if choice.meaning == self._selected)
            keys = f"enter, or {letter} again, saves the rule"
        hint = theme.paint("dim", cut(f"  {keys}", width))
        return [*rows, hint] if form.has_gaps else rows


def _names_only(title: str, paths: Sequence[str]) -> bool:
    """Return whether a title says nothing but the paths of a change, or the first of them."""
    names = ", ".join(paths)
    if match := _MORE_FILES.search(title):
        return names.startswith(f"{title[: match.start()]}, ")
    return title == names or (len(paths) == 1 and title.endswith(f"/{names}"))


def _of_words(text: str, width: int) -> list[str]:
    return wrapped(prose(spelled_out(text)), width)
