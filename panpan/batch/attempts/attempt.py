"""One attempt at a task, run on this machine to its end, from wherever earlier runs of it were killed.

The rule: what must not happen twice is on the disk before it happens. The session's log says which prompts the model
has, `attempt.json` says the rest, and `result.json` is written once and before anybody is told of it.
"""

import os
import socket
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import field
from itertools import pairwise
from pathlib import Path
from typing import Literal
from uuid import uuid4

import anyio
from anyio import CancelScope, to_thread
from anyio.lowlevel import checkpoint

from panpan.batch.attempts.commands import (
    Command,
    Ground,
    UnfitError,
    ground_at,
    require_command,
    run_command,
)
from panpan.batch.attempts.environment import (
    HeldPorts,
    attempt_variables,
    make_uv_environment,
    uv_cache_folder,
    uv_variables,
)
from panpan.batch.attempts.notes import Notes
from panpan.batch.attempts.panpan_run import PANPAN, STOP_S, Over
from panpan.batch.attempts.session_runs import Ready, SessionRuns
from panpan.batch.attempts.workspace import changes_of, linked_places, make_workspace, remove_workspace, working_folder
from panpan.batch.definition.campaign import CommandLine
from panpan.batch.store.folder import CampaignFolder
from panpan.batch.store.lease import Lease, LeaseLostError
from panpan.batch.store.records import (
    AttemptEnd,
    AttemptState,
    Changes,
    Finished,
    FrozenCampaign,
    Job,
    Result,
    Status,
    Stopped,
    Task,
    Unfit,
    Verdict,
    Waiting,
)
from panpan.errors import OutputError, PanpanError, ToolError, unwrap_single_exception
from panpan.receipts.receipt import utc_now
from panpan.system.files.folder_tree import remove_tree
from panpan.system.sandbox.command_sandbox import FindSandbox, find_when_needed
from panpan.types.dataclass import dataclass

