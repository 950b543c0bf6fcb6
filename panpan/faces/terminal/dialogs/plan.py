"""The question whether a plan is carried out."""

from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Literal, TypeAlias

from panpan.faces.terminal.dialogs.dialog import QUIET_S, LineEditor, Page, Quiet, prose
from panpan.faces.terminal.rendering.cells import broken, cut, fitted, wrapped
from panpan.faces.terminal.rendering.text_rows import markdown_rows
from panpan.faces.terminal.screen.theme import Theme
from panpan.types.dataclass import dataclass
from panpan.types.permission import PermissionMode, PlanApproved, PlanProposal, PlanRejected

_FEWEST_ROWS = 4
"""Of the plan; where there are fewer, the choices stand side by side."""
_MARK_CELLS = 5

_Meaning: TypeAlias = PermissionMode | Literal["edit", "tell"]


@dataclass(frozen=True, slots=True)
class WantsToEdit:
    """The user wants to change the plan in his editor first."""


PlanDialogAnswer: TypeAlias = PlanApproved | PlanRejected | WantsToEdit


@dataclass(frozen=True, slots=True)
class _Choice:
    number: int
    meaning: _Meaning
    key: str
    text: str
    short: str


_CHOICES: Mapping[_Meaning, tuple[str, str, str]] = {
    "default": ("y", "Yes, and ask before changes (y)", "Yes (y)"),
    "acceptEdits": ("a", "Yes, and change files of the workspace unasked (a)", "Accept edits (a)"),
    "dontAsk": ("d", "Yes, in the mode dontAsk, as before (d)", "Don't ask (d)"),
    "bypassPermissions": ("b", "Yes, in the mode bypassPermissions, as before (b)", "Bypass (b)"),
    "edit": ("e", "Edit the plan in your editor first (e)", "Edit (e)"),
    "tell": ("t", "No, and tell the model what should be otherwise (t)", "No, tell (t)"),
}


