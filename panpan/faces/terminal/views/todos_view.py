"""The checklist above the input: what the model has set out to do, as long as something of it is open."""

from collections.abc import Callable, Sequence

from panpan.capabilities.todos.todo import Todo, todo_counts
from panpan.faces.terminal.rendering.cells import cut
from panpan.faces.terminal.rendering.todos import short_todo_lines
from panpan.faces.terminal.screen.theme import Theme
from panpan.system.text.terminal_text import clean_line

_MOST_ROWS = 8
_SHARE = 3
"""At most one part in so many of the rows that there are is for it."""


class TodosView:
    """Shows the list of a session.

    Args:
        todos: Returns the list as it is.
    """

    def __init__(self, todos: Callable[[], Sequence[Todo]]) -> None:
        self._todos = todos
        self._is_hidden = False

    @property
    def doing(self) -> str:
        """What the model says that it is doing; empty where it says nothing."""
        return next((clean_line(todo.active_form) for todo in self._todos() if todo.status == "in_progress"), "")

    def lines(self, width: int, room: int, theme: Theme) -> Sequence[str]:
        """Return the checklist, or nothing where it is hidden or all of it is done.

        Args:
            width: Cells of a row.
            room: Rows there are for all that stands above the input.
            theme: How it looks.
        """
        todos, most = self._todos(), min(_MOST_ROWS, room // _SHARE - 1)
        if self._is_hidden or most < 1 or all(todo.status == "completed" for todo in todos):
            return ()
        rows = short_todo_lines(todos, most, max(width - 2, 4), theme)
        heading = theme.paint("dim", cut(f"  {todo_counts(todos)} · ctrl+t hides", width))
        return [heading, *(cut(f"  {row}", width) for row in rows)]

    def toggle(self) -> str:
        """Hide the checklist, or show it again; return what the user should know."""
        todos = self._todos()
        if not todos:
            return "the model has no todos at the moment"
        if all(todo.status == "completed" for todo in todos):
            return f"{todo_counts(todos)}; /todos shows them"
        self._is_hidden = not self._is_hidden
        return "ctrl+t shows the todos again" if self._is_hidden else ""
