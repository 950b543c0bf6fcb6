"""A todo list: what the model has set out to do, for the user to see."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from panpan.types.content import Frozen

TodoStatus: TypeAlias = Literal["pending", "in_progress", "completed"]


class TodoDraft(Frozen):
    """One thing to do, as somebody wants it in the list."""

    content: str
    """What is to be done, as an order: "Run the tests"."""
    active_form: str
    """The same while it is done: "Running the tests"."""
    status: TodoStatus = "pending"


class Todo(TodoDraft):
    """One thing to do."""

    id: str
    """Stays the same while the content does."""


def todo_counts(todos: Sequence[TodoDraft]) -> str:
    """Return how far a list has come, as "2 of 5 done"; where it is empty, that."""
    done = sum(todo.status == "completed" for todo in todos)
    return f"{done} of {len(todos)} done" if todos else "nothing to do"
