"""The todos of the model as a checklist."""

from collections.abc import Mapping, Sequence
from typing import get_args

from panpan.faces.terminal.rendering.cells import cut, wrapped
from panpan.faces.terminal.screen.theme import Role, Theme
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.content import ToolUseBlock
from panpan.types.todo import TodoDraft, TodoStatus

_MARKS: Mapping[TodoStatus, tuple[str, Role | None]] = {
    "pending": ("☐", None),
    "in_progress": ("◐", "strong"),
    "completed": ("☑", "dim"),
}


def todo_lines(todos: Sequence[TodoDraft], width: int, theme: Theme) -> list[str]:
    """Return a checklist, with all of each todo.

    Args:
        todos: The list; what is being done is shown as `active_form`.
        width: Cells of a row, 4 or more.
        theme: How it looks.
    """
    rows: list[str] = []
    for todo in todos:
        mark, role = _MARKS[todo.status]
        for index, row in enumerate(wrapped(_words(todo), width - 2)):
            row = f"{'  ' if index else f'{mark} '}{row}".rstrip(" ")
            rows.append(theme.paint(role, row) if role else row)
    return rows


def short_todo_lines(todos: Sequence[TodoDraft], most: int, width: int, theme: Theme) -> list[str]:
    """Return a checklist of at most `most` rows, a row a todo: what is being done and around it; others are counted.

    Args:
        todos: The list.
        most: Rows, 1 or more.
        width: Cells of a row, 4 or more.
        theme: How it looks.
    """
    if len(todos) <= most:
        shown, left_out = todos, ""
    else:
        begin = next((place for place, todo in enumerate(todos) if todo.status == "in_progress"), None)
        if begin is None:
            begin = next((place for place, todo in enumerate(todos) if todo.status == "pending"), len(todos))
        begin = max(min(begin - (most > 2), len(todos) - most + 1), 0)
        shown = todos[begin : begin + most - 1]
        left_out = _left_out([*todos[:begin], *todos[begin + most - 1 :]])
    rows: list[str] = []
    for todo in shown:
        mark, role = _MARKS[todo.status]
        row = cut(f"{mark} {_words(todo)}", width)
        rows.append(theme.paint(role, row) if role else row)
    return [*rows, theme.paint("dim", cut(left_out, width))] if left_out else rows


def todos_of(use: ToolUseBlock | None) -> Sequence[TodoDraft]:
    """Return the todos that a call wrote whose result does not tell them, as in a transcript of another agent."""
    written = use.input.get("todos") if use is not None and use.name == "TodoWrite" else None
    items = [item for item in written if isinstance(item, Mapping)] if isinstance(written, list) else []
    drafts = []
    for item in items:
        content = str(item.get("content", ""))
        status = item.get("status")
        drafts.append(
            TodoDraft(
                content=content,
                active_form=str(item.get("activeForm") or content),
                status=status if status in get_args(TodoStatus) else "pending",
            )
        )
    return drafts


def _words(todo: TodoDraft) -> str:
    text = todo.active_form if todo.status == "in_progress" else todo.content
    return " ".join(clean_for_terminal(text).split())


def _left_out(todos: Sequence[TodoDraft]) -> str:
    """Return the row that counts what is not shown."""
    done = sum(todo.status == "completed" for todo in todos)
    parts = [f"{done} done"] if done else []
    parts += [f"{len(todos) - done} to do"] if len(todos) > done else []
    return f"… and {', '.join(parts)}"
