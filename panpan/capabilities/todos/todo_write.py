"""TodoWrite: the list of what is still to be done, which the user sees."""

from collections.abc import AsyncGenerator, Sequence
from typing import Annotated, ClassVar, Protocol

from pydantic import AfterValidator, Field, StringConstraints

from panpan.core.effects import Effects
from panpan.core.tool import Tool, ToolContext
from panpan.errors import ToolError
from panpan.system.text.terminal_text import printable
from panpan.types.content import ChecklistDisplay, ChecklistItem, Frozen, ItemStatus, checklist_counts
from panpan.types.events import Output, ToolYield


class TodoStore(Protocol):
    """Keeps the todo list of one session."""

    async def replace(self, wanted: Sequence[ChecklistItem]) -> Sequence[ChecklistItem]:
        """Let the list be what the model wants, and return it; what is in it already keeps its id."""
        ...


MAX_TODOS = 100
MAX_CHARS = 500
"""Most characters of one todo."""


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


Words = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_CHARS),
    AfterValidator(_on_one_line),
]


class TodoInput(Frozen):
    """One todo."""

    content: Words = Field(description="What is to be done")
    status: ItemStatus
    active_form: Words | None = Field(default=None, alias="activeForm", description="The same while it is done")

    @property
    def draft(self) -> ChecklistItem:
        return ChecklistItem(content=self.content, active_form=self.active_form or self.content, status=self.status)


class TodoWriteInput(Frozen):
    """Arguments of TodoWrite."""

    todos: tuple[TodoInput, ...] = Field(max_length=MAX_TODOS, description="The whole list")


class TodoWriteTool(Tool[TodoWriteInput]):
    """Replace the todo list. It changes nothing of the user's, so it needs no question and works in plan mode."""

    name = "TodoWrite"
    input_model = TodoWriteInput
    question_template = "Change the todo list?"
    only_reads: ClassVar[bool] = True
    is_for_subagents: ClassVar[bool] = False

    def __init__(self, store: TodoStore) -> None:
        self._store = store

    def may_run_in_parallel(self, args: TodoWriteInput) -> bool:
        return False  # if one reply has two calls, the later one counts

    def title(self, args: TodoWriteInput) -> str:
        drafts = [todo.draft for todo in args.todos]
        begun = next((draft for draft in drafts if draft.status == "in_progress"), None)
        return printable(begun.active_form if begun is not None else checklist_counts(drafts))

    async def effects(self, args: TodoWriteInput, ctx: ToolContext) -> Effects:
        return Effects()

    async def run(self, args: TodoWriteInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        begun = [todo.content for todo in args.todos if todo.status == "in_progress"]
        if len(begun) > 1:
            raise ToolError(
                f"{len(begun)} todos are in_progress, but only one may be: {'; '.join(begun)}. Set the others to "
                "pending or completed; the list is as it was"
            )
        todos = tuple(await self._store.replace([todo.draft for todo in args.todos]))
        yield Output(f"The list is kept: {checklist_counts(todos)}.", ChecklistDisplay(todos=todos))
