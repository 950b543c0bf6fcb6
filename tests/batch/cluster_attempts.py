"""Attempts that a worker runs in the tests of clusters, as files in the campaign's folder say.

`FOLDER/said` has a line for each step: `began TASK PID`, `stopped TASK PID`, `ended TASK PID`. An attempt ends when
`FOLDER/go-TASK` is there.
"""

import os
from collections.abc import Sequence

import anyio
from anyio import CancelScope, Path

from panpan.batch.store.records import AttemptEnd, Finished, Job, Result, Stopped, Unfit


async def say(job: Job, word: str, *more: str) -> None:
    line = " ".join([word, job.task_id, str(os.getpid()), *more])
    async with await Path(job.folder, "said").open("a") as file:
        await file.write(line + "\n")


async def wait_for_go(job: Job, gpus: Sequence[str] = ()) -> AttemptEnd:
    """Wait for the file, unless it is cancelled before."""
    await say(job, "began", *gpus)
    try:
        while not await Path(job.folder, f"go-{job.task_id}").exists():  # noqa: ASYNC110 -- of another process
            await anyio.sleep(0.02)
    except anyio.get_cancelled_exc_class():
        with CancelScope(shield=True):
            await say(job, "stopped")
        raise
    await say(job, "ended")
    return Finished(result=Result(task_id=job.task_id, task="", attempt=job.attempt, status="done", ended_by="answer"))


async def unfit_once(job: Job, gpus: Sequence[str] = ()) -> AttemptEnd:
    """Be unfit on the first worker that tries."""
    try:
        await Path(job.folder, "tried").touch(exist_ok=False)
    except FileExistsError:
        return Stopped(reason="fit")
    return Unfit(reason="no sandbox works here", is_of_machine=True)


async def refuse(job: Job, gpus: Sequence[str] = ()) -> AttemptEnd:
    """Refuse the attempt for a reason that every worker has."""
    return Unfit(reason="no such option: --yess")


async def kill_worker(job: Job, gpus: Sequence[str] = ()) -> AttemptEnd:
    """End the worker's process at once, as where memory is short."""
    os.kill(os.getpid(), 9)
    raise AssertionError


async def fail(job: Job, gpus: Sequence[str] = ()) -> AttemptEnd:
    """Raise an error that no attempt is to raise."""
    await say(job, "began")
    raise ValueError(job.task_id)
