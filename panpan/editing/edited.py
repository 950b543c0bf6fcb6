"""The answer of a tool that has changed files: a short confirmation for the model, the diffs for people."""

from abc import abstractmethod
from collections.abc import AsyncGenerator, Sequence
from itertools import zip_longest
from typing import ClassVar

import anyio.to_thread

from panpan.core.tool import InputT, Tool, ToolContext
from panpan.editing.change_report import ChangeReport
from panpan.editing.commit import FileChange, commit, intended
from panpan.errors import ToolError
from panpan.types.dataclass import dataclass
from panpan.types.display import DiffDisplay
from panpan.types.tool import Output, ToolYield


@dataclass(frozen=True, slots=True)
class Told:
    """How the change of one file is told."""

    confirmation: str
    """What was done, such as "edited a.py"; the numbers of lines are added."""
    shown: str
    before: str | None
    """What the file said; None where it did not exist."""
    after: str | None
    """What it says now; None where it is gone."""
    is_echoed: bool = False
    """Whether the model is shown the changed lines with their numbers."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Changes that are computed and not yet made."""

    changes: Sequence[FileChange]
    told: Sequence[Told]


def diffs_of(plan: Plan) -> DiffDisplay:
    """Return what the plan changes, for people."""
    return DiffDisplay(files=tuple(ChangeReport(one.shown, one.before, one.after).diff() for one in plan.told))


async def carry_out(plan: Plan, ctx: ToolContext) -> Output:
    """Write the changes and return what is told about them.

    Raises:
        ToolError: A write failed; the text says what stands.
    """
    output = await anyio.to_thread.run_sync(_output, plan.told, abandon_on_cancel=True)
    await ctx.note_changes(await anyio.to_thread.run_sync(intended, plan.changes))
    await commit(plan.changes, ctx.seen_files)
    return output


def _output(told: Sequence[Told]) -> Output:
    paragraphs, diffs = [], []
    for one in told:
        report = ChangeReport(one.shown, one.before, one.after)
        diffs.append(report.diff())
        paragraphs.append(f"{one.confirmation} (+{report.added} -{report.removed} lines)")
        if one.is_echoed and (echo := report.echo()):
            paragraphs.append(echo)
    return Output("\n".join(paragraphs), DiffDisplay(files=tuple(diffs)))


# A tool that works its changes out before it makes them, so that they can be shown before they are allowed.
#
# The rule: it plans again when it runs, on what is there then, and makes no change but the one that was shown.


class PlannedTool(Tool[InputT]):
    """Changes files: all that it plans, or nothing."""

    notes_changes: ClassVar[bool] = True

    async def planned(self, args: InputT, ctx: ToolContext) -> Plan | Output:
        """Return what `plan` does; for tools that have to ask somebody first.

        Raises:
            ToolError: As `plan`.
        """
        return await anyio.to_thread.run_sync(self.plan, args, ctx, abandon_on_cancel=True)

    @abstractmethod
    def plan(self, args: InputT, ctx: ToolContext) -> Plan | Output:
        """Return the changes, or what is said where there are none; runs in a thread.

        Raises:
            ToolError: They cannot be made; nothing is changed then.
        """

    async def preview(self, args: InputT, ctx: ToolContext) -> DiffDisplay | None:
        plan = await self.planned(args, ctx)
        if isinstance(plan, Output):
            return None
        return await anyio.to_thread.run_sync(_whole, plan, abandon_on_cancel=True)

    async def run(self, args: InputT, ctx: ToolContext) -> AsyncGenerator[ToolYield, None]:
        plan = await self.planned(args, ctx)
        if isinstance(plan, Output):
            yield plan
            return
        if ctx.allowed_change is not None:
            await anyio.to_thread.run_sync(_require_as_shown, plan, ctx.allowed_change, abandon_on_cancel=True)
        yield await self.make(plan, args, ctx)

    async def make(self, plan: Plan, args: InputT, ctx: ToolContext) -> Output:
        """Make the changes, and return what is told about them.

        Raises:
            ToolError: A write failed; the text says what stands.
        """
        return await carry_out(plan, ctx)


def _require_as_shown(plan: Plan, shown: DiffDisplay) -> None:
    """Refuse a plan that would do something else than the user allowed, since a file has changed meanwhile."""
    now = diffs_of(plan)
    if now == shown:
        return
    pairs = zip_longest(shown.files, now.files)
    paths = dict.fromkeys(file.path for pair in pairs if pair[0] != pair[1] for file in pair if file is not None)
    raise ToolError(
        f"{', '.join(paths)} changed while the user was asked, so that this call would now do something else than he "
        "was shown and allowed; no file was changed. Look at what is there now, then make the call again"
    )


def _whole(plan: Plan) -> DiffDisplay | None:
    """Return the diffs where they say all that would change, for somebody who is to judge it."""
    display = diffs_of(plan)
    changes_modes = any(change.mode is not None or change.is_new_program for change in plan.changes)
    says_all = all(file.diff and not file.is_cut for file in display.files)
    return display if says_all and not changes_modes else None
