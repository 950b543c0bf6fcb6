"""Jobs on their way through a Dask scheduler: submitted, lost and submitted again, stopped.

The rule: Dask says who runs an attempt, and the folder says what became of it. Whatever Dask forgets, as when a worker
dies, is submitted again and goes on by its session.
"""

import secrets
from contextlib import suppress
from typing import Any

import anyio
from anyio import CancelScope
from distributed import Future
from distributed.client import FutureCancelledError
from distributed.scheduler import KilledWorker

from panpan.batch.cluster.roster import ANSWER_S, Roster, told
from panpan.batch.cluster.worker import WorkerEnd, run_on_worker, seat_name
from panpan.batch.store.records import AttemptEnd, Job, Stopped, Unfit

_STOP_S = 12.0
"""Time for an attempt to stop on its worker."""
_SETTLED_S = 2.0
"""Time in which a job that was submitted reaches a worker."""


class _Run:
    """One submission of a job."""

    def __init__(self, future: "Future[str]", now: float) -> None:
        self.future = future
        self.began_at = now
        self.scope = CancelScope()
        self.worker = ""
        self.has_ended = anyio.Event()


def _is_of_machine(ended: WorkerEnd) -> bool:
    """True if a worker could not run an attempt, and would run no other."""
    return bool(ended.worker) and isinstance(ended.end, Unfit) and ended.end.is_of_machine


class ClusterRuns:
    """The runs of one coordinator.

    Args:
        runner: Function that runs an attempt on a worker, as `module:name`.
    """

    def __init__(self, runner: str) -> None:
        self._runner = runner
        self._runs: dict[str, _Run] = {}
        self._start = secrets.token_hex(4)  # keys of an earlier coordinator may still be known to the scheduler
        self._count = 0

    async def run(self, job: Job, roster: Roster) -> AttemptEnd:
        """Run an attempt to its end, on another worker if the first is lost, leaves or is unfit."""
        while True:
            ended = await self._run_once(job, roster)
            if ended is None or ended.has_left:
                continue
            if _is_of_machine(ended) and roster.slots:
                continue  # on another worker, for the slots of that one are out
            return ended.end

    async def submit_lost(self, roster: Roster) -> None:
        """Submit runs again that no worker has, since Dask does not offer them to a worker that became fit later."""
        old = anyio.current_time() - _SETTLED_S
        pending = {
            key: run
            for key, run in self._runs.items()
            if run.began_at < old and run.future.status == "pending" and not roster.lists(run.worker)
        }
        if not (pending and roster.slots):
            return
        with suppress(Exception), anyio.move_on_after(ANSWER_S):  # asked again soon
            processing = await roster.remote().processing(workers=None)
            held = {key for keys in processing.values() for key in keys}
            for key, run in pending.items():
                if key not in held:
                    run.scope.cancel()

    def take_event(self, event: tuple[float, Any]) -> None:
        """Note the begin and the end of a run, as its worker tells them."""
        match event:
            case (_, {"key": str(key), "state": "began" | "ended" as state, "worker": str(worker)}):
                if (run := self._runs.get(key)) is not None:
                    run.worker = worker
                    if state == "ended":
                        run.has_ended.set()

    async def _run_once(self, job: Job, roster: Roster) -> WorkerEnd | None:
        """Run an attempt on one worker; None if it was lost and is to be submitted again."""
        key, run = self._submit(job, roster)
        try:
            with run.scope:
                text = await run.future
        except FutureCancelledError:
            return WorkerEnd(end=Stopped(reason="the connection to the scheduler was lost"))
        except KilledWorker as error:
            return WorkerEnd(end=Unfit(reason=f"several workers died with this attempt: {told(error)}"))
        except Exception as error:  # of the attempt, after all its retries
            return WorkerEnd(end=Unfit(reason=f"it failed on the workers: {told(error)}"))
        except BaseException:
            with CancelScope(shield=True), anyio.move_on_after(_STOP_S):
                await self._stop(run, roster)
            raise
        finally:
            del self._runs[key]
            run.future.release()
        if run.scope.cancelled_caught:
            return None
        ended = WorkerEnd.model_validate_json(text)
        if _is_of_machine(ended) and isinstance(ended.end, Unfit):
            await roster.withdraw(ended.worker, ended.end.reason)
        return ended

    def _submit(self, job: Job, roster: Roster) -> tuple[str, _Run]:
        self._count += 1
        key = f"panpan-{job.campaign_id}-{job.task_id}-{job.attempt}-{self._start}{self._count}"
        needs = {seat_name(job.campaign_id): 1} | ({"GPU": job.gpus} if job.gpus else {})
        future = roster.client.submit(
            run_on_worker, job.model_dump_json(), key, self._runner, key=key, retries=3, pure=False, resources=needs
        )
        run = self._runs[key] = _Run(future, anyio.current_time())
        return key, run

    async def _stop(self, run: _Run, roster: Roster) -> None:
        """Cancel a run, and wait until its worker has stopped it."""
        await roster.client.cancel([run.future], force=True)
        if run.worker:
            await run.has_ended.wait()
