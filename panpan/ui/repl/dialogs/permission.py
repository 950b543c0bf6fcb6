"""The question whether a call may run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from panpan.system.terminal_text import spelled_out
from panpan.types.permission import PermissionAnswer, PermissionQuestion
from panpan.ui.repl.dialogs.exact_text import argument_rows, exact_line
from panpan.ui.repl.dialogs.harmless import coloured_lines, prose
from panpan.ui.repl.dialogs.line_editor import LineEditor
from panpan.ui.repl.dialogs.paged import Page
from panpan.ui.repl.rendering.cells import broken, cut, wrapped
from panpan.ui.repl.theme import Theme

SMALLEST_ROOM = 20
"""Rows of a terminal of 24, less those of the input."""
MAX_RULE_CHARS = 200
"""A longer rule is not offered to be kept: nobody would read it, and the question has to fit the screen."""
_FOLDED_ROWS = 12
_FEWEST_ROWS = 2

_Meaning: TypeAlias = Literal["once", "always", "no", "tell"]


@dataclass(frozen=True, slots=True)
class _Choice:
    meaning: _Meaning
    key: str
    text: str


class PermissionDialog:
    """Asks whether a call may run, and shows exactly what would.

    Only a deliberate key allows: nothing is selected at first, so Enter alone answers nothing; a paste never answers;
    and where a part of what would run has not been on the screen, the first "yes" says so and only the next one counts.

    Args:
        question: What is asked.
        preview: Rows with colours, such as a diff, that are shown in place of the arguments; none: the arguments.
        rule_place: Where the rule of "always" is kept, as people know it.
        room: Returns how many rows there are for the dialog; asked at each drawing.
    """

    def __init__(
        self,
        question: PermissionQuestion,
        preview: Sequence[str],
        rule_place: str,
        *,
        room: Callable[[], int] = lambda: SMALLEST_ROOM,
    ) -> None:
        self.answer: PermissionAnswer | None = None
        self.cursor: tuple[int, int] | None = None
        """Row and cell of the caret in what was drawn last; None where nothing is typed."""
        self._question = question
        self._preview = [part for line in preview for part in coloured_lines(line)]
        self._choices = _choices(question.rule, rule_place)
        self._room = room
        self._page = Page()
        self._drawn: tuple[int, Theme] | None = None
        self._rows: Sequence[str] = ()
        self._is_folded = True
        self._selected: int | None = None
        self._warned_for: _Meaning | None = None
        self._words = LineEditor()
        self.is_telling = False
        """Whether words for the model are being typed."""

    def lines(self, width: int, theme: Theme) -> Sequence[str]:
        """Return what is asked, what would run, and the answers."""
        if self._drawn != (width, theme):  # what runs may be long, and it is drawn ten times a second
            self._drawn, self._rows = (width, theme), self._body(width - 2, theme)
        head = [theme.paint("question", row) for row in broken(f"? {exact_line(self._question.tool_name)}", width)]
        foot = _editor_rows(self._words, width, theme) if self.is_telling else self._choice_rows(width, theme)
        room = max(self._room() - len(head) - len(foot) - 2, _FEWEST_ROWS)
        shown = self._page.of(self._rows, min(room, _FOLDED_ROWS) if self._is_folded else room)
        body = [f"  {row}" for row in shown]
        if self._page.is_cut:
            body.append(theme.paint("warn", cut(f"  {self._page.note(is_folded=self._is_folded)}", width)))
        self.cursor = None
        if self.is_telling:
            self.cursor = (len(head) + len(body) + 2, 2 + self._words.row(width - 2)[1])
        return [*head, *body, "", *foot]

    def press(self, key: str) -> None:
        """Take one key."""
        if self.answer is not None:
            return
        if self.is_telling:
            self._press_in_words(key)
            return
        match key:
            case "enter" if self._selected is not None:
                self._choose(self._choices[self._selected].meaning)
                return
            case "escape" | "c-c":
                self._choose("no")
            case "up" | "s-tab":
                self._selected = ((self._selected or 0) - 1) % len(self._choices)
            case "down" | "tab":
                self._selected = 0 if self._selected is None else (self._selected + 1) % len(self._choices)
            case "c-o" | "c-e":
                self._is_folded = not self._is_folded
            case "pagedown" | "pageup":
                self._page.turn(key)
            case _:
                for number, choice in enumerate(self._choices, 1):
                    if key.lower() == choice.key or key == str(number):
                        self._choose(choice.meaning)
                        return
        self._warned_for = None

    def paste(self, text: str) -> None:
        """Take pasted text; it is typed where something is typed, and answers nothing."""
        if self.is_telling:
            self._words.insert(text)

    def _choose(self, meaning: _Meaning) -> None:
        match meaning:
            case "no":
                self.answer = PermissionAnswer(is_allowed=False)
            case "tell":
                self.is_telling, self._warned_for = True, None
            case _ if not self._page.was_all_seen and self._warned_for != meaning:
                self._warned_for = meaning
            case _:
                self.answer = PermissionAnswer(is_allowed=True, is_remembered=meaning == "always")

    def _press_in_words(self, key: str) -> None:
        match key:
            case "enter":
                said = self._words.text.strip()
                feedback = f"The user refused it and said: {said}" if said else ""
                self.answer = PermissionAnswer(is_allowed=False, feedback=feedback)
            case "escape" | "c-c":
                self.is_telling = False  # what was typed stays
            case "pagedown" | "pageup":
                self._page.turn(key)
            case _:
                self._words.press(key)

    def _body(self, width: int, theme: Theme) -> Sequence[str]:
        """Return why it is asked and all that would run, in rows."""
        question = self._question
        rows = [theme.paint("dim", row) for row in wrapped(prose(spelled_out(question.reason)), width)]
        if question.is_protected:
            rows += [theme.paint("warn", row) for row in wrapped("No setting opens this; only you can.", width)]
        if not self._preview:
            return [*rows, *argument_rows(question.input, width, theme)]
        if not _is_in_preview(question):
            rows += [theme.paint("strong", row) for row in broken(exact_line(question.title), width)]
        return rows + [row for line in self._preview for row in broken(line, width)]

    def _choice_rows(self, width: int, theme: Theme) -> list[str]:
        rows = []
        for at, choice in enumerate(self._choices):
            fill = broken if choice.meaning == "always" else wrapped  # a rule is shown as it is, blanks and all
            first, *more = fill(f"{at + 1}. {choice.text}", width - 5)
            text = [f"{'❯' if at == self._selected else ' '} {first}", *(f"     {row}" for row in more)]
            rows += [theme.paint("accent", row) if at == self._selected else row for row in text]
        if self._warned_for is not None:
            unread = "Not all of it has been on the screen. The same key again allows it all the same."
            return rows + [theme.paint("warn", row) for row in wrapped(unread, width)]
        return [*rows, theme.paint("dim", cut("  a letter or number answers, or arrows and enter", width))]


def _is_in_preview(question: PermissionQuestion) -> bool:
    """Return whether the title is nothing but the paths that stand above the diffs."""
    paths = [file.path for file in question.preview.files] if question.preview is not None else []
    return question.title == ", ".join(paths) or (len(paths) == 1 and question.title.endswith(f"/{paths[0]}"))


def _editor_rows(words: LineEditor, width: int, theme: Theme) -> list[str]:
    return [
        cut("  Not this. What should be done instead?", width),
        f"{theme.paint('accent', '❯')} {words.row(width - 2)[0]}",
        theme.paint("dim", cut("  enter sends it with the no, esc goes back", width)),
    ]


def _choices(rule: str | None, place: str) -> Sequence[_Choice]:
    choices = [_Choice("once", "y", "Yes, once (y)")]
    if rule is not None and len(rule) <= MAX_RULE_CHARS:
        choices.append(_Choice("always", "a", f"Yes, always (a): saves {exact_line(rule)} in {exact_line(place)}"))
    choices.append(_Choice("no", "n", "No (n); esc ends the turn, too"))
    choices.append(_Choice("tell", "t", "No, and tell the model what to do instead (t)"))
    return choices
