"""Puts questions of tools and permission questions to the user, as dialogs."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import monotonic

from anyio import get_cancelled_exc_class, to_thread

from panpan.faces.terminal.dialogs.dialog import NARROWEST
from panpan.faces.terminal.dialogs.permission import PermissionDialog
from panpan.faces.terminal.dialogs.plan import PlanDialog, WantsToEdit
from panpan.faces.terminal.dialogs.questions import Declined, QuestionsDialog
from panpan.faces.terminal.rendering.displays import diff_lines
from panpan.faces.terminal.screen.external_program import EditorFailed
from panpan.faces.terminal.screen.screen import Screen
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.turn_text import WaitingTime
from panpan.types.permission import (
    PermissionAnswer,
    PermissionQuestion,
    PlanAnswer,
    PlanEdited,
    PlanProposal,
    PlanRejected,
    UserAnswer,
    UserQuestion,
)

_INDENT = 2
"""Cells that the dialog's indent takes from a row."""


class DialogAskers:
    """Implementation of `Asker` on the terminal; a session gets it before there is a screen, and `shown_by` adds one.

    `clock` is a monotonic clock in seconds.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.waiting = WaitingTime(clock)
        self._screen: Screen | None = None
        self._shown: Callable[[Path], str] = str
        self._open: list[str] = []
        """Ids of the calls with an open permission question; may repeat, since each agent numbers its own."""

    @property
    def asked_about(self) -> Sequence[str]:
        """Ids of the calls with an open permission question, shown or still waiting."""
        return self._open

    @contextmanager
    def shown_by(self, screen: Screen, shown: Callable[[Path], str] = str) -> Iterator[None]:
        """Show questions on a screen inside the block; outside of it, every question is refused.

        Args:
            screen: Shows the questions.
            shown: Returns a path for display.
        """
        self._screen, self._shown = screen, shown
        try:
            yield
        finally:
            self._screen = None

    async def permission(self, question: PermissionQuestion) -> PermissionAnswer:
        if (screen := self._screen) is None:
            return PermissionAnswer(is_allowed=False)
        screen.question_waits()
        self._open.append(question.tool_use_id)
        try:
            with self.waiting.counted():
                dialog = await to_thread.run_sync(self._permission_dialog, question, screen, abandon_on_cancel=True)
                return await screen.ask(dialog)
        finally:
            self._open.remove(question.tool_use_id)

    def _permission_dialog(self, question: PermissionQuestion, screen: Screen) -> PermissionDialog:
        """Return the dialog with its rows laid out; runs in a thread, since there may be many."""
        width, theme = screen.width, screen.theme
        preview = _preview_rows(question, width - _INDENT, theme)
        ends_turn = partial(screen.view.is_of_turn, question)
        dialog = PermissionDialog(question, preview, room=lambda: screen.room, ends_turn=ends_turn)
        if width >= NARROWEST:
            dialog.lay_out(width, theme)
        return dialog

    async def user(self, questions: Sequence[UserQuestion]) -> Sequence[UserAnswer] | None:
        if (screen := self._screen) is None:
            return None
        screen.question_waits()
        dialog = QuestionsDialog(questions, room=lambda: screen.room)
        with self.waiting.counted():
            answer = await screen.ask(dialog)
        return None if isinstance(answer, Declined) else answer

    async def plan(self, proposal: PlanProposal) -> PlanAnswer:
        """Ask the user to approve a plan; implements `PlanAsker`."""
        if (screen := self._screen) is None:
            return PlanRejected()
        screen.question_waits()
        with self.waiting.counted():
            try:
                return await _plan_answer(proposal, self._shown(proposal.file), screen)
            except get_cancelled_exc_class():
                screen.view.keep_plan(proposal.text)  # no result of the call will show it
                raise


async def _plan_answer(proposal: PlanProposal, file: str, screen: Screen) -> PlanAnswer:
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


def _plan_dialog(proposal: PlanProposal, file: str, note: str, screen: Screen) -> PlanDialog:
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
