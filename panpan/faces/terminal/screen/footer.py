"""Rows above and below the input box of a session.

The rule: a question is shown whole. The rows of the turn give way to it, and the queue does except for one row.
"""

from collections.abc import Callable, Sequence

from panpan.faces.terminal.dialogs.dialog_queue import DialogQueue
from panpan.faces.terminal.prompt_queue import PromptQueue, Waiting
from panpan.faces.terminal.rendering.cells import cut, fit_parts
from panpan.faces.terminal.rendering.displays import short_checklist_lines
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.terminal.terminal_state import TerminalState
from panpan.faces.terminal.views.status import StatusView
from panpan.faces.terminal.views.turn_view import TurnView
from panpan.session.session import Session
from panpan.system.text.terminal_text import clean_for_terminal, clean_line
from panpan.types.content import ChecklistItem, checklist_counts

_MAX_SHOWN = 5
_MAX_READ_CHARS = 2_000


def queue_rows(waiting: Sequence[Waiting], width: int, theme: Theme) -> Sequence[str]:
    """Return a row for each waiting message, and how to take the last one back."""
    if not waiting:
        return ()
    texts = [(one.until, clean_line(one.text[:_MAX_READ_CHARS].strip().split("\n")[0])) for one in waiting[:_MAX_SHOWN]]
    rows = [cut(f"  ↳ {until}: {text}", width) for until, text in texts]
    if (hidden := len(waiting) - _MAX_SHOWN) > 0:
        rows.append(f"  … and {hidden} more")
    rows.append(cut("  alt+up takes the last one back", width))
    return [theme.paint("dim", row) for row in rows]


def queue_row(count: int, width: int, theme: Theme) -> str:
    """Return one row for all waiting messages, for little room."""
    waits = "waits" if count == 1 else "wait"
    return theme.paint("dim", cut(f"  ↳ {count} {waits}, alt+up takes the last one back", width))


SHOWN_S = 3.0


class PassingHint:
    """Holds one hint for `SHOWN_S`; `clock` is a monotonic clock in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._text = ""
        self._until_s = float("-inf")
        self._was_shown = False

    @property
    def text(self) -> str:
        return self._text if self._clock() < self._until_s else ""

    def is_moving(self) -> bool:
        """Return True if the hint is on the screen, or was at the last call and has to be removed."""
        was_shown, self._was_shown = self._was_shown, bool(self.text)
        return was_shown or self._was_shown

    def show(self, text: str) -> None:
        self._text, self._until_s = text, self._clock() + SHOWN_S


_MOST_ROWS = 8
_SHARE = 3
"""Divisor of the available rows: the checklist takes at most a third of them."""


class TodosView:
    """Shows the checklist of a session."""

    def __init__(self, todos: Callable[[], Sequence[ChecklistItem]]) -> None:
        self._todos = todos
        self._is_hidden = False
        self._before_turn: Sequence[ChecklistItem] = ()

    def turn_has_begun(self) -> None:
        """Treat the list as one of earlier turns until the model changes it."""
        self._before_turn = self._todos()

    @property
    def doing(self) -> str:
        """Text of the todo in progress; empty if there is none, or the turn has not changed the list."""
        if (todos := self._todos()) == self._before_turn:
            return ""
        return next((clean_line(todo.active_form) for todo in todos if todo.status == "in_progress"), "")

    def lines(self, width: int, room: int, theme: Theme) -> Sequence[str]:
        """Return the rows of the checklist; empty if it is hidden or all of it is done.

        `room` is the number of rows for everything above the input.
        """
        todos, most = self._todos(), min(_MOST_ROWS, room // _SHARE - 1)
        if self._is_hidden or most < 1 or all(todo.status == "completed" for todo in todos):
            return ()
        rows = short_checklist_lines(todos, most, max(width - 2, 4), theme)
        heading = theme.paint("dim", cut(f"  {checklist_counts(todos)} · ctrl+t hides", width))
        return [heading, *(cut(f"  {row}", width) for row in rows)]

    def toggle(self) -> str:
        """Hide the checklist, or show it again; return a hint for the user, or ""."""
        todos = self._todos()
        if not todos:
            return "there are no todos"
        if all(todo.status == "completed" for todo in todos):
            return f"{checklist_counts(todos)}; /todos shows them"
        self._is_hidden = not self._is_hidden
        return "ctrl+t shows the todos again" if self._is_hidden else ""


class Footer:
    """Makes the rows above and below the input, with SGR sequences and at most `width` cells wide."""

    def __init__(
        self,
        session: Session,
        state: TerminalState,
        *,
        dialogs: DialogQueue,
        view: TurnView,
        todos: TodosView,
        prompts: PromptQueue,
        status: StatusView,
        hint: PassingHint,
    ) -> None:
        self._session = session
        self._state = state
        self._dialogs = dialogs
        self._view = view
        self._todos = todos
        self._prompts = prompts
        self._status = status
        self._hint = hint

    def live(self, width: int) -> Sequence[str]:
        """Return the last rows of the turn and the user's own command that fit, and the todos."""
        rows = [*self._view.live_lines(width), *self._prompts.shell_lines(width)]
        app = self._state.app
        todos: Sequence[str] = ()
        if dialog := self.dialog(width):
            room = max(app.room_for_dialog - len(dialog) - len(self.queue(width)), 0)
        else:
            room = max(app.room - len(self.queue(width)), 0)
            todos = self._todos.lines(width, room, self._state.theme)
            room -= len(todos)
        return [*rows[len(rows) - min(len(rows), room) :], *todos]

    def dialog(self, width: int) -> Sequence[str]:
        return self._dialogs.lines(width, self._state.app.room_for_dialog, self._state.theme)

    def queue(self, width: int) -> Sequence[str]:
        """Return the rows of undelivered messages; with a question, one row if there is room for it."""
        waiting, theme = self._prompts.waiting, self._state.theme
        if self._dialogs.current is None:
            return queue_rows(waiting, width, theme)
        has_room = waiting and len(self.dialog(width)) < self._state.app.room_for_dialog
        return [queue_row(len(waiting), width, theme)] if has_room else ()

    def status(self, width: int) -> Sequence[str]:
        """Return the current hint, or the status line."""
        theme = self._state.theme
        if hint := self._hint.text:
            return [theme.paint("warn", cut(f"  {clean_for_terminal(hint)}", width))]
        return self._status.lines(width, theme)

    def mark(self) -> str:
        """Return the mark before the typed text, two cells wide; it has a sign of its own for plan mode."""
        theme = self._state.theme
        if self._state.draft.text.startswith("!"):
            return theme.paint("warn", "❯ ")  # the text has the exclamation mark
        if self._session.permission_mode == "plan":
            return theme.paint("plan", "⏸ ")
        return theme.paint("accent", "❯ ")

    def example(self) -> str:
        """Return the example text of an empty input; "" once there are messages."""
        if self._session.conversation.messages or self._prompts.is_busy:
            return ""
        keys = [
            ("Ask panpan to do something", 1),
            ("/ commands", 2),
            ("@ files", 3),
            ("! shell", 4),
            ("? shortcuts", 0),
        ]
        return self._state.theme.paint("dim", fit_parts(keys, self._state.width - 3, "  "))

    def is_moving(self) -> bool:
        """Return True if some rows change over time; they do not while the turn only waits for the user."""
        return any([self._prompts.is_moving, self._hint.is_moving(), self._dialogs.is_moving()])  # two of them remember
