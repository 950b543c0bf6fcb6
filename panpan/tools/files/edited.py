"""The answer of a tool that has changed files: a short confirmation for the model, the diffs for people."""

from collections.abc import Sequence
from dataclasses import dataclass

import anyio.to_thread

from panpan.tools.files.change_report import ChangeReport
from panpan.tools.files.commit import FileChange, commit
from panpan.tools.files.file_text import FileText
from panpan.tools.tool import ToolContext
from panpan.types.display import DiffDisplay
from panpan.types.tool import Output


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """A change and how it is told."""

    change: FileChange
    before: FileText | None
    """None where there was no file, or none that is text."""
    after: FileText | None
    confirmation: str
    """One line for the model, such as "edited a.py: 1 replacement"."""
    is_echoed: bool = True
    """Whether the model is shown the changed lines; not where it has just written them all itself."""


async def carry_out(planned: Sequence[PlannedChange], ctx: ToolContext) -> Output:
    """Write the changes and return what is told about them.

    Raises:
        ToolError: A write failed; the text says what stands.
    """
    output = await anyio.to_thread.run_sync(_told, planned, abandon_on_cancel=True)
    await commit([plan.change for plan in planned], ctx.seen_files)
    return output


def _told(planned: Sequence[PlannedChange]) -> Output:
    paragraphs, diffs = [], []
    for plan in planned:
        report = ChangeReport(plan.change.target.shown, _text(plan, is_after=False), _text(plan, is_after=True))
        diffs.append(report.diff())
        echo = report.echo() if plan.is_echoed else ""
        paragraphs.append(f"{plan.confirmation}\n{echo}".rstrip("\n"))
    return Output("\n".join(paragraphs), DiffDisplay(files=tuple(diffs)))


def _text(plan: PlannedChange, *, is_after: bool) -> str | None:
    """Return the text for the diff; empty for a file that exists and is not text, None where there is no file."""
    text, data = (plan.after, plan.change.after) if is_after else (plan.before, plan.change.before)
    if data is None:
        return None
    return text.readable if text else ""
