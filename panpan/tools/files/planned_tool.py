"""A tool that works its changes out before it makes them, so that they can be shown before they are allowed."""

from abc import abstractmethod
from collections.abc import AsyncGenerator
from typing import ClassVar

import anyio.to_thread

from panpan.errors import ToolError
from panpan.tools.files.edited import Plan, carry_out, diffs_of
from panpan.tools.tool import InputT, Tool, ToolClass, ToolContext
from panpan.types.display import DiffDisplay
from panpan.types.tool import Output, ToolYield


class PlannedTool(Tool[InputT]):
    """Changes files: all that it plans, or nothing."""

    tool_class: ClassVar[ToolClass] = "write"

    def is_read_only(self, args: InputT) -> bool:
        return False

    @abstractmethod
    def plan(self, args: InputT, ctx: ToolContext) -> Plan | Output:
        """Return the changes, or what is said where there are none; runs in a thread.

        Raises:
            ToolError: They cannot be made; nothing is changed then.
        """

    async def preview(self, args: InputT, ctx: ToolContext) -> DiffDisplay | None:
        try:
            plan = await anyio.to_thread.run_sync(self.plan, args, ctx, abandon_on_cancel=True)
        except ToolError:  # said when it runs; before a yes, paths that need one are closed, too
            return None
        if isinstance(plan, Output):
            return None
        return await anyio.to_thread.run_sync(_whole, plan, abandon_on_cancel=True)

    async def run(self, args: InputT, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        plan = await anyio.to_thread.run_sync(self.plan, args, ctx, abandon_on_cancel=True)
        yield plan if isinstance(plan, Output) else await carry_out(plan, ctx)


def _whole(plan: Plan) -> DiffDisplay | None:
    """Return the diffs where they say all that would change, for somebody who is to judge it."""
    display = diffs_of(plan)
    changes_modes = any(change.mode is not None or change.is_new_program for change in plan.changes)
    says_all = all(file.diff and not file.is_cut for file in display.files)
    return display if says_all and not changes_modes else None
