"""Ending what multiplies: the commands of a session that have more processes than one of them may.

The rule: a limit of the system holds for what its user starts, but not against root, and nothing but the end of the
session ends what multiplies in the background. So somebody has to count. That costs next to nothing as long as the
whole machine runs about as much as before.
"""

from collections.abc import Callable

import anyio

from panpan.system.limits import running_tasks
from panpan.system.process_tree import ProcessTree

_POLL_S = 0.3
_ENOUGH = 0.9
"""Which part of the limit is too much: at all of it, the system lets nothing more start, and nothing would be seen."""


async def end_what_multiplies(tree: ProcessTree, max_processes: int, warn: Callable[[str], None]) -> None:
    """End all of `tree` whenever it has too many processes and threads; returns only where they cannot be counted.

    Args:
        tree: What the commands of a session belong to.
        max_processes: How many they may have.
        warn: Told what was ended, in one sentence.
    """
    others = running_tasks()
    while others is not None:
        await anyio.sleep(_POLL_S)
        running = running_tasks() if tree.has_processes else others
        if running is None:
            return
        if running - others <= max_processes * _ENOUGH:
            others = min(others, running)
            continue
        number = sum(process.threads for process in await tree.look())
        if number > max_processes * _ENOUGH:
            await tree.end(0)
            warn(
                f"the session's commands had {number:,} processes and threads and were all ended; {max_processes:,} "
                "are allowed (setting limits.processes)"
            )
        others = max(others, running - number)
