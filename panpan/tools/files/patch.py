"""Patch: change several files at once, in the format of a diff."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from panpan.errors import ToolError
from panpan.tools.files.edited import Plan
from panpan.tools.files.patch_plan import parse_patch, plan_patch
from panpan.tools.files.planned_tool import PlannedTool
from panpan.tools.tool import PathUse, ToolContext

_MAX_TITLE_PATHS = 3


class PatchInput(BaseModel):
    """What the model may ask of Patch."""

    model_config = ConfigDict(extra="forbid")

    patch: str


class PatchTool(PlannedTool[PatchInput]):
    """Add, update, move and delete files by a patch, all or none."""

    name = "Patch"
    input_model = PatchInput

    def title(self, args: PatchInput) -> str:
        paths = list(dict.fromkeys(use.path for use in self.path_uses(args)))
        more = len(paths) - _MAX_TITLE_PATHS
        return ", ".join(paths[:_MAX_TITLE_PATHS]) + (f" and {more} more" if more > 0 else "") or "unreadable patch"

    def path_uses(self, args: PatchInput) -> Sequence[PathUse]:
        """Return every file that the patch names; none where it cannot be read, since then it cannot run either."""
        try:
            patches = parse_patch(args.patch)
        except ToolError:
            return ()
        named = [path for patch in patches for path in (patch.path, patch.move_to) if path is not None]
        return tuple(PathUse(path, "write") for path in dict.fromkeys(named))

    def plan(self, args: PatchInput, ctx: ToolContext) -> Plan:
        return plan_patch(parse_patch(args.patch), ctx)
