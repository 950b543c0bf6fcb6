"""Changing an environment as a plan says: freeze, run, freeze again, keep the step, tell the difference.

The rule: what was changed until an interrupt is kept like any change, so that it can be taken back, too.
"""

import os
import shlex
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from pathlib import Path

from anyio import current_time, move_on_after, to_thread

from panpan.capabilities.packages.conflict import is_unreached
from panpan.capabilities.packages.plan import Plan, PlanResult, run_plan
from panpan.capabilities.packages.target import Installed, PackageConfig, Target, python_needs, read_installed
from panpan.capabilities.packages.undo_log import (
    Changes,
    FileStep,
    Step,
    Steps,
    changed_files,
    difference,
    digest,
    file_texts,
    undo,
)
from panpan.config.settings import PackageSettings
from panpan.core.recorded_commands import NOT_RECORDED, RunnerRecords
from panpan.core.tool import ToolContext
from panpan.errors import ToolError
from panpan.python_environments.find_environment import Environment, interpreter_of, package_folders, project_of
from panpan.python_environments.machine_root import MachineRoot, machine_for, readable_folder
from panpan.python_environments.metadata import applying, normalise_name, unmet
from panpan.python_environments.project_files import PackageRequirement, is_for_conda
from panpan.python_environments.project_requirements import ProjectRequirements, project_requirements
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.read_file import opened_folder
from panpan.types.content import SummaryDisplay, TextBlock, for_model
from panpan.types.events import Output, Progress

_MOST_FAILURE_CHARS = 4_000
"""Most characters shown of a failed command's output; a quarter of that if the reason is known."""


def describe_outcome(
    plan: Plan, ran: PlanResult, changes: Changes, files: Sequence[FileStep], notes: Sequence[str], *, existed: bool
) -> Output:
    """Return the output of a call that has run.

    `existed`: True if the environment was there before.
    """
    if plan.runs_code:
        lines = [ran.output.rstrip("\n") or "(no output)", *(f"[{note}]" for note in (*_ending(plan, ran), *ran.notes))]
        return Output("\n".join(lines), is_error=not ran.succeeded)
    lines = list(changes.lines)
    if not existed and plan.target.prefix.exists():
        lines.insert(0, f"made: {plan.target.prefix}")
    lines += [f"changed: {Path(file.path).name}" for file in files]
    lines += [*ran.told, *notes]
    if ran.succeeded:
        where = replace(plan.target, why="")
        head = f"done for {where}" if lines else f"done for {where}; nothing changed"
        more = [f"{len(notes) - 1} more notes"] if len(notes) > 1 else []
        short = "; ".join([describe_changes(plan, changes, files, existed=existed), *notes[:1], *more])
        return Output("\n".join([head, *lines]), SummaryDisplay(text=short))
    done = describe_changes(plan, changes, files, existed=existed)
    return _failure(plan, ran, lines, done if has_changed(plan, changes, files, existed=existed) else "")


def undo_hint(plan: Plan) -> str:
    """Return a hint on how to take back the changes of a call that did not end well."""
    return "the same rollback goes on with it" if plan.step is not None else "rollback takes that back"


def has_changed(plan: Plan, changes: Changes, files: Sequence[FileStep], *, existed: bool) -> bool:
    """True if a call has changed anything."""
    return bool(changes or files or (not existed and plan.target.prefix.exists()))


def _failure(plan: Plan, ran: PlanResult, changed: Sequence[str], done: str) -> Output:
    from panpan.capabilities.packages.conflict import (
        advice_for,
        conflict_in,  # not needed before something fails
    )

    conflict = conflict_in(ran.end)
    advice = advice_for(ran.end)
    if conflict is not None and not conflict.needs and (advice is not None or ran.notes):
        conflict = None  # an unreachable index has no versions, either
    said = [*_ending(plan, ran)]
    said += [f"no versions fit together: {conflict}" if conflict.needs else str(conflict)] if conflict else []
    said += [advice] if advice is not None else []
    said += [*ran.notes, *(changed or ["nothing was changed"]), *([undo_hint(plan)] if done else [])]
    most = _MOST_FAILURE_CHARS // 4 if conflict or advice else _MOST_FAILURE_CHARS
    rest = ran.end.strip()
    shown = rest if len(rest) <= most else f"…{rest[-most:]}"
    printed = f"\nthe end of what `{ran.command[:200]}` printed:\n{shown or '(nothing)'}"
    reason = said[1] if conflict or advice else said[0]
    content = (for_model("\n".join(said)), TextBlock(text=printed))
    return Output(content, SummaryDisplay(text=f"{reason}; {done}" if done else reason), is_error=True)


