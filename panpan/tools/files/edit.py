"""Edit: replace one text in a file by another, literally."""

from collections.abc import AsyncGenerator, Sequence

import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field

from panpan.tools.files.edit_plan import plan_replacements
from panpan.tools.files.edited import carry_out
from panpan.tools.files.literal_edit import Replacement
from panpan.tools.tool import PathUse, Tool, ToolContext
from panpan.types.tool import ToolYield


class EditInput(BaseModel):
    """What the model may ask of Edit."""

    model_config = ConfigDict(extra="forbid")

    file_path: str
    old_string: str = Field(description="Exact text to replace")
    new_string: str = Field(description="Text to put in its place")
    replace_all: bool = Field(default=False, description="Replace every occurrence")


class EditTool(Tool[EditInput]):
    """Replace one text in a file."""

    name = "Edit"
    input_model = EditInput
    tool_class = "write"

    def is_read_only(self, args: EditInput) -> bool:
        return False

    def title(self, args: EditInput) -> str:
        return args.file_path

    def path_uses(self, args: EditInput) -> Sequence[PathUse]:
        return (PathUse(args.file_path, "write"),)

    async def run(self, args: EditInput, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        replacements = [Replacement(args.old_string, args.new_string, args.replace_all)]
        plan = await anyio.to_thread.run_sync(
            plan_replacements, args.file_path, replacements, ctx, abandon_on_cancel=True
        )
        yield await carry_out(plan, ctx)
