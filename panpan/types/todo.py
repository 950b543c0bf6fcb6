"""A todo list: what the model has set out to do, for the user to see."""

from typing import Literal, TypeAlias

from panpan.types.content import Frozen

TodoStatus: TypeAlias = Literal["pending", "in_progress", "completed"]


class Todo(Frozen):
    """One thing to do."""

    id: str
    """Stays the same while the content does."""
    content: str
    """What is to be done, as an order: "Run the tests"."""
    active_form: str
    """The same while it is done: "Running the tests"."""
    status: TodoStatus = "pending"
