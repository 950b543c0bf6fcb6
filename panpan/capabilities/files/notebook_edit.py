"""NotebookEdit: change one cell of a Jupyter notebook, and leave every other byte of the file as it is."""

from dataclasses import replace
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from panpan.core.effects import Effects
from panpan.core.tool import ToolContext
from panpan.documents.read_notebook import CellType, NotebookText
from panpan.editing.commit import FileChange, find_target, read_known_text, similar_files
from panpan.editing.planned_edit import EditReport, Plan, PlannedTool
from panpan.errors import ToolError
from panpan.system.text.file_text import readable
from panpan.types.events import Output


class NotebookEditInput(BaseModel):
    """Arguments of NotebookEdit."""

    model_config = ConfigDict(extra="forbid")

    file_path: str
    cell: str = Field(description="Id or number, as Read shows them; for insert: of the one before, or 0")
    source: str | None = Field(default=None, description="All of the cell's new text; not with delete")
    cell_type: CellType | None = Field(default=None, description="For insert (code if not given), or to change it")
    mode: Literal["replace", "insert", "delete"] = "replace"


class NotebookEditTool(PlannedTool[NotebookEditInput]):
    """Replace, insert or delete a cell of a notebook."""

    name = "NotebookEdit"
    question_template = "Edit {title}?"
    input_model = NotebookEditInput

    def title(self, args: NotebookEditInput) -> str:
        return f"{args.file_path} ({args.mode} {'behind ' if args.mode == 'insert' else ''}cell {args.cell})"

    async def effects(self, args: NotebookEditInput, ctx: ToolContext) -> Effects:
        return Effects(reads=(args.file_path,), writes=(args.file_path,))

    def plan(self, args: NotebookEditInput, ctx: ToolContext) -> Plan | Output:
        target = find_target(args.file_path, ctx)
        if not target.exists:
            meant = similar_files(target.path, ctx)
            raise ToolError(
                f"{target.shown} does not exist{meant and f'; {meant}'}", advice="a new notebook is made with Write"
            )
        before, old = read_known_text(target, ctx)
        notebook = NotebookText(old.text, target.shown)
        old.encoding.check(args.source or "", target.shown)
        text, done, note = _changed(notebook, args)
        new = replace(old, text=text)
        after = new.encoding.encode(text)
        if after == before:
            return Output(f"cell {args.cell} of {target.shown} says exactly this already; nothing was written")
        shown_before, shown_after = (
            readable(one.cells_as_text) for one in (notebook, NotebookText(text, target.shown))
        )
        report = EditReport(f"{done} of {target.shown}{note and f'; {note}'}", target.shown, shown_before, shown_after)
        return Plan([FileChange(target, before, after)], [report])


def _changed(notebook: NotebookText, args: NotebookEditInput) -> tuple[str, str, str]:
    if args.mode == "delete":
        if args.source is not None or args.cell_type is not None:
            raise ToolError("delete takes neither source nor cell_type; an empty source with replace empties a cell")
        place = notebook.find(args.cell)
        return notebook.delete(place), f"deleted cell {place + 1}", "the numbers of later cells are one lower now"
    if args.source is None:
        raise ToolError(f"{args.mode} needs source, the whole new text of the cell")
    if args.mode == "insert":
        place = 0 if args.cell == "0" else notebook.find(args.cell) + 1
        text = notebook.insert(place, args.source, args.cell_type or "code")
        return text, f"inserted cell {place + 1}", "the numbers of later cells are one higher now"
    place = notebook.find(args.cell)
    had_outputs = bool(notebook.cells[place].value.get("outputs"))
    note = "the outputs of its old source are gone; run it again to see new ones" if had_outputs else ""
    return notebook.replace(place, args.source, args.cell_type), f"replaced cell {place + 1}", note
