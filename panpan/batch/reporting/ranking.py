"""Best of n: the attempts at one task in their order, with ties.

The rule: the verify command decides first; among equals, the attempt that kept closer to the task, then the one that
changed less. What is equal in all of these is a tie, which a person decides.
"""

from collections.abc import Sequence
from itertools import groupby

from panpan.batch.store.records import Result, Status

_STATUS_ORDER: tuple[Status, ...] = ("passed", "done", "failed", "error", "cancelled")
"""Best first; an attempt without a verify command is better than one that failed it."""
_EQUALLY_BAD = {"cancelled": "error"}


def ranked(results: Sequence[Result]) -> Sequence[Sequence[Result]]:
    """Return the results of one task in groups, best first; a group of more than one is a tie.

    In a group they are in the order of the attempts.
    """
    ordered = sorted(results, key=lambda one: (_rank(one), one.attempt))
    return [list(group) for _, group in groupby(ordered, key=_rank)]


def _rank(result: Result) -> tuple[int, ...]:
    status = _STATUS_ORDER.index(_EQUALLY_BAD.get(result.status, result.status))
    changes = result.changes
    if changes is None:  # nobody knows them, so they count as more than any
        return (status, 1, 0, 0, 0)
    outside = len(changes.outside) + changes.more_outside
    return (status, 0, outside, changes.added + changes.removed, len(changes.files) + changes.more)
