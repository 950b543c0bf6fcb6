"""`panpan batch pick`: the ranking of the attempts at a task, the changes of one, and the merge into the project."""

import os
import sys
from collections.abc import Iterator, Sequence

import click

from panpan.batch.definition.begun_here import require_begun_here
from panpan.batch.reporting.picking import Pick, apply_pick, choose_attempt, picked_of, plan_pick, task_results
from panpan.batch.reporting.ranking import ranked
from panpan.batch.store.folder import CampaignFolder
from panpan.batch.store.naming import find_named
from panpan.batch.store.records import Result, Task
from panpan.batch.store.wording import money
from panpan.cli_kit.questions import TerminalQuestions
from panpan.errors import ConfigError
from panpan.session.command import Option
from panpan.system.text.terminal_text import clean_for_terminal, clean_line
from panpan.types.content import FileDiff

_MAX_DIFF_LINES = 400


async def pick(folder: CampaignFolder, word: str, is_sure: bool) -> int:
    """Show the attempts at a task and the changes of one, ask, and bring them into the project.

    Args:
        folder: The campaign's folder.
        word: Name of a task or attempt; without a number the best attempt.
        is_sure: True if the user is not asked.

    Raises:
        ConfigError: It names no attempt with a result, several are equally good, or nobody can be asked.
        PanpanError: The changes cannot be merged; the project is as it was.
    """
    require_begun_here(folder, os.environ)
    named = find_named(folder.tasks(), word)
    for line in ranking_lines(task_results(folder, named.task.id)):
        click.echo(line)
    result = choose_attempt(folder, named.task, named.attempt)
    plan = await plan_pick(folder, result)
    for line in plan_lines(plan):
        click.echo(line)
    label = clean_line(result.label)
    if not plan.plan.changes:
        click.echo(f"nothing to do: {label} changes no file of the project")
        return 0
    if not is_sure and not await _wants(folder, named.task, label):
        click.echo("nothing was changed")
        return 0
    picked = await apply_pick(folder, plan)
    left = f"; {len(picked.conflicts)} left as they were" if picked.conflicts else ""
    click.echo(f"picked {label}: {picked.files} file{'s' * (picked.files != 1)} changed in the project{left}")
    return 0


async def _wants(folder: CampaignFolder, task: Task, label: str) -> bool:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError("pick asks before it changes the project; on a terminal, or say yes beforehand with --yes")
    earlier = picked_of(folder, task.id)
    again = f" The attempt {earlier.attempt} was picked before; its changes stay." if earlier else ""
    title = f"Bring the changes of {label} into the project?{again}"
    return await TerminalQuestions().choose(title, [Option("Yes"), Option("No")]) == 0


def ranking_lines(results: Sequence[Result]) -> Iterator[str]:
    """Yield the attempts at a task, best first; those that tie have the same place."""
    place = 1
    for group in ranked(results):
        for one in group:
            tie = " (tie)" if len(group) > 1 else ""
            yield f"{place}. attempt {one.attempt}: {one.status}{_changes(one)}, {money(one.spent.usd)}{tie}"
        place += len(group)


def _changes(result: Result) -> str:
    changes = result.changes
    if changes is None:
        return ""
    files, outside = len(changes.files) + changes.more, len(changes.outside) + changes.more_outside
    away = f", {outside} outside the task" if outside else ""
    return f", {files} file{'s' * (files != 1)} +{changes.added} -{changes.removed}{away}"


def plan_lines(plan: Pick) -> Iterator[str]:
    """Yield the effect of a pick: the diffs, and files that are joined, left as they are, or not kept."""
    lines = [line for diff in plan.diffs for line in _diff_lines(diff)]
    yield ""
    yield from lines[:_MAX_DIFF_LINES]
    if len(lines) > _MAX_DIFF_LINES:
        yield f"… {len(lines) - _MAX_DIFF_LINES:,} more lines; changes.patch of the attempt has all"
    yield from (f"joined with your changes: {clean_line(path)}" for path in plan.merged)
    yield from (f"stays as it is: {clean_line(path)}: {clean_line(why)}" for path, why in plan.conflicts.items())
    yield from (f"not kept: {clean_line(one)}" for one in plan.left_out)


def _diff_lines(file: FileDiff) -> Iterator[str]:
    kind = " (new)" if file.is_new else " (removed)" if file.is_deleted else ""
    yield f"{clean_line(file.path)}{kind} +{file.added} -{file.removed}"
    if file.diff:
        yield from (f"  {line}" for line in clean_for_terminal(file.diff).rstrip("\n").split("\n"))
