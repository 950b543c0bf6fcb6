"""Ending what multiplies: the commands of a session that have more processes than one of them may.

The rule: a limit of the system holds for what its user starts, but not against root, and nothing but the end of the
session ends what multiplies in the background. So somebody has to count. That costs next to nothing as long as the
whole machine runs about as much as before.
"""

from collections.abc import Callable, Coroutine, Sequence
from functools import partial

import anyio

from panpan.system.processes.limits import RUNNING_TASKS_FILE, Limits, running_tasks
from panpan.system.processes.process_tree import ProcessTree

_POLL_S = 0.3
_TRIES = 5
"""How often the end of all is tried: on a busy machine, what multiplies may outlive one."""
_ENOUGH = 0.9
"""Which part of the limit is too much: at all of it, the system lets nothing more start, and nothing would be seen."""

NOT_COUNTED = (
    f"the processes of commands are not counted (limits.processes): {RUNNING_TASKS_FILE} cannot be read; "
    "stop a command that multiplies yourself"
)


def process_watches(
    limits: Limits, trees: Sequence[ProcessTree], warn: Callable[[str], None]
) -> Sequence[Callable[[], Coroutine[None, None, None]]]:
    """Return what counts the processes of each tree while a session is open; nothing where they have no limit.

    Where they cannot be counted although the settings ask for a limit, the user is warned.
    """
    most = limits.processes
    if most is None:
        return ()
    if "processes" in limits.required and limits.already_running is None:
        warn(NOT_COUNTED)
    return [partial(end_what_multiplies, tree, most, warn) for tree in trees]


async def end_what_multiplies(
    tree: ProcessTree,
    max_processes: int,
    warn: Callable[[str], None],
    *,
    running_tasks: Callable[[], int | None] = running_tasks,
) -> None:
    """End all of `tree` whenever it has too many processes and threads; returns only where they cannot be counted.

    Args:
        tree: What the commands of a session belong to.
        max_processes: How many they may have.
        warn: Told what was ended, in one sentence.
        running_tasks: Counts the processes and threads of the machine; None where it cannot.
    """
    others = running_tasks()
    while others is not None:
        await anyio.sleep(_POLL_S)
        running = running_tasks() if tree.has_processes else others
        if running is None:
            warn(NOT_COUNTED)
            return
        if running - others <= max_processes * _ENOUGH:
            others = min(others, running)
            continue
        number = sum(process.threads for process in await tree.look())
        if number > max_processes * _ENOUGH:
            warn(
                f"the session's commands had {number:,} processes and threads and {await _ended(tree)}; "
                f"{max_processes:,} are allowed (setting limits.processes)"
            )
        others = max(others, running - number)


async def _ended(tree: ProcessTree) -> str:
    """End all of the tree, and say whether that was possible, as the end of a sentence."""
    remaining = 0
    for _ in range(_TRIES):
        remaining = len(await tree.end(0))
        if not remaining:
            return "were all ended"
    return f"were ended, but for {remaining:,} that could not be"
