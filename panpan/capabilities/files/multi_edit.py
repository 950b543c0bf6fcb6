"""MultiEdit: several literal replacements in one file, all or none."""

from pydantic import BaseModel, ConfigDict, Field

from panpan.capabilities.files.edit import plan_replacements
from panpan.capabilities.files.literal_edit import Replacement
from panpan.core.effects import Effects
from panpan.core.tool import ToolContext
from panpan.editing.edited import Plan, PlannedTool


class OneEdit(BaseModel):
    """As for Edit."""

    model_config = ConfigDict(extra="forbid")

    old_string: str
    new_string: str
    replace_all: bool = False


class MultiEditInput(BaseModel):
    """Arguments of MultiEdit."""

    model_config = ConfigDict(extra="forbid")

    file_path: str
    edits: list[OneEdit] = Field(min_length=1)


class MultiEditTool(PlannedTool[MultiEditInput]):
    """Make several replacements in one file, one after the other."""

    name = "MultiEdit"
    input_model = MultiEditInput

    def title(self, args: MultiEditInput) -> str:
        count = len(args.edits)
        return f"{args.file_path} ({count} edit{'s' * (count != 1)})"

    async def effects(self, args: MultiEditInput, ctx: ToolContext) -> Effects:
        return Effects(reads=(args.file_path,), writes=(args.file_path,))

    def plan(self, args: MultiEditInput, ctx: ToolContext) -> Plan:
        replacements = [Replacement(edit.old_string, edit.new_string, edit.replace_all) for edit in args.edits]
        return plan_replacements(args.file_path, replacements, ctx)
