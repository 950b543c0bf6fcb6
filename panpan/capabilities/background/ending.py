"""The end of a session's background tasks with the session: stopped, or left to go on."""

from collections.abc import Iterable

from panpan.capabilities.background.commands import exit_code_of
from panpan.capabilities.background.task import Task
from panpan.system.processes.process_exit import reap_later
from panpan.system.processes.process_look import look
from panpan.system.processes.process_tree import ProcessTree

EXIT_GRACE_S = 2.0
"""Seconds between asking what runs to end and killing it; a user waits for it."""


async def end_all(tree: ProcessTree, running: Iterable[Task]) -> None:
    """End all commands of a session's tasks, and what they left running; a task that cannot be ended runs on.

    Args:
        tree: What all of them belong to.
        running: Those that run; jobs have ended with what ran them.
    """
    for task in running:
        task.is_stopping = True
    remaining = {mark for process in await tree.end(EXIT_GRACE_S) for mark in process.marks}
    for task in running:
        if task.record.mark not in remaining:
            task.end_command(exit_code_of(task, task.record.pid))


def let_go(running: Iterable[Task]) -> None:
    """Let commands go on alone; those have ended that ended with what followed them: moved here, with a pipe."""
    for task in running:
        if not task.can_be_kept:
            task.is_stopping = True
            task.end_command(None)
        elif task.is_running:
            reap_later(task.record.pid)


async def end_what_is_left(tree: ProcessTree, tasks: Iterable[Task]) -> None:
    """End what tasks that have ended left running; those that run go on.

    Args:
        tree: What all commands of the session's tasks belong to.
        tasks: All of them.
    """
    if not tree.has_processes:
        return
    alive = {mark for process in tree.members_among(await look()) for mark in process.marks}
    for task in tasks:
        if not task.is_running and task.record.mark in alive:
            await ProcessTree(task.record.mark).end(EXIT_GRACE_S)
