"""Dialog for the questions of the model, one after the other."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TypeAlias

from panpan.faces.terminal.dialogs.dialog import Dialog, LineEditor, Page, prose
from panpan.faces.terminal.rendering.cells import break_line, cut, fit_parts, wrap_text
from panpan.faces.terminal.screen.theme import Theme
from panpan.system.text.cell_width import cell_width
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass
from panpan.types.permission import UserAnswer, UserQuestion

_QUESTION_ROWS = 6
_FEWEST_QUESTION_ROWS = 2
_LABEL_ROWS = 2
_DETAIL_ROWS = 3
"""Most rows of the selected choice; the others have one row each. Together they fit a terminal of 24 rows."""
_FRAME_ROWS = 2
"""Rows of the headers and the hint."""
_FEWEST_ROWS = 2
_OWN_WORDS = "In your own words"

UserAnswers: TypeAlias = tuple[UserAnswer, ...]


@dataclass(frozen=True, slots=True)
class Declined:
    """Answer of a user who declines the questions."""


@dataclass(slots=True)
class _Sheet:
    question: UserQuestion
    selected: int = 0
    """Index of the selected row: a choice, or after the choices the user's own words."""
    chosen: set[int] = field(default_factory=set)
    words: LineEditor = field(default_factory=LineEditor)
    is_confirmed: bool = False

    @property
    def is_in_words(self) -> bool:
        return self.selected == len(self.question.choices)

    @property
    def answer(self) -> UserAnswer:
        """Answer so far: for a single choice, the choice or the words; for several, both."""
        labels = tuple(self.question.choices[at].label for at in sorted(self.chosen))
        return UserAnswer(labels, "" if labels and not self.question.allows_several else self.words.text.strip())

    @property
    def is_answered(self) -> bool:
        return self.is_confirmed and self.answer != UserAnswer()

    def confirm(self) -> bool:
        """Confirm the selected row, or the chosen ones of several; return True if there is an answer."""
        if not self.question.allows_several:
            if self.is_in_words and not self.words.text.strip():
                return False
            self.chosen = set() if self.is_in_words else {self.selected}
        self.is_confirmed = True
        return self.is_answered


