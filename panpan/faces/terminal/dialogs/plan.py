"""Dialog for the approval of a plan."""

from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Literal, TypeAlias

from panpan.faces.terminal.dialogs.choice_dialog import UNREAD, Choice, ChoiceDialog
from panpan.faces.terminal.dialogs.dialog import prose
from panpan.faces.terminal.rendering.cells import break_line, cut, fit_parts, markdown_rows, wrap_text
from panpan.faces.terminal.screen.theme import Theme
from panpan.types.dataclass import dataclass
from panpan.types.permission import PermissionMode, PlanApproved, PlanProposal, PlanRejected

_FEWEST_ROWS = 4
"""Fewest rows of the plan; if there is room for fewer, the choices are shown side by side."""

_Meaning: TypeAlias = PermissionMode | Literal["edit", "tell"]


@dataclass(frozen=True, slots=True)
class WantsToEdit:
    """Answer of a user who wants to change the plan in their editor first."""


PlanDialogAnswer: TypeAlias = PlanApproved | PlanRejected | WantsToEdit


_CHOICES: Mapping[_Meaning, tuple[str, str, str]] = {
    "default": ("y", "Yes, and ask before edits (y)", "Yes (y)"),
    "acceptEdits": ("a", "Yes, and accept edits automatically (a)", "Accept edits (a)"),
    "auto": ("m", "Yes, in auto mode, as before (m)", "Auto (m)"),
    "dontAsk": ("d", "Yes, in the mode dontAsk, as before (d)", "Don't ask (d)"),
    "bypassPermissions": ("b", "Yes, in the mode bypassPermissions, as before (b)", "Bypass (b)"),
    "edit": ("e", "Edit the plan in your editor first (e)", "Edit (e)"),
    "tell": ("t", "No, tell it what to change (t)", "No, tell (t)"),
}


class PlanDialog(ChoiceDialog[PlanDialogAnswer, _Meaning]):
    """Shows a plan and asks for approval and for the permission mode of the work.

    Args:
        proposal: The plan.
        file: Path of the plan for display.
        note: Problem with editing it, or "".
        room: Returns the rows that the dialog may take; called at each drawing.
        clock: Monotonic clock in seconds.
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
        super().__init__(_choices(proposal.modes), clock)
        self._text = proposal.text
        self._file = file
        self._note = note
        self._room = room
        self._drawn: tuple[int, Theme] | None = None
        self._rows: Sequence[str] = ()

    def lay_out(self, width: int, theme: Theme) -> None:
        """Lay out the rows of the plan, which may take a moment if it is long; `lines` does the rest."""
        if self._drawn != (width, theme):  # it may be drawn ten times a second
            self._drawn, self._rows = (width, theme), markdown_rows(self._text, width - 2, theme)

    def lines(self, width: int, theme: Theme) -> Sequence[str]:
        """Return the plan, or the part of it that fits, and the answers."""
        self.lay_out(width, theme)
        head = [theme.paint("question", cut("? Approve this plan?", width))]
        foot = self._foot(width, theme, is_terse=False)
        if (room := self._room() - len(head) - len(foot)) < min(len(self._rows), _FEWEST_ROWS) + 1:
            foot = self._foot(width, theme, is_terse=True)
            room = self._room() - len(head) - len(foot)
        size = len(self._rows) if len(self._rows) <= room else max(room - 1, 1)
        body = self._shown_rows(self._rows, size, width, theme, is_folded=False)
        self.cursor = None
        if self._is_telling:
            self.cursor = (len(head) + len(body) + len(foot) - 2, 2 + self._words.row(width - 2)[1])
        return [*head, *body, *foot]

    def as_lines(self, width: int, theme: Theme) -> Sequence[str]:
        self.lay_out(width, theme)
        notes = [prose(note) for note in (self._note, f"saved to {self._file}") if note]
        hint = "n = no, keep planning; or type what to change: "
        return self._lines_of([theme.paint("question", "? Approve this plan?")], [*self._rows, *notes], hint)

    def _choose(self, meaning: _Meaning) -> None:
        match meaning:
            case "edit":
                self.answer = WantsToEdit()
            case "tell":
                self._tell()
            case _:
                self._allow(meaning, PlanApproved(meaning))

    def _refuse(self, words: str) -> None:
        self.answer = PlanRejected(words)

    def _foot(self, width: int, theme: Theme, *, is_terse: bool) -> list[str]:
        gap = [] if is_terse else [""]
        if self._is_telling:
            keys = fit_parts([("enter sends it", 1), ("esc goes back", 0)], width - 2, ", ")
            title = [] if is_terse else [cut("  What should change?", width)]
            words = f"{theme.paint('accent', '❯')} {self._words.row(width - 2)[0]}"
            return [*gap, *title, words, theme.paint("dim", cut(f"  {keys}", width))]
        rows = self._terse_rows(width) if is_terse else self._choice_rows(width, theme)
        if self._warned_for is not None:
            return [*gap, *rows, *(theme.paint("warn", row) for row in wrap_text(UNREAD, width))]
        if self._note:
            return [*gap, *rows, theme.paint("warn", cut(f"  {' '.join(prose(self._note).split())}", width))]
        hint = fit_parts([("esc: stop, stay in plan mode", 0), (f"saved to {prose(self._file)}", 1)], width - 2, " · ")
        return [*gap, *rows, *([] if is_terse else [theme.paint("dim", cut(f"  {hint}", width))])]

    def _choice_rows(self, width: int, theme: Theme) -> list[str]:
        choices = ((choice, choice.meaning == self._selected) for choice in self._choices)
        return [
            row for one, is_selected in choices for row in one.rows(wrap_text, width, theme, is_selected=is_selected)
        ]

    def _terse_rows(self, width: int) -> list[str]:
        """Return the short labels, as many in a row as fit."""
        rows = list[str]()
        for choice in self._choices:
            text = f"{'❯' if choice.meaning == self._selected else ' '} {choice.number}. {choice.short}"
            if rows and len(rows[-1]) + 2 + len(text) <= width:
                rows[-1] += f"  {text}"
            else:
                rows.append(text)
        return [part for row in rows for part in break_line(row, width)]


def _choices(modes: Sequence[PermissionMode]) -> Sequence[Choice[_Meaning]]:
    meanings: list[_Meaning] = [*(mode for mode in modes if mode in _CHOICES), "edit", "tell"]
    return [Choice(number, meaning, *_CHOICES[meaning]) for number, meaning in enumerate(meanings, 1)]
