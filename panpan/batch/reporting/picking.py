"""Picking: the changes of one attempt, merged into the user's project.

The rule: the merge is planned before any file is touched, and a file changes only while it is as planned. What the user
changed since the campaign began stays: other lines are joined, the same lines are a conflict, and that file is left as
it is. Nothing is committed; index and HEAD stay. The campaign's own files never change. The content comes from
`state/kept`, so the workspace may be gone.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import field

import anyio

from panpan.batch.attempts.project_copy import campaigns_own
from panpan.batch.attempts.workspace import (
    COMPARE_LIMITS,
    is_worktree,
    path_text,
    top_of_project,
)
from panpan.batch.reporting.ranking import ranked
from panpan.batch.store.folder import AttemptFolder, CampaignFolder, read_record, write_record
from panpan.batch.store.records import FrozenCampaign, Picked, Result, Task
from panpan.batch.store.wording import batch_command, typed
from panpan.editing.tree_diffs import file_diffs
from panpan.errors import ConfigError, SnapshotError
from panpan.file_trees.listed_files import read_snapshot
from panpan.file_trees.merging import MergePlan, Merging
from panpan.file_trees.own_repository import OwnRepository
from panpan.file_trees.snapshot import Snapshot, names
from panpan.system.text.terminal_text import clean_line
from panpan.types.content import FileDiff
from panpan.types.dataclass import dataclass

_USABLE = ("passed", "done")
_MAX_NAMED = 10


@dataclass(frozen=True, slots=True)
class Pick:
    """The effect that picking an attempt has on the project."""

    result: Result
    plan: MergePlan
    diffs: Sequence[FileDiff]
    """One for each file that changes; without lines where its content is no text."""
    conflicts: Mapping[str, str] = field(default_factory=dict)
    """Reasons why files of the project stay as they are, by path."""
    merged: Sequence[str] = ()
    """Files in which the attempt's changes are joined with the user's."""

    @property
    def left_out(self) -> Sequence[str]:
        """Files of the attempt that were not kept, each with the reason."""
        return self.result.changes.left_out if self.result.changes else ()


def task_results(folder: CampaignFolder, task_id: str) -> Sequence[Result]:
    """Return the results of the attempts at a task, in their order.

    Raises:
        ConfigError: One cannot be read.
    """
    return [result for attempt in folder.attempts_at(task_id) if (result := attempt.result()) is not None]


def choose_attempt(folder: CampaignFolder, task: Task, attempt: int | None = None) -> Result:
    """Return the result of an attempt, or of the best one at a task.

    Args:
        folder: The campaign's folder.
        task: One of its tasks.
        attempt: Number of the attempt; None: the best one.

    Raises:
        ConfigError: The attempt has no result; or without a number, none passed, or several are equally good.
    """
    results = task_results(folder, task.id)
    if attempt is not None:
        found = next((one for one in results if one.attempt == attempt), None)
        if found is None:
            label = clean_line(task.attempt_label(attempt))
            raise ConfigError(f"the attempt {label} has no result; wait until it has ended")
        return found
    best = next(iter(ranked(results)), ())
    if not best:
        raise ConfigError(f"no attempt at {clean_line(task.label)} has ended; wait until one has")
    if best[0].status not in _USABLE:
        raise ConfigError(f"no attempt at {clean_line(task.label)} passed; {_how_to_look(folder, best[0])}")
    if len(best) > 1:
        raise ConfigError(f"{_tie(best)}; {_how_to_look(folder, best[0])}")
    return best[0]


async def plan_pick(folder: CampaignFolder, result: Result) -> Pick:
    """Return the effect that picking an attempt would have now; nothing changes.

    Raises:
        PanpanError: The attempt's files are not known or not kept any more, or the project cannot be read.
    """
    frozen, attempt = folder.frozen(), folder.attempt(result.task_id, result.attempt)
    repository = await _repository(frozen, attempt)
    base, theirs = await _snapshots(repository, attempt, result)
    plan = await _merging(repository).plan(base, theirs, is_of_git=is_worktree(frozen))
    own = campaigns_own(frozen, attempt, repository.work_tree)
    kept_away = {one.path: "it belongs to the campaign" for one in plan.changes if own(one.path)}
    changes = [one for one in plan.changes if one.path not in kept_away]
    plan = MergePlan(changes, {**plan.conflicts, **kept_away}, [path for path in plan.merged if not own(path)])
    diffs = await file_diffs(repository, plan.changes, path_text)
    conflicts = {path_text(path): why for path, why in sorted(plan.conflicts.items())}
    return Pick(result, plan, diffs, conflicts, [path_text(path) for path in plan.merged])


async def apply_pick(folder: CampaignFolder, pick: Pick) -> Picked:
    """Bring the planned changes into the project, all or none, and record the attempt as picked.

    After a kill midway, another pick of the same attempt does the rest.

    Raises:
        PanpanError: A file is not as planned any more, or cannot be written; all files are as they were then.
    """
    result = pick.result
    frozen, attempt = folder.frozen(), folder.attempt(result.task_id, result.attempt)
    repository = await _repository(frozen, attempt)
    _, theirs = await _snapshots(repository, attempt, result)
    folders = set(await names(repository, theirs.tree, "-t"))
    picked = Picked(attempt=result.attempt, files=len(pick.plan.changes), conflicts=pick.conflicts)
    with anyio.CancelScope(shield=True):  # half of it would be neither state
        await _merging(repository).apply(pick.plan, folders.__contains__)
        write_record(attempt.picked_file, picked)
    return picked


def picked_of(folder: CampaignFolder, task_id: str) -> Picked | None:
    """Return the attempt at a task that was picked last; None if there is none.

    Raises:
        ConfigError: The record cannot be read.
    """
    return read_record(folder.attempt(task_id, 1).picked_file, Picked)


async def _repository(frozen: FrozenCampaign, attempt: AttemptFolder) -> OwnRepository:
    top = top_of_project(frozen)
    if not await anyio.Path(top).is_dir():
        raise ConfigError(f"the project {top} is not on this machine; pick where it is")
    return OwnRepository(attempt.kept, top)


async def _snapshots(repository: OwnRepository, attempt: AttemptFolder, result: Result) -> tuple[Snapshot, Snapshot]:
    """Return the files with which an attempt began and ended."""
    state = attempt.state()
    if result.changes is None or not result.changes.snapshot or state is None or not state.base:
        raise ConfigError(f"the changes of attempt {result.attempt} are not known, so it cannot be picked")
    try:
        return await read_snapshot(repository, state.base), await read_snapshot(repository, result.changes.snapshot)
    except SnapshotError as error:
        where = f"; its workspace {attempt.workspace} is still there" if attempt.workspace.is_dir() else ""
        raise ConfigError(f"the files of attempt {result.attempt} are not in {attempt.kept} any more{where}") from error


def _merging(repository: OwnRepository) -> Merging:
    index = repository.folder / "indexes" / f"pick-{secrets.token_hex(8)}"
    return Merging(repository, index, COMPARE_LIMITS)


def _tie(best: Sequence[Result]) -> str:
    labels = [clean_line(one.label) for one in best[:_MAX_NAMED]]
    more = f" and {len(best) - _MAX_NAMED} more" if len(best) > _MAX_NAMED else ""
    changes = best[0].changes
    size = f", +{changes.added} -{changes.removed} lines" if changes else ""
    return f"these attempts are equally good ({best[0].status}{size}): {', '.join(labels)}{more}"


def _how_to_look(folder: CampaignFolder, result: Result) -> str:
    command = batch_command("pick", folder.path, typed(result.label, *result.key))
    return f"name one, to see its changes first: {command}"
