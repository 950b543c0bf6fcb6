"""Patch: change several files at once, in the format of a diff."""

from pydantic import BaseModel, ConfigDict

from panpan.capabilities.files.patch_plan import parse_patch, plan_patch
from panpan.core.effects import Effects
from panpan.core.tool import ToolContext
from panpan.editing.edited import Plan, PlannedTool
from panpan.errors import ToolError

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
        try:
            paths = _named_paths(args)
        except ToolError:
            return "unreadable patch"
        more = len(paths) - _MAX_TITLE_PATHS
        return ", ".join(paths[:_MAX_TITLE_PATHS]) + (f" and {more} more" if more > 0 else "")

    async def effects(self, args: PatchInput, ctx: ToolContext) -> Effects:
        paths = _named_paths(args)
        return Effects(reads=paths, writes=paths)

    def plan(self, args: PatchInput, ctx: ToolContext) -> Plan:
        return plan_patch(parse_patch(args.patch), ctx)


def _named_paths(args: PatchInput) -> list[str]:
    """Return every file that the patch names.

    Raises:
        ToolError: It cannot be read.
    """
    named = [path for patch in parse_patch(args.patch) for path in (patch.path, patch.move_to) if path is not None]
    return list(dict.fromkeys(named))
