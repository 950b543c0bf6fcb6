"""What stands around the input while a session is shown, and whether that changes by itself.

The rule: a question stands whole; what the turn is doing leaves it the room, and so does the queue, but for one row.
"""

from collections.abc import Sequence

from panpan.faces.terminal.desk import Desk
from panpan.faces.terminal.dialogs.dialog_queue import DialogQueue
from panpan.faces.terminal.input.passing_hint import PassingHint
from panpan.faces.terminal.rendering.cells import cut
from panpan.faces.terminal.rendering.fitting import fitted
from panpan.faces.terminal.views.queue_rows import queue_row, queue_rows
from panpan.faces.terminal.views.status_view import StatusView
from panpan.faces.terminal.views.todos_view import TodosView
from panpan.faces.terminal.views.turn_view import TurnView
from panpan.faces.terminal.work import Work
from panpan.session.session import Session
from panpan.system.text.terminal_text import clean_for_terminal


class AroundInput:
    """The rows above and below the input, each view with SGR sequences and at most as wide as it is told.

    Args:
        session: What is shown.
        desk: Where.
        dialogs: Those that ask the user.
        view: The turns.
        todos: What the model has set out to do.
        work: What runs and what waits.
        status: The status line.
        hint: What stands in its place for a moment.
    """

    def __init__(
        self,
        session: Session,
        desk: Desk,
        *,
        dialogs: DialogQueue,
        view: TurnView,
        todos: TodosView,
        work: Work,
        status: StatusView,
        hint: PassingHint,
    ) -> None:
        self._session = session
        self._desk = desk
        self._dialogs = dialogs
        self._view = view
        self._todos = todos
        self._work = work
        self._status = status
        self._hint = hint

    def live(self, width: int) -> Sequence[str]:
        """Return what the turn and the user's own command are doing, the last rows that have room, and the todos."""
        rows = [*self._view.live_lines(width), *self._work.shell_lines(width)]
        screen = self._desk.screen
        todos: Sequence[str] = ()
        if dialog := self.dialog(width):
            room = max(screen.room_for_dialog - len(dialog) - len(self.queue(width)), 0)
        else:
            room = max(screen.room - len(self.queue(width)), 0)
            todos = self._todos.lines(width, room, self._desk.theme)
            room -= len(todos)
        return [*rows[len(rows) - min(len(rows), room) :], *todos]

    def dialog(self, width: int) -> Sequence[str]:
        """Return the question that waits."""
        return self._dialogs.lines(width, self._desk.screen.room_for_dialog, self._desk.theme)

    def queue(self, width: int) -> Sequence[str]:
        """Return what was sent and is not delivered; beside a question one row, where that leaves room for it."""
        waiting, theme = self._work.waiting, self._desk.theme
        if self._dialogs.current is None:
            return queue_rows(waiting, width, theme)
        has_room = waiting and len(self.dialog(width)) < self._desk.screen.room_for_dialog
        return [queue_row(len(waiting), width, theme)] if has_room else ()

    def status(self, width: int) -> Sequence[str]:
        """Return the hint of the moment, or the status line."""
        theme = self._desk.theme
        if hint := self._hint.text:
            return [theme.paint("warn", cut(f"  {clean_for_terminal(hint)}", width))]
        return self._status.lines(width, theme)

    def mark(self) -> str:
        """Return what stands before what is typed, two cells wide; it says plan mode."""
        theme = self._desk.theme
        if self._desk.draft.text.startswith("!"):
            return theme.paint("warn", "❯ ")  # the text has the exclamation mark
        if self._session.permission_mode == "plan":
            return theme.paint("plan", "⏸ ")
        return theme.paint("accent", "❯ ")

    def example(self) -> str:
        """Return what an empty input says where nothing was said yet."""
        if self._session.conversation.messages or self._work.is_busy:
            return ""
        keys = [("what shall be done?", 1), ("/ commands", 2), ("@ files", 3), ("! shell", 4), ("? keys", 0)]
        return self._desk.theme.paint("dim", fitted(keys, self._desk.width - 3, "  "))

    def is_moving(self) -> bool:
        """Return whether any of it changes by itself; nothing does while only the user is waited for."""
        return any([self._work.is_moving, self._hint.is_moving(), self._dialogs.is_moving()])  # two of them remember
