"""The answer of a tool that has changed files: a short confirmation for the model, the diffs for people."""

from collections.abc import Sequence

import anyio.to_thread

from panpan.capabilities.files.change_report import ChangeReport
from panpan.capabilities.files.commit import FileChange, commit, intended
from panpan.core.tool import ToolContext
from panpan.types.dataclass import dataclass
from panpan.types.display import DiffDisplay
from panpan.types.tool import Output


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
