"""What a tool shows to people, beside what it tells the model.

Faces choose how to draw these; the model never sees them, so that a long diff costs no tokens.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from panpan.types.content import Frozen
from panpan.types.todo import Todo


class FileDiff(Frozen):
    """One file before and after, as a unified diff."""

    path: str
    """As shown to the user: relative to the workspace where it lies inside."""
    diff: str
    """Unified diff with three lines of context; empty where nothing that has lines changed."""
    added: int
    """Lines added."""
    removed: int
    """Lines removed."""
    is_new: bool = False
    """Whether the file did not exist before."""
    is_deleted: bool = False
    """Whether the file does not exist any more."""
    is_cut: bool = False
    """Whether `diff` leaves out a part of the change."""


class DiffDisplay(Frozen):
    """The files that a call changed."""

    type: Literal["diff"] = "diff"
    files: tuple[FileDiff, ...]
    notes: tuple[str, ...] = ()
    """What came of the change, a line each."""


class SummaryDisplay(Frozen):
    """One line that says what a call found or did, such as "248 lines" or "3 files"."""

    type: Literal["summary"] = "summary"
    text: str


class PlanDisplay(Frozen):
    """A plan that the user approved or not, or that is the result of a run in which nobody is there to approve it."""

    type: Literal["plan"] = "plan"
    text: str
    """Markdown."""
    summary: str
    """What became of it, on one line."""
    is_result: bool = False
    """Whether it is what the run was for, in place of the model's answer."""


class TodoDisplay(Frozen):
    """The todo list as a call has left it, whole."""

    type: Literal["todos"] = "todos"
    todos: tuple[Todo, ...]


Display: TypeAlias = Annotated[DiffDisplay | SummaryDisplay | PlanDisplay | TodoDisplay, Field(discriminator="type")]
"""What a tool result may show."""