def _ending(plan: Plan, ran: PlanResult) -> list[str]:
    if ran.timed_out:
        return [f"timed out after {plan.timeout_s:g} s and was stopped"]
    return [f"exit code {ran.exit_code}"] if ran.exit_code else []


def describe_changes(plan: Plan, changes: Changes, files: Sequence[FileStep], *, existed: bool) -> str:
    """Return the changes on one short line."""
    made = [f"made {plan.target.prefix.name}"] if not existed and plan.target.prefix.exists() else []
    names = [Path(file.path).name for file in files]
    said = [*made, *([changes.summary(plan.asked)] if changes else []), *names]
    return "; ".join(said) or "nothing changed"


_MOST = 20


def inconsistencies(target: Target, changes: Changes, requirements: ProjectRequirements | None = None) -> list[str]:
    """Return a sentence for each need that is not met, of what was changed or about it."""
    if not changes:
        return []
    touched = (*changes.added, *changes.removed, *(after for _, after in changes.changed))
    names = {normalise_name(package.name) for package in touched}
    packages = list(python_needs(target.prefix))
    versions = {name: version for name, version, _ in packages}
    of_packages = (
        (f"now broken: {name} {version} needs", text, name in names)
        for name, version, texts in packages
        for text in texts
    )
    of_project = (
        (f"not what the project asks for: {one.source} asks for", one.text, False)
        for one in _required_here(requirements, target)
    )
    markers, said = _markers(target), list[str]()
    for who, text, is_touched in (*of_packages, *of_project):
        requirement = applying(text, markers)
        if requirement is None or not (is_touched or normalise_name(requirement.name) in names):
            continue
        if unmet(requirement, versions):
            found = versions.get(normalise_name(requirement.name))
            has = f"{normalise_name(requirement.name)} {found} is installed" if found else "that is not installed"
            said.append(f"{who} {requirement.name}{requirement.specifier}, but {has}")
    return [*said[:_MOST], *([f"and {len(said) - _MOST} more"] if len(said) > _MOST else [])]


def _required_here(requirements: ProjectRequirements | None, target: Target) -> Iterator[PackageRequirement]:
    """Yield the requirements for this environment, without packages that conda has under names of its own."""
    for entry in requirements.packages if requirements is not None else ():
        if not (
            entry.group or entry.is_bound or entry.is_condas or (is_for_conda(entry.file) and target.kind != "conda")
        ):
            yield entry


def _markers(target: Target) -> Mapping[str, str]:
    from packaging.markers import default_environment

    markers = {**{name: str(value) for name, value in default_environment().items()}, "extra": ""}
    minor = target.python.rstrip("t")
    return markers | ({"python_version": minor, "python_full_version": f"{minor}.0"} if minor else {})


# Every index that may be contacted is known before the user says yes. A further index is contacted only if the one
# before could not be reached, never because it lacks a package, and the unreachable one is named.

_MOST_CHARS = 300


def mirror_lines(settings: PackageSettings) -> Iterator[PackageSettings]:
    """Yield the user's settings with each of their mirrors in place of what it mirrors."""
    yield from (settings.model_copy(update={"index": url}) for url in settings.mirrors)
    yield from (settings.model_copy(update={"channel_alias": url}) for url in settings.channel_mirrors)


def with_mirrors(plan: Plan, others: Iterable[Plan]) -> Plan:
    """Return a plan that goes on with the commands of others where its own index is not reached.

    `others`: of the same call with each mirror in place of its index.
    """
    different = [other for other in others if other.commands != plan.commands]
    mirrors = [host for other in different for host in other.hosts if host not in plan.hosts]
    return replace(
        plan, mirror_commands=tuple(other.commands for other in different), mirror_hosts=tuple(dict.fromkeys(mirrors))
    )


