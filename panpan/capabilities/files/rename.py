"""Rename: give a name another one in several files, all or none."""

from collections.abc import Callable
from contextlib import suppress

from pydantic import BaseModel, ConfigDict, Field

from panpan.core.effects import Effects
from panpan.core.tool import ToolContext, WordSearch
from panpan.editing.planned_edit import Plan, PlannedTool, apply_plan, plan_rename
from panpan.errors import ToolError
from panpan.types.events import Output

_MAX_FILES = 200
_MAX_TITLE_PATHS = 3
_MAX_LEFT = 10


class RenameInput(BaseModel):
    """Arguments of Rename."""

    model_config = ConfigDict(extra="forbid")

    old_name: str = Field(pattern=r"^\w+$")
    new_name: str = Field(pattern=r"^\w+$")
    file_paths: list[str] = Field(min_length=1, max_length=_MAX_FILES)


class RenameTool(PlannedTool[RenameInput]):
    """Replace a name by another wherever it is a whole word, and search for places where it is left."""

    name = "Rename"
    question_template = "Rename {title}?"
    input_model = RenameInput
    only_renames = True

    def __init__(self, search: Callable[[], WordSearch | None] = lambda: None) -> None:
        self._search = search

    def title(self, args: RenameInput) -> str:
        more = len(args.file_paths) - _MAX_TITLE_PATHS
        paths = ", ".join(args.file_paths[:_MAX_TITLE_PATHS]) + (f" and {more} more" if more > 0 else "")
        return f"{paths} ({args.old_name} to {args.new_name})"

    async def effects(self, args: RenameInput, ctx: ToolContext) -> Effects:
        return Effects(reads=args.file_paths, writes=args.file_paths)

    def plan(self, args: RenameInput, ctx: ToolContext) -> Plan:
        return plan_rename(args.old_name, args.new_name, args.file_paths, ctx)

    async def make(self, plan: Plan, args: RenameInput, ctx: ToolContext) -> Output:
        unread = [change.target.path for change in plan.changes if ctx.seen_files.digest(change.target.path) is None]
        output = await apply_plan(plan, ctx)
        for path in unread:  # the model was shown the changed lines, not the file
            ctx.seen_files.forget(path)
        left = await self._left(args.old_name, ctx)
        return Output(f"{output.text}\n{left}", output.display) if left else output

    async def _left(self, old_name: str, ctx: ToolContext) -> str:
        """Return the lines in which the old name is left, which is what is forgotten most; empty where it is gone."""
        search = self._search()
        if search is None:
            return ""
        with suppress(ToolError):  # the rename is done, even if this search fails
            if lines := await search.lines_with(old_name, ctx, limit=_MAX_LEFT):
                return f"{old_name} is still in these lines, in files that were not named:\n{lines}"
        return ""
