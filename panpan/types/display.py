"""Shapes of what tools and commands show to people: text, diff, checklist and table.

Faces choose how to draw them, and know no tool by its name. The model never sees them, so that a long diff costs no
tokens.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from panpan.types.content import Frozen
from panpan.types.role import Role


class Span(Frozen):
    """A piece of text with one meaning."""

    text: str
    role: Role | None = None
    without_hues: str = ""
    """Text to show in its place where roles have no colours that tell them apart; empty: the same."""


class TextDisplay(Frozen):
    """Words, of any origin; they are wrapped where they are shown."""

    type: Literal["text"] = "text"
    spans: tuple[Span, ...]

    @property
    def text(self) -> str:
        """The words alone."""
        return "".join(span.text for span in self.spans)


class TableDisplay(Frozen):
    """Rows of cells. Two columns without a header are names and what belongs to each."""

    type: Literal["table"] = "table"
    rows: tuple[tuple[str, ...], ...]
    """Each as long as the others, and as the header if there is one."""
    header: tuple[str, ...] = ()


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
    """True if the file did not exist before."""
    is_deleted: bool = False
    """True if the file does not exist any more."""
    is_cut: bool = False
    """True if `diff` leaves out a part of the change."""


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
    """True if it is what the run was for, in place of the model's answer."""


ItemStatus: TypeAlias = Literal["pending", "in_progress", "completed"]


class ChecklistItem(Frozen):
    """One thing to do."""

    content: str
    """Order to do it: "Run the tests"."""
    active_form: str
    """The same while it is done: "Running the tests"."""
    status: ItemStatus = "pending"
    id: str = ""
    """Stays the same while the content does; empty for an item that is only shown."""


class ChecklistDisplay(Frozen):
    """A checklist, whole."""

    type: Literal["todos"] = "todos"
    todos: tuple[ChecklistItem, ...]
    """Its items; logs know them by this name."""


Display: TypeAlias = Annotated[
    TextDisplay | DiffDisplay | ChecklistDisplay | TableDisplay | SummaryDisplay | PlanDisplay,
    Field(discriminator="type"),
]
"""Shape that a tool result or a command shows. A summary is one line of text, and a plan is text with its verdict."""

StatusItem: TypeAlias = TextDisplay | ChecklistDisplay
"""Shape that a feature shows as long as it counts: a few words, such as "2 tasks running", or a checklist."""


def text(words: str, role: Role | None = None) -> TextDisplay:
    """Return words of one meaning."""
    return TextDisplay(spans=(Span(text=words, role=role),))


def table(rows: Iterable[Sequence[str]], header: Sequence[str] = ()) -> TableDisplay:
    """Return a table."""
    return TableDisplay(rows=tuple(map(tuple, rows)), header=tuple(header))


def checklist_counts(items: Sequence[ChecklistItem]) -> str:
    """Return how far a list has come, as "2 of 5 done"; where it is empty, that."""
    done = sum(item.status == "completed" for item in items)
    return f"{done} of {len(items)} done" if items else "nothing to do"
