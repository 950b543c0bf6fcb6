"""Edit: replace one text in a file by another, literally."""

from pydantic import BaseModel, ConfigDict, Field

from panpan.capabilities.files.edit_plan import plan_replacements
from panpan.capabilities.files.literal_edit import Replacement
from panpan.core.effects import Effects
from panpan.core.tool import ToolContext
from panpan.editing.edited import Plan, PlannedTool


class EditInput(BaseModel):
    """What the model may ask of Edit."""

    model_config = ConfigDict(extra="forbid")

    file_path: str
    old_string: str = Field(description="Exact text to replace")
    new_string: str = Field(description="Text to put in its place")
    replace_all: bool = Field(default=False, description="Replace every occurrence")


class EditTool(PlannedTool[EditInput]):
    """Replace one text in a file."""

    name = "Edit"
    input_model = EditInput

    def title(self, args: EditInput) -> str:
        return args.file_path

    async def effects(self, args: EditInput, ctx: ToolContext) -> Effects:
        return Effects(reads=(args.file_path,), writes=(args.file_path,))

    def plan(self, args: EditInput, ctx: ToolContext) -> Plan:
        replacement = Replacement(args.old_string, args.new_string, args.replace_all)
        return plan_replacements(args.file_path, [replacement], ctx)