async def run_with_mirrors(
    plan: Plan, ctx: ToolContext, environment: Mapping[str, str], records: RunnerRecords = NOT_RECORDED
) -> AsyncGenerator[Progress | PlanResult, None]:
    """Run a plan as `run_plan` does, again with each mirror until one is reached. Consume it under `aclosing`."""
    told: tuple[str, ...] = ()
    deadline = current_time() + plan.timeout_s
    for commands in (plan.commands, *plan.mirror_commands):
        is_last = len(told) == len(plan.mirror_commands)
        left_s = max(0.0, deadline - current_time())
        work = run_plan(replace(plan, commands=commands, timeout_s=left_s), ctx, environment, records)
        async with aclosing(work) as items:
            async for item in items:
                if isinstance(item, Progress):
                    yield item
                elif is_last or item.succeeded or item.timed_out or not is_unreached(item.end):
                    yield replace(item, told=told)
                    return
        told = (*told, f"not reached: what `{shlex.join(commands[-1])[:_MOST_CHARS]}` asks; the next mirror was asked")


_CLEANUP_S = 10.0
"""Seconds for finding out what was changed until an interrupt."""


async def apply_plan(
    plan: Plan, ctx: ToolContext, environment: Mapping[str, str], setup: PackageConfig, *, manager: str, what: str
) -> AsyncGenerator[Progress | Output, None]:
    """Yield the output of a plan's commands, then the changes that they made. Consume it under `aclosing`.

    `what`: what it was asked to do, on one line.
    """
    before, steps = await _frozen(plan), setup.steps
    folders = await to_thread.run_sync(_package_folders, plan)
    texts = await to_thread.run_sync(file_texts, plan.files)
    existed = plan.target.prefix.exists()
    ran: PlanResult | None = None
    if plan.undo is not None:
        await to_thread.run_sync(_restore, plan.undo.files)
    changes, files = Changes(), tuple[FileStep, ...]()
    try:
        async with aclosing(run_with_mirrors(plan, ctx, environment, setup.records)) as items:
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
                ctx.note_unfinished(f"Until it was stopped, `{manager} {what}` had {done}.")
    assert ran is not None, "it is the last thing that is yielded"
    notes = [] if plan.runs_code else await to_thread.run_sync(_broken, plan, changes, ctx, setup)
    notes += await to_thread.run_sync(_took_back, plan, ran, steps) if plan.step is not None else []
    yield describe_outcome(plan, ran, changes, files, notes, existed=existed)


async def _frozen(plan: Plan) -> list[Installed]:
    return await to_thread.run_sync(read_installed, plan.target.prefix)


def _broken(plan: Plan, changes: Changes, ctx: ToolContext, setup: PackageConfig) -> list[str]:
    """Return the needs of packages and of the project that are no longer met, as far as its files may be read."""
    target = plan.target
    environment = Environment(str(target.prefix), target.kind, target.why)
    folder = readable_folder(project_of(environment.path, environment, str(ctx.paths.cwd)), ctx.paths)
    requirements = project_requirements(machine_for(ctx.paths, setup.withholds), folder) if folder and changes else None
    return inconsistencies(target, changes, requirements)


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
            raise ToolError(f"{path} has changed since, so nothing is undone")
        if file.before is None:
            with suppress(FileNotFoundError), opened_folder(path.parent) as folder:
                os.unlink(path.name, dir_fd=folder)
        else:
            write_atomic(path, file.before.encode())


def _done(plan: Plan, changes: Changes, files: Sequence[FileStep], *, existed: bool) -> str:
    """Return the changes until an interrupt, in place of the result that would name them."""
    if not has_changed(plan, changes, files, existed=existed):
        return f"changed nothing in {plan.target.prefix}"
    said = describe_changes(plan, changes, files, existed=existed)
    return f"changed {plan.target.prefix} ({said}); {undo_hint(plan)}"


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


def _took_back(plan: Plan, ran: PlanResult, steps: Steps) -> list[str]:
    """Forget a step that was taken back, and return what could not be."""
    assert plan.step is not None
    assert plan.undo is not None
    left = undo(plan.step, read_installed(plan.target.prefix))
    if not ran.succeeded or left.remove or left.restore:
        names = ", ".join(package.name for package in (*left.remove, *left.restore))
        return [*plan.undo.notes, f"not taken back yet: {names}" if names else "not all could be taken back"]
    steps.forget(plan.target.prefix)
    return list(plan.undo.notes)
