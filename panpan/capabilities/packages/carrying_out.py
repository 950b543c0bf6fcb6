"""Changing an environment as a plan says: freeze, run, freeze again, keep the step, tell the difference.

The rule: what was changed until an interrupt is kept like any change, so that it can be taken back, too.
"""

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import move_on_after, to_thread

from panpan.capabilities.environment.allowed_look import machine_for, readable_folder
from panpan.capabilities.environment.find_environment import Environment, project_of
from panpan.capabilities.environment.interpreter import interpreter_of, package_folders
from panpan.capabilities.environment.machine_root import MachineRoot
from panpan.capabilities.environment.project.project_wishes import project_wishes
from panpan.capabilities.packages.broken import broken_by
from panpan.capabilities.packages.changes import Changes, difference
from panpan.capabilities.packages.installed import Installed, read_installed
from panpan.capabilities.packages.mirrors import run_with_mirrors
from panpan.capabilities.packages.outcome import changed_in_words, has_changed, outcome, way_back
from panpan.capabilities.packages.plan import Plan
from panpan.capabilities.packages.running import Ran
from panpan.capabilities.packages.step import FileStep, Step, Steps, changed_files, digest, kept_texts, undo
from panpan.core.tool import ToolContext
from panpan.errors import ToolError
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.beneath import opened_folder
from panpan.types.tool import Output, Progress

if TYPE_CHECKING:
    from panpan.capabilities.packages.package_tool import PackageSetup

_CLEANUP_S = 10.0
"""For telling what was changed until an interrupt."""


async def carry_out(
    plan: Plan, ctx: ToolContext, environment: Mapping[str, str], setup: "PackageSetup", *, manager: str, what: str
) -> AsyncGenerator[Progress | Output, None]:
    """Yield what the commands of a plan print, then what they have changed. Consume it under `aclosing`.

    Args:
        plan: What is done.
        ctx: Of the call.
        environment: What the commands get.
        setup: Says where the change is kept.
        manager: The tool that makes it.
        what: What it was asked to do, on one line.
    """
    before, steps = await _frozen(plan), setup.steps
    folders = await to_thread.run_sync(_package_folders, plan)
    texts = await to_thread.run_sync(kept_texts, plan.files)
    existed = plan.target.prefix.exists()
    ran: Ran | None = None
    if plan.undo is not None:
        await to_thread.run_sync(_restore, plan.undo.files)
    changes, files = Changes(), tuple[FileStep, ...]()
    try:
        async with aclosing(run_with_mirrors(plan, ctx, environment)) as items:
            async for item in items:
                if isinstance(item, Progress):
                    yield item
                else:
                    ran = item
    finally:
        with move_on_after(_CLEANUP_S, shield=True):
            await to_thread.run_sync(_keep, folders)
            if not plan.runs_code:
                changes = difference(before, await _frozen(plan))
                files = await to_thread.run_sync(changed_files, texts)
            if plan.step is None and (changes or files or not existed):
                step = _step_of(manager, what, plan, changes, files, existed=existed)
                await to_thread.run_sync(steps.save, step)
            if ran is None and not plan.runs_code:
                done = _done(plan, changes, files, existed=existed)
                ctx.note_left(f"Until it was stopped, `{manager} {what}` had {done}.")
    assert ran is not None, "it is the last thing that is yielded"
    notes = [] if plan.runs_code else await to_thread.run_sync(_broken, plan, changes, ctx, setup)
    notes += await to_thread.run_sync(_took_back, plan, ran, steps) if plan.step is not None else []
    yield outcome(plan, ran, changes, files, notes, existed=existed)


async def _frozen(plan: Plan) -> list[Installed]:
    return await to_thread.run_sync(read_installed, plan.target.prefix)


def _broken(plan: Plan, changes: Changes, ctx: ToolContext, setup: "PackageSetup") -> list[str]:
    """Return what does not fit together any more, also what the project asks for, as far as that may be read."""
    target = plan.target
    environment = Environment(str(target.prefix), target.kind, target.why)
    folder = readable_folder(project_of(environment.path, environment, str(ctx.paths.cwd)), ctx)
    wishes = project_wishes(machine_for(ctx, setup.withholds), folder) if folder and changes else None
    return broken_by(target, changes, wishes)


def _package_folders(plan: Plan) -> Sequence[str]:
    root, prefixes = MachineRoot(), [str(plan.target.prefix)]
    return package_folders(root, prefixes, interpreter_of(root, prefixes).minor)


def _keep(folders: Sequence[str]) -> None:
    """Leave the folders of packages where they are: pip takes one away with the last package in it."""
    for folder in map(Path, folders):
        if folder.parent.is_dir():
            folder.mkdir(exist_ok=True)


def _restore(files: Sequence[FileStep]) -> None:
    for file in files:
        path = Path(file.path)
        if digest(path) != file.after:
            raise ToolError(f"{path} has changed since, so nothing is taken back")
        if file.before is None:
            with suppress(FileNotFoundError), opened_folder(path.parent) as folder:
                os.unlink(path.name, dir_fd=folder)
        else:
            write_atomic(path, file.before.encode())


def _done(plan: Plan, changes: Changes, files: Sequence[FileStep], *, existed: bool) -> str:
    """Return what was changed until an interrupt, in the place of the result that would tell it."""
    if not has_changed(plan, changes, files, existed=existed):
        return f"changed nothing in {plan.target.prefix}"
    said = changed_in_words(plan, changes, files, existed=existed)
    return f"changed {plan.target.prefix} ({said}); {way_back(plan)}"


def _step_of(
    manager: str, what: str, plan: Plan, changes: Changes, files: Sequence[FileStep], *, existed: bool
) -> Step:
    return Step(
        prefix=str(plan.target.prefix),
        manager=manager,
        what=what[:500],
        made_environment=not existed and plan.target.prefix.exists(),
        before=(*changes.removed, *(before for before, _ in changes.changed)),
        after=(*changes.added, *(after for _, after in changes.changed)),
        files=tuple(files),
        wheels=plan.wheels,
    )


def _took_back(plan: Plan, ran: Ran, steps: Steps) -> list[str]:
    """Forget a step that was taken back, and return what could not be."""
    assert plan.step is not None
    assert plan.undo is not None
    left = undo(plan.step, read_installed(plan.target.prefix))
    if not ran.went_well or left.remove or left.restore:
        names = ", ".join(package.name for package in (*left.remove, *left.restore))
        return [*plan.undo.notes, f"not taken back yet: {names}" if names else "not all could be taken back"]
    steps.forget(plan.target.prefix)
    return list(plan.undo.notes)
