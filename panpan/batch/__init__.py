"""Campaigns: a folder with many tasks, run to their end on one machine or many.

Each attempt is a `panpan` of its own with a session of its own, so a worker may be killed at any moment: the attempt
goes on elsewhere by its session id. The folder is the truth. Whoever reports a result has written it there.

    summary = await panpan.batch.run("papers", trust=True)
    for result in panpan.batch.results("papers"):
        print(result.task, result.attempt, result.status)
"""

from panpan.public_names import loader

TYPE_CHECKING = False  # type checkers know this name; importing `typing` takes milliseconds

if TYPE_CHECKING:
    from panpan.batch.api import receipts, results, run, run_sync, state_of
    from panpan.batch.coordination.progress import Progress, Summary
    from panpan.batch.reporting.ranking import ranked
    from panpan.batch.store.records import Result, Running

__all__ = ["Progress", "Result", "Running", "Summary", "ranked", "receipts", "results", "run", "run_sync", "state_of"]

__getattr__ = loader(
    __name__,
    {
        "Progress": "panpan.batch.coordination.progress",
        "Result": "panpan.batch.store.records",
        "Running": "panpan.batch.store.records",
        "Summary": "panpan.batch.coordination.progress",
        "ranked": "panpan.batch.reporting.ranking",
        "receipts": "panpan.batch.api",
        "results": "panpan.batch.api",
        "run": "panpan.batch.api",
        "run_sync": "panpan.batch.api",
        "state_of": "panpan.batch.api",
    },
)