_LEAST_S = 1.0
"""Seconds of a command whose earlier runs, which were cut off, took all its time."""
_LOOK_S = 1.0
"""Seconds between two looks if a person has stopped the attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """The process that runs attempts, as far as tests need another one."""

    panpan: Sequence[str] = PANPAN
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    find: FindSandbox = find_when_needed
    """Looks which sandbox works."""
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    host: str = field(default_factory=socket.gethostname)
    stop_s: float = STOP_S
    """Seconds that panpan has to end in good order."""


async def run_attempt(job: Job, gpus: Sequence[str] = (), *, worker: Worker | None = None) -> AttemptEnd:
    """Run an attempt to its end on this machine, or go on with one that was begun.

    It can be called again after any kill, and from two machines at once: one works and the other waits. Cancelling the
    call stops the attempt, so that it can go on later.

    Args:
        job: The attempt.
        gpus: GPUs that it may use.
        worker: This process.
    """
    campaign = CampaignFolder(Path(job.folder))
    try:
        frozen = await to_thread.run_sync(campaign.frozen)
        if frozen.id != job.campaign_id:
            reason = f"this machine sees another folder at {job.folder}; mount the same one everywhere"
            return Unfit(reason=reason, is_of_machine=True)
        if (result := campaign.attempt(job.task_id, job.attempt).result()) is not None:
            return Finished(result=result)
        task = await to_thread.run_sync(campaign.task, job.task_id)
        return await _Attempt(job, gpus, worker or Worker(), campaign, frozen, task).run()
    except (LeaseLostError, OutputError) as error:  # as on a full disk, which is full for all machines
        return Stopped(reason=str(error))
    except PanpanError as error:
        return Unfit(reason=str(error), is_of_machine=isinstance(error, UnfitError))


class _Attempt:
    """An attempt on its way in this process."""

    def __init__(
        self,
        job: Job,
        gpus: Sequence[str],
        worker: Worker,
        campaign: CampaignFolder,
        frozen: FrozenCampaign,
        task: Task,
    ) -> None:
        self._job = job
        self._gpus = gpus
        self._worker = worker
        self._campaign = campaign
        self._frozen = frozen
        self._task = task
        self._folder = campaign.attempt(job.task_id, job.attempt)
        self._venv = self._folder.venv if frozen.campaign.workspace.environment == "uv" else None
        self._lease = Lease(self._folder.lease, wait=True, on_lost=self._lose)
        self._runs: SessionRuns | None = None
        self._why_halted: Literal["", "cancel", "stop", "lost"] = ""

    async def run(self) -> AttemptEnd:
        """Run it while nobody else does."""
        await to_thread.run_sync(self._make_folder)
        async with self._lease:
            if (result := self._folder.result()) is not None:
                return Finished(result=result)
            state = self._folder.state() or AttemptState(session_id=str(uuid4()), began_at=utc_now())
            workspace = working_folder(self._frozen, self._folder)
            notes = Notes(self._folder, state, self._frozen.home, workspace, self._worker.clock)
            end: AttemptEnd | None = None
            with CancelScope() as body, unwrap_single_exception():
                async with anyio.create_task_group() as watching:
                    await self._look(body)
                    watching.start_soon(self._watch, body, notes)
                    end = await self._go(notes, workspace)
                    watching.cancel_scope.cancel()
            return end or await self._halted(notes)

    def _make_folder(self) -> None:
        try:
            self._folder.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{self._folder.path} cannot be made: {error.strerror}") from error

    # stopping

    def _lose(self) -> None:
        self._why_halted = "lost"

    def _stop_s(self) -> float:
        """Return the time that panpan has to end in good order; none if another worker may begin in a moment."""
        return 0.0 if self._why_halted == "lost" else self._worker.stop_s

    async def _watch(self, body: CancelScope, notes: Notes) -> None:
        while True:
            await self._worker.sleep(_LOOK_S)
            await self._look(body)
            if self._runs is not None:
                await self._runs.take_in_answer()
            await notes.note_time()

    async def _look(self, body: CancelScope) -> None:
        """Halt the attempt if a person wants that."""
        is_cancelled, is_stopped = await to_thread.run_sync(
            lambda: (self._folder.cancel.exists(), self._campaign.stop.exists())
        )
        if is_cancelled or is_stopped:
            self._why_halted = "cancel" if is_cancelled else "stop"
            body.cancel()
            await checkpoint()

    async def _halted(self, notes: Notes) -> AttemptEnd:
        if (result := self._folder.result()) is not None:  # it was written in the same moment
            return Finished(result=result)
        if self._why_halted == "cancel":
            return await self._finished(notes, Over("cancel", ""), None)
        return Stopped(reason="the campaign was stopped")

    # the way to its end

    async def _go(self, notes: Notes, workspace: Path) -> AttemptEnd:
        needs = self._folder.needs()
        if needs is not None and self._folder.answer() is None and notes.state.ended_by is None:
            return Waiting(needs=needs)
        await self._forget_cut_off_command(notes)
        base = await make_workspace(self._frozen, self._folder)
        with HeldPorts(self._frozen.campaign.attempt.ports) as ports:
            variables = attempt_variables(
                self._task,
                self._job.attempt,
                gpus=self._gpus,
                ports=ports.numbers,
                venv=self._venv,
                path=self._worker.environ.get("PATH", ""),
            )
            async with self._ground(workspace) as ground:
                if not notes.state.is_set_up:
                    await self._set_up(ground, variables)
                    notes.remember(base=base, is_set_up=True)
                    if self._has_setup:
                        await notes.note()
                if self._task.command is not None and ground is not None:
                    ports.release()
                    return await self._run_command(self._task.command, notes, ground, variables)
                if notes.state.ended_by is None:
                    self._runs = self._new_runs(notes, workspace, variables, ports)
                    over = await self._runs.run()
                    if not isinstance(over, Over):
                        return over
                    notes.remember(ended_by=over.ended_by, message=over.message)
                    if self._task.verify is not None:
                        await notes.note()
                ports.release()
                return await self._judged(notes, ground, variables)

    @property
    def _has_setup(self) -> bool:
        """True if the files need more than to be there before the session begins."""
        return self._venv is not None or self._frozen.campaign.workspace.setup is not None

    @asynccontextmanager
    async def _ground(self, workspace: Path) -> AsyncGenerator[Ground | None, None]:
        """Give the place of the campaign's commands, before a model is asked in vain; None if there are no commands."""
        if self._task.verify is None and self._task.command is None and not self._has_setup:
            yield None
            return
        async with ground_at(
            self._folder.workspace,
            workspace,
            self._folder.receipts,
            self._worker.environ,
            home=Path(self._frozen.home),
            is_boxed=not _is_sandbox_off(self._frozen.campaign.attempt.flags),
            linked=linked_places(self._frozen),
            packages=self._folder.packages,
            find=self._worker.find,
        ) as ground:
            yield ground

    async def _set_up(self, ground: Ground | None, variables: Mapping[str, str]) -> None:
        if ground is None:
            return
        settings, environ = self._frozen.campaign.workspace, self._worker.environ
        writable: Sequence[Path] = ()
        if self._venv is not None:
            await make_uv_environment(ground, settings, self._venv, variables)
            writable = (self._venv, uv_cache_folder(environ))
            variables = {**variables, **uv_variables(environ)}
        if settings.setup is not None:
            line = Command("setup", settings.setup, settings.setup_timeout_s, has_network=True, writable=writable)
            await require_command(line, ground, variables)

    # the command of a task

    async def _forget_cut_off_command(self, notes: Notes) -> None:
        """Let a command that was cut off begin from new files: nobody knows what it has left half-done."""
        if self._task.command is not None and notes.state.tries and notes.state.base:
            await notes.note(base="", is_set_up=False)

    async def _run_command(
        self, command: CommandLine, notes: Notes, ground: Ground, variables: Mapping[str, str]
    ) -> Finished:
        """Run the command of the task, and write the result."""
        limit = self._job.limits.seconds
        left_s = command.timeout_s if limit is None else max(limit - notes.state.seconds, _LEAST_S)
        line = Command(
            "command",
            command.command,
            min(command.timeout_s, left_s),
            has_network=command.network,
            writable=[] if self._venv is None else [self._venv],
            output=self._folder.output,
        )
        await notes.begin_run()
        await self._lease.confirm()
        try:
            verdict, over = await run_command(line, ground, variables), Over("exit", "")
        except ToolError as error:
            verdict, over = None, Over("error", f"the command could not run: {error}")
        except BaseException:
            notes.end_run()
            with CancelScope(shield=True), suppress(OutputError):
                await notes.note()
            raise
        notes.end_run()
        return await self._finished(notes, over, verdict)

    def _new_runs(self, notes: Notes, workspace: Path, variables: Mapping[str, str], ports: HeldPorts) -> SessionRuns:
        ready = Ready(
            self._job,
            self._frozen,
            self._task,
            self._folder,
            workspace,
            self._venv,
            self._campaign.pace,
            {**self._worker.environ, **variables, "PANPAN_HOME": self._frozen.home},
            self._worker.panpan,
        )
        return SessionRuns(
            ready,
            notes,
            self._lease,
            sleep=self._worker.sleep,
            clock=self._worker.clock,
            stop_s=self._stop_s,
            before_start=ports.release,
        )

    # its result

    async def _judged(self, notes: Notes, ground: Ground | None, variables: Mapping[str, str]) -> Finished:
        """Run the verify command on what the session left, and write the result."""
        over = Over(notes.state.ended_by or "answer", notes.state.message)
        verify, verdict = self._task.verify, None
        if ground is not None and verify is not None and over.ended_by != "error":
            writable = [] if self._venv is None else [self._venv]
            line = Command("verify", verify.command, verify.timeout_s, has_network=verify.network, writable=writable)
            try:
                verdict = await run_command(line, ground, variables)
            except ToolError as error:  # as in a workspace that the model has removed
                over = Over("error", f"verify could not run: {error}")
        return await self._finished(notes, over, verdict)

    async def _finished(self, notes: Notes, over: Over, verdict: Verdict | None) -> Finished:
        changes, trouble = await self._changes(notes.state)
        result = Result(
            task_id=self._task.id,
            task=self._task.name,
            axes=self._task.axes,
            model=self._task.model,
            attempt=self._job.attempt,
            session_id=notes.state.session_id if notes.state.tries and self._task.command is None else "",
            status=_status(over, verdict),
            ended_by=over.ended_by,
            message="\n".join(filter(None, (over.message, trouble))),
            verdict=verdict,
            changes=changes,
            spent=await notes.spent(self._job.gpus),
            tries=notes.state.tries,
            host=self._worker.host,
            began_at=notes.state.began_at,
            ended_at=utc_now(),
        )
        await self._lease.confirm()
        await to_thread.run_sync(self._folder.write_result, result)
        if not self._frozen.campaign.workspace.keep:
            await self._remove_files()
        return Finished(result=result)

    async def _remove_files(self) -> None:
        """Remove the workspace and the environment; what cannot be removed stays."""
        with suppress(PanpanError, OSError):
            await remove_workspace(self._frozen, self._folder)
            if self._venv is not None:
                await to_thread.run_sync(remove_tree, self._venv)

    async def _changes(self, state: AttemptState) -> tuple[Changes | None, str]:
        """Return the changes, or the reason that there are none to be had."""
        if not state.base:
            return None, ""
        try:
            return await changes_of(self._frozen, self._folder, state.base, self._task.files), ""
        except OutputError:
            raise
        except PanpanError as error:
            return None, f"its changes are not known: {error}"


def _status(over: Over, verdict: Verdict | None) -> Status:
    if over.ended_by in ("error", "cancel"):
        return "error" if over.ended_by == "error" else "cancelled"
    if verdict is None:
        return "done"
    return "passed" if verdict.exit_code == 0 and not verdict.timed_out else "failed"


def _is_sandbox_off(flags: Sequence[str]) -> bool:
    """True if the user has said that attempts run without a sandbox."""
    return "--sandbox=off" in flags or ("--sandbox", "off") in pairwise(flags)
