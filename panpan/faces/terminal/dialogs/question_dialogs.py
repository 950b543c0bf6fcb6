"""Questions of a session as dialogs on the terminal."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from anyio import to_thread

from panpan.faces.terminal.dialogs.dialog import NARROWEST
from panpan.faces.terminal.dialogs.permission import PermissionDialog
from panpan.faces.terminal.dialogs.plan import PlanDialog, WantsToEdit
from panpan.faces.terminal.dialogs.questions import Declined, QuestionsDialog
from panpan.faces.terminal.rendering.displays import diff_lines
from panpan.faces.terminal.screen.external_program import EditorFailed
from panpan.faces.terminal.screen.screen import DialogScreen
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.turn_text import WaitingTime
from panpan.hub.events import Question
from panpan.hub.questions import Answer
from panpan.types.permission import PermissionQuestion, PlanAnswer, PlanEdited, PlanProposal

_INDENT = 2
"""Cells that the dialog's indent takes from a row."""


class QuestionDialogs:
    """Shows questions on a screen, each as a dialog.

    Args:
        screen: Shows them.
        waiting: Counts the time in which one waits.
        shown: Returns a path for display.
    """

    def __init__(self, screen: DialogScreen, waiting: WaitingTime, shown: Callable[[Path], str] = str) -> None:
        self._screen = screen
        self._waiting = waiting
        self._shown = shown

    async def answer_to(self, question: Question) -> Answer:
        """Ask the user and return their answer; cancellation withdraws the dialog."""
        self._screen.question_waits()
        with self._waiting.counted():
            match question:
                case PermissionQuestion():
                    dialog = await to_thread.run_sync(self._permission_dialog, question, abandon_on_cancel=True)
                    return await self._screen.ask(dialog)
                case PlanProposal():
                    return await _plan_answer(question, self._shown(question.file), self._screen)
                case _:
                    answer = await self._screen.ask(QuestionsDialog(question, room=lambda: self._screen.room))
                    return None if isinstance(answer, Declined) else answer

    def _permission_dialog(self, question: PermissionQuestion) -> PermissionDialog:
        """Return the dialog with its rows laid out; runs in a thread, since there may be many."""
        screen = self._screen
        width, theme = screen.width, screen.theme
        preview = _preview_rows(question, width - _INDENT, theme)
        ends_turn = partial(screen.view.is_of_turn, question)
        dialog = PermissionDialog(question, preview, room=lambda: screen.room, ends_turn=ends_turn)
        if width >= NARROWEST:
            dialog.lay_out(width, theme)
        return dialog


async def _plan_answer(proposal: PlanProposal, file: str, screen: DialogScreen) -> PlanAnswer:
    note = ""
    while True:
        dialog = await to_thread.run_sync(_plan_dialog, proposal, file, note, screen, abandon_on_cancel=True)
        said = await screen.ask(dialog)
        if not isinstance(said, WantsToEdit):
            return said
        edited = await screen.edited(proposal.text)
        if isinstance(edited, str) and edited.strip():
            return PlanEdited(edited)
        note = edited.reason if isinstance(edited, EditorFailed) else "the plan was empty, so the old one stays"


def _plan_dialog(proposal: PlanProposal, file: str, note: str, screen: DialogScreen) -> PlanDialog:
    """Return the dialog with its rows laid out; runs in a thread, as for a permission question."""
    width, theme = screen.width, screen.theme
    dialog = PlanDialog(proposal, file, note=note, room=lambda: screen.room)
    if width >= NARROWEST:
        dialog.lay_out(width, theme)
    return dialog


def _preview_rows(question: PermissionQuestion, width: int, theme: Theme) -> Sequence[str]:
    """Return the diffs of the change, with invisible characters spelled out; empty if the change is not known."""
    files = question.preview.files if question.preview is not None else ()
    width = max(width, NARROWEST)  # the terminal may become wider
    return [row for file in files for row in diff_lines(file, width, theme, shows_controls=True)]
