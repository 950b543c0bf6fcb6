"""Puts the questions of tools and of the gate to the user, as dialogs."""

from collections.abc import Callable, Sequence

from panpan.types.permission import PermissionAnswer, PermissionQuestion
from panpan.types.user_questions import UserAnswer, UserQuestion
from panpan.ui.repl.dialog_queue import DialogQueue
from panpan.ui.repl.dialogs.dialog import Dialog
from panpan.ui.repl.dialogs.permission import SMALLEST_ROOM, PermissionDialog
from panpan.ui.repl.dialogs.questions import Declined, QuestionsDialog
from panpan.ui.repl.rendering.diff import diff_lines
from panpan.ui.repl.theme import Theme

_NARROW = 40


class Asking:
    """The face's side of `Asker`; given to the session before there is a screen, and set up when there is one.

    Args:
        rule_place: Where "always" is kept, as it is shown.
    """

    def __init__(self, rule_place: str) -> None:
        self._rule_place = rule_place
        self.room: Callable[[], int] = lambda: SMALLEST_ROOM
        """Rows that there are for a dialog."""
        self.dialogs: DialogQueue | None = None
        self.look: Callable[[], tuple[int, Theme]] = lambda: (_NARROW, Theme("plain"))
        """Cells of a row, and how things look."""
        self.note_waiting: Callable[[], None] = lambda: None
        """Called when a question begins to wait."""

    async def permission(self, question: PermissionQuestion) -> PermissionAnswer:
        """Ask whether a call may run."""
        if self.dialogs is None:
            return PermissionAnswer(is_allowed=False)
        self.note_waiting()
        return await self.dialogs.ask(
            PermissionDialog(question, self._preview(question), self._rule_place, room=self.room)
        )

    def _preview(self, question: PermissionQuestion) -> Sequence[str]:
        """Return what would change, with what cannot be seen spelled out; empty where that is not known."""
        if question.preview is None:
            return ()
        width, theme = self.look()
        return [row for file in question.preview.files for row in diff_lines(file, width, theme, shows_controls=True)]

    async def user(self, questions: Sequence[UserQuestion]) -> Sequence[UserAnswer] | None:
        """Ask what the model wants to know."""
        if self.dialogs is None:
            return None
        self.note_waiting()
        dialog: Dialog[Sequence[UserAnswer] | Declined] = QuestionsDialog(questions)
        answer = await self.dialogs.ask(dialog)
        return None if isinstance(answer, Declined) else answer