class QuestionsDialog(Dialog[UserAnswers | Declined]):
    """Asks one to four questions; answers are kept while the user looks at another question.

    The first choice, which the model recommends, is selected at first. A paste goes into the field for the user's own
    words, and answers nothing. If there is no room for all rows, those around the selected one are shown.
    """

    def __init__(self, questions: Sequence[UserQuestion], *, room: Callable[[], int] = lambda: sys.maxsize) -> None:
        super().__init__()
        self._sheets = [_Sheet(question) for question in questions]
        self._at = 0
        self._is_folded = True
        self._misses_answer = False
        self._room = room
        self._page = Page()
        self._follows_selection = True

    def lines(self, width: int, theme: Theme) -> Sequence[str]:
        sheet = self._sheet
        rows, selected = self._body(sheet, width, theme)
        room = self._room() - _FRAME_ROWS
        size = len(rows) if len(rows) <= room else max(room - 1, _FEWEST_ROWS)  # one row is for the note on hidden rows
        if self._follows_selection:
            self._page.reveal(selected, size)
        head = [self._progress(width, theme), *self._page.of(rows, size)]
        if self._page.is_cut:
            head.append(theme.paint("warn", cut(f"  {self._page.note(is_folded=False)}", width)))
        self.cursor = None
        if sheet.is_in_words and (row := self._page.row_of(len(rows) - 1)) is not None:
            mark = cell_width(_mark(sheet, sheet.selected))
            self.cursor = (1 + row, mark + sheet.words.row(width - mark)[1])
        return [
            *head,
            theme.paint("warn" if self._misses_answer else "dim", cut(f"  {self._hint(sheet, width - 2)}", width)),
        ]

    def press(self, key: str) -> None:
        if self.answer is not None:
            return
        self._misses_answer = False
        self._follows_selection = key not in ("pagedown", "pageup")
        sheet = self._sheet
        match key:
            case "escape" if sheet.is_in_words and sheet.words.text:
                sheet.selected = 0  # the typed words stay; a second Esc declines
            case "escape" | "c-c":
                self.answer = Declined()
            case "enter":
                self._confirm(sheet)
            case "up" | "down":
                step = 1 if key == "down" else -1
                sheet.selected = (sheet.selected + step) % (len(sheet.question.choices) + 1)
            case "tab" | "s-tab":
                self._go(1 if key == "tab" else -1)
            case "c-o":
                self._is_folded = not self._is_folded
            case "pagedown" | "pageup":
                self._page.turn(key)
            case _ if sheet.is_in_words:
                sheet.words.press(key)
            case _:
                self._press_at_choice(sheet, key)

    def paste(self, text: str) -> bool:
        """Insert pasted text into the user's own words, and return True if they are selected; answers nothing."""
        is_typed = self.answer is None and self._sheet.is_in_words
        if is_typed:
            self._sheet.words.insert(text)
        return is_typed

    def as_lines(self, width: int, theme: Theme) -> Sequence[str]:
        """Return the current question with its numbered choices."""
        question = self._sheet.question
        rows = [f"? {clean_line(question.header)}: {_shown_part(question.question)}"]
        for number, choice in enumerate(question.choices, 1):
            rows.append(f"{number:5}. {_shown_part(choice.label)}")
            if choice.description.strip():
                rows.append(f"       {_shown_part(choice.description)}")
        numbers = "one number or more, such as 1 2" if question.allows_several else "a number"
        return [*rows, f"  {numbers}, or your own words; an empty line declines: "]

    def take_line(self, said: str) -> str:
        if not said:
            self.answer = Declined()
            return ""
        sheet, words = self._sheet, said.replace(",", " ").split()
        count = len(sheet.question.choices)
        if all(word.isdecimal() for word in words) and (len(words) < 2 or sheet.question.allows_several):
            if not words or not all(1 <= int(word) <= count for word in words):
                return "there is no such number"
            sheet.chosen = {int(word) - 1 for word in words}
            sheet.selected = min(sheet.chosen)
        else:
            sheet.selected = count
            sheet.words.insert(said)
        self._confirm(sheet)
        return ""

    @property
    def _sheet(self) -> _Sheet:
        return self._sheets[self._at]

    def _body(self, sheet: _Sheet, width: int, theme: Theme) -> tuple[list[str], range]:
        """Return the rows of a question with its choices, and the range of the selected rows."""
        room = self._room() - _FRAME_ROWS - _LABEL_ROWS - _DETAIL_ROWS - 2
        most = min(max(room, _FEWEST_QUESTION_ROWS), _QUESTION_ROWS)
        asked = self._folded(wrap_text(prose(sheet.question.question), width), most, width, " … (ctrl+o)")
        rows = [*(theme.paint("strong", row) for row in asked), ""]
        parts = [self._choice_rows(sheet, at, width, theme) for at in range(len(sheet.question.choices))]
        parts.append([self._words_row(sheet, width, theme)])
        begin = len(rows) + sum(map(len, parts[: sheet.selected]))
        end = begin + len(parts[sheet.selected])
        rows += (row for part in parts for row in part)
        return rows, range(0 if self._is_folded and sheet.selected == 0 else begin, end)

    def _words_row(self, sheet: _Sheet, width: int, theme: Theme) -> str:
        mark = _mark(sheet, len(sheet.question.choices))
        room = width - cell_width(mark)
        shown = sheet.words.row(room)[0] if sheet.words.text else theme.paint("dim", cut(_OWN_WORDS, room))
        return (theme.paint("accent", mark) if sheet.is_in_words else mark) + shown

    def _press_at_choice(self, sheet: _Sheet, key: str) -> None:
        match key:
            case "left" | "right":
                self._go(1 if key == "right" else -1)
            case " " if sheet.question.allows_several:
                sheet.chosen ^= {sheet.selected}
            case "1" | "2" | "3" | "4" | "5" if int(key) <= len(sheet.question.choices) + 1:
                sheet.selected = int(key) - 1
                if sheet.is_in_words:
                    return
                if sheet.question.allows_several:
                    sheet.chosen ^= {sheet.selected}
                else:
                    self._confirm(sheet)
            case _:
                pass

    def _confirm(self, sheet: _Sheet) -> None:
        """Confirm the answer and go on to the next open question, or end."""
        if not sheet.confirm():
            self._misses_answer = True
            return
        unanswered = [at for at, each in enumerate(self._sheets) if not each.is_answered]
        if unanswered:
            self._turn_to(next((at for at in unanswered if at > self._at), unanswered[0]))
        else:
            self.answer = tuple(each.answer for each in self._sheets)

    def _go(self, step: int) -> None:
        self._turn_to(min(max(self._at + step, 0), len(self._sheets) - 1))

    def _turn_to(self, at: int) -> None:
        self._at, self._page = at, Page()

    def _progress(self, width: int, theme: Theme) -> str:
        """Return the headers of all questions if they fit, else that of the current one."""
        names = [clean_line(sheet.question.header) for sheet in self._sheets]
        tabs = [f"{'✓ ' if sheet.is_answered else ''}{name}" for sheet, name in zip(self._sheets, names, strict=True)]
        if cell_width(f"? {' · '.join(tabs)}") > width:
            place = f"{self._at + 1}/{len(names)} " if len(names) > 1 else ""
            return theme.paint("question", cut(f"? {place}{names[self._at]}", width))
        painted = [theme.paint("question" if at == self._at else "dim", tab) for at, tab in enumerate(tabs)]
        return f"{theme.paint('question', '?')} {' · '.join(painted)}"

    def _choice_rows(self, sheet: _Sheet, at: int, width: int, theme: Theme) -> list[str]:
        choice, is_selected = sheet.question.choices[at], at == sheet.selected
        mark = _mark(sheet, at)
        room = width - cell_width(mark)
        labels = self._folded(wrap_text(prose(choice.label), room), _LABEL_ROWS if is_selected else 1, room)
        details = wrap_text(prose(choice.description), room) if choice.description.strip() else []
        details = self._folded(details, _DETAIL_ROWS if is_selected else 1, room)
        indent = " " * cell_width(mark)
        rows = [f"{indent if number else mark}{label}" for number, label in enumerate(labels)]
        painted = [theme.paint("accent", row) if is_selected else row for row in rows]
        return [*painted, *(theme.paint("dim", f"{indent}{row}") for row in details)]

    def _folded(self, rows: list[str], most: int, width: int, ending: str = " …") -> list[str]:
        """Return the first rows, with an ending if some are left out."""
        if len(rows) <= most or not self._is_folded:
            return rows
        return [*rows[: most - 1], break_line(rows[most - 1], width - len(ending))[0] + ending]

    def _hint(self, sheet: _Sheet, width: int) -> str:
        several = sheet.question.allows_several
        if self._misses_answer:
            return "choose one with space, or write" if several and not sheet.is_in_words else "nothing is written yet"
        keys = [("space chooses", 1), ("enter goes on", 2)] if several else [("enter answers", 1)]
        back = [("tab and shift+tab turn", 3)] if len(self._sheets) > 1 else []
        return fit_parts([*keys, ("esc declines", 0), *back], width, ", ")


def _shown_part(text: str) -> str:
    return "\n       ".join(prose(text).split("\n"))


def _mark(sheet: _Sheet, at: int) -> str:
    """Return the mark before the choice `at`, or before the user's own words."""
    is_words = at == len(sheet.question.choices)
    pointer = "❯" if at == sheet.selected else " "
    is_chosen = bool(sheet.words.text.strip()) if is_words else at in sheet.chosen
    if sheet.question.allows_several:
        return f"{pointer} {at + 1}. [{'x' if is_chosen else ' '}] "
    is_answer = sheet.is_answered and (not sheet.chosen if is_words else is_chosen)
    return f"{pointer} {at + 1}. {'✓ ' if is_answer else ''}"