class PlanDialog:
    """Shows a plan, and asks whether it is carried out, and in which mode.

    As with a permission, only a deliberate key says yes: nothing is selected at first, a paste answers nothing, and
    where a part of the plan has not been on the screen, the first "yes" says so and only the next one counts.

    Args:
        proposal: The plan.
        file: Where it is kept, as people know it.
        note: What went wrong with editing it; empty where nothing did.
        room: Returns how many rows there are for the dialog; asked at each drawing.
        clock: Returns seconds that only ever grow.
    """

    def __init__(
        self,
        proposal: PlanProposal,
        file: str,
        *,
        note: str = "",
        room: Callable[[], int],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.answer: PlanDialogAnswer | None = None
        self.cursor: tuple[int, int] | None = None
        """Row and cell of the caret in what was drawn last; None where nothing is typed."""
        self.is_telling = False
        """Whether words for the model are being typed."""
        self._text = proposal.text
        self._file = file
        self._note = note
        self._choices = _choices(proposal.modes)
        self._room = room
        self._page = Page()
        self._drawn: tuple[int, Theme] | None = None
        self._rows: Sequence[str] = ()
        self._selected: int | None = None
        self._warned_for: _Meaning | None = None
        self._warning_quiet = Quiet(clock)
        self._words = LineEditor()

    def lay_out(self, width: int, theme: Theme) -> None:
        """Make the rows of the plan, which may take a moment where it is long; `lines` does what is left."""
        if self._drawn != (width, theme):  # it may be drawn ten times a second
            self._drawn, self._rows = (width, theme), markdown_rows(self._text, width - 2, theme)

    def lines(self, width: int, theme: Theme) -> Sequence[str]:
        """Return the plan, or the part of it that has room, and the answers."""
        self.lay_out(width, theme)
        head = [theme.paint("question", cut("? Is this the plan?", width))]
        foot = self._foot(width, theme, is_terse=False)
        if (room := self._room() - len(head) - len(foot)) < min(len(self._rows), _FEWEST_ROWS) + 1:
            foot = self._foot(width, theme, is_terse=True)
            room = self._room() - len(head) - len(foot)
        size = len(self._rows) if len(self._rows) <= room else max(room - 1, 1)
        body = [f"  {row}" for row in self._page.of(self._rows, size)]
        if self._page.is_cut:
            body.append(theme.paint("warn", cut(f"  {self._page.note(is_folded=False)}", width)))
        self.cursor = None
        if self.is_telling:
            self.cursor = (len(head) + len(body) + len(foot) - 2, 2 + self._words.row(width - 2)[1])
        return [*head, *body, *foot]

    def was_drawn(self) -> None:
        """What `lines` returned last is on the screen."""
        self._page.was_drawn()
        if self._warned_for is not None:
            self._warning_quiet.begin()

    def takes(self, key: str) -> bool:
        """Return whether a key means something here."""
        is_answer = any(key.lower() == choice.key or key == str(choice.number) for choice in self._choices)
        return len(key) > 1 or self.is_telling or is_answer

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
                self.answer = PlanRejected()
            case "up" | "s-tab":
                self._selected = ((self._selected or 0) - 1) % len(self._choices)
            case "down" | "tab":
                self._selected = 0 if self._selected is None else (self._selected + 1) % len(self._choices)
            case "pagedown" | "pageup":
                self._page.turn(key)
            case _:
                for choice in self._choices:
                    if key.lower() == choice.key or key == str(choice.number):
                        self._choose(choice.meaning)
                        return
        self._warned_for = None

    def paste(self, text: str) -> bool:
        """Type pasted text into the words for the model, and return whether they are being typed; answers nothing."""
        is_typed = self.answer is None and self.is_telling
        if is_typed:
            self._words.insert(text)
        return is_typed

    def _choose(self, meaning: _Meaning) -> None:
        match meaning:
            case "edit":
                self.answer = WantsToEdit()
            case "tell":
                self.is_telling, self._warned_for = True, None
            case _ if self._page.was_all_seen:
                self.answer = PlanApproved(meaning)
            case _ if self._warned_for != meaning:
                self._warned_for = meaning
                self._warning_quiet.end()
            case _ if self._warning_quiet.has_lasted(QUIET_S):
                self.answer = PlanApproved(meaning)
            case _:  # nobody can have read the warning yet
                self._warning_quiet.restart()

    def _press_in_words(self, key: str) -> None:
        match key:
            case "enter":
                self.answer = PlanRejected(self._words.text.strip())
            case "escape" | "c-c":
                self.is_telling = False  # what was typed stays
            case "pagedown" | "pageup":
                self._page.turn(key)
            case _:
                self._words.press(key)

    def _foot(self, width: int, theme: Theme, *, is_terse: bool) -> list[str]:
        gap = [] if is_terse else [""]
        if self.is_telling:
            keys = fitted([("enter sends it", 1), ("esc goes back", 0)], width - 2, ", ")
            title = [] if is_terse else [cut("  What should be otherwise?", width)]
            words = f"{theme.paint('accent', '❯')} {self._words.row(width - 2)[0]}"
            return [*gap, *title, words, theme.paint("dim", cut(f"  {keys}", width))]
        rows = self._terse_rows(width, theme) if is_terse else self._choice_rows(width, theme)
        if self._warned_for is not None:
            unread = "Not all of it has been on the screen. The same key again approves it all the same."
            return [*gap, *rows, *(theme.paint("warn", row) for row in wrapped(unread, width))]
        if self._note:
            return [*gap, *rows, theme.paint("warn", cut(f"  {' '.join(prose(self._note).split())}", width))]
        hint = fitted(
            [("esc ends the turn, plan mode stays", 0), (f"the plan is in {prose(self._file)}", 1)], width - 2, "; "
        )
        return [*gap, *rows, *([] if is_terse else [theme.paint("dim", cut(f"  {hint}", width))])]

    def _choice_rows(self, width: int, theme: Theme) -> list[str]:
        rows: list[str] = []
        for index, choice in enumerate(self._choices):
            is_selected = index == self._selected
            first, *more = wrapped(f"{choice.number}. {choice.text}", width - _MARK_CELLS)
            text = [f"{'❯' if is_selected else ' '} {first}", *(" " * _MARK_CELLS + row for row in more)]
            rows += [theme.paint("accent", row) if is_selected else row for row in text]
        return rows

    def _terse_rows(self, width: int, theme: Theme) -> list[str]:
        """Return the choices in few words, as many on a row as fit."""
        texts = [
            f"{'❯' if index == self._selected else ' '} {choice.number}. {choice.short}"
            for index, choice in enumerate(self._choices)
        ]
        rows = [texts[0]]
        for text in texts[1:]:
            if len(rows[-1]) + 2 + len(text) <= width:
                rows[-1] += f"  {text}"
            else:
                rows.append(text)
        return [part for row in rows for part in broken(row, width)]


def _choices(modes: Sequence[PermissionMode]) -> Sequence[_Choice]:
    meanings: list[_Meaning] = [*(mode for mode in modes if mode in _CHOICES), "edit", "tell"]
    return [_Choice(number, meaning, *_CHOICES[meaning]) for number, meaning in enumerate(meanings, 1)]
