"""The runs of panpan that bring the session of an attempt to its end.

The rule: each prompt reaches the model once. Its session's log says if it did, so that a kill at any moment leads to
the same prompt again or to none.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from anyio import CancelScope, to_thread

from panpan.batch.attempts.commands import UnfitError
from panpan.batch.attempts.notes import Notes
from panpan.batch.attempts.panpan_run import Again, Asked, Halted, NextStep, Over, RunEnd, judge, run_panpan
from panpan.batch.attempts.protection import protecting_flags
from panpan.batch.attempts.workspace import linked_places
from panpan.batch.store.folder import AttemptFolder
from panpan.batch.store.lease import Lease
from panpan.batch.store.records import Answer, FrozenCampaign, Job, Needs, Stopped, Task, Waiting
from panpan.errors import ConfigError, OutputError
from panpan.integrations.headless import headless_command
from panpan.session.stored.progress import SessionProgress
from panpan.system.files.file_lock import is_locked
from panpan.types.dataclass import dataclass

GO_ON = (
    "This work was interrupted, and its last step may be half done. Look at what is there, then go on with the task "
    "until it is done."
)
ANSWERED = "You asked the user, who has answered. Go on with the task until it is done."
OVERTIME_S = 60.0
"""Seconds beyond its own limit after which a run counts as hanging."""
PATIENCE_S = 60.0
"""Seconds to wait for an earlier run that is still ending."""
_PATIENCE_LOOK_S = 1.0
_PAUSES_S = (5.0, 20.0, 60.0)


@dataclass(frozen=True, slots=True)
class Ready:
    """Everything that a run needs of an attempt that is set up."""

    job: Job
    frozen: FrozenCampaign
    task: Task
    folder: AttemptFolder
    workspace: Path
    """The folder in which panpan works."""
    venv: Path | None
    pace: Path
    """Folder in which all attempts share the pace of their requests."""
    environ: Mapping[str, str]
    """Whole environment of panpan."""
    panpan: Sequence[str]
    """Command line that starts it."""


class SessionRuns:
    """The runs of one attempt.

    Args:
        ready: The attempt.
        notes: What is known of it.
        lease: Held by this process.
        sleep: Pauses between runs.
        clock: Seconds that never go back.
        stop_s: Returns the seconds that a run has to end in good order.
        before_start: Called just before panpan starts.
    """

    def __init__(
        self,
        ready: Ready,
        notes: Notes,
        lease: Lease,
        *,
        sleep: Callable[[float], Awaitable[None]],
        clock: Callable[[], float],
        stop_s: Callable[[], float],
        before_start: Callable[[], None],
    ) -> None:
        self._ready = ready
        self._notes = notes
        self._lease = lease
        self._sleep = sleep
        self._clock = clock
        self._stop_s = stop_s
        self._before_start = before_start
        self._settings = ready.frozen.campaign.attempt
        self._waited_since: float | None = None

    async def run(self) -> Over | Waiting | Stopped:
        """Run panpan until the session is over, or needs a person.

        Raises:
            UnfitError: This machine has no key or no model, so that the session could not begin.
            ConfigError: The same for another reason, such as a wrong flag.
        """
        while True:
            end, knows_unfinished = await self._run_once()
            if end.exit_code == ConfigError.exit_code and not (await self._notes.progress()).prompts:
                raise (UnfitError if end.lacks_model else ConfigError)(end.message)
            await self.take_in_answer()
            step = judge(end, stops_at_questions=self._settings.when_asked == "stop", knows_unfinished=knows_unfinished)
            if not (isinstance(step, Again) and step.why in ("held", "running")):
                self._waited_since = None
            if (last := await self._after(step)) is not None:
                return last

    async def take_in_answer(self) -> None:
        """Remove the question and its answer once the model has the answer."""
        after = self._notes.state.answered_after
        if after is not None and (await self._notes.progress()).prompts > after:
            self._ready.folder.forget_needs()
            await self._notes.note(answered_after=None)

    async def _run_once(self) -> tuple[RunEnd, bool]:
        await self.take_in_answer()
        await self._wait_until_free()
        progress, answer = await self._notes.progress(), self._ready.folder.answer()
        # `self._notes.state.flags` has those of the answer already if a killed run was to take it
        is_new = answer is not None and self._notes.state.answered_after is None
        flags = (*self._notes.state.flags, *(answer.flags if answer is not None and is_new else ()))
        after = progress.prompts if answer is not None else None
        argv = self._command_line(progress, answer, flags)
        await self._notes.begin_run(flags=flags, answered_after=after)
        await self._lease.confirm()
        self._before_start()
        try:
            end = await run_panpan(
                argv,
                folder=self._ready.workspace,
                env=self._ready.environ,
                events=self._ready.folder.events,
                timeout_s=self._outer_limit(),
                stop_s=self._stop_s,
            )
        except BaseException:
            self._notes.end_run()
            if self._stop_s() > 0:  # else the attempt is another worker's
                with CancelScope(shield=True), suppress(OutputError):
                    await self._notes.note()
            raise
        self._notes.end_run()
        return end, "--unfinished" in argv

    def _command_line(self, progress: SessionProgress, answer: Answer | None, flags: Sequence[str]) -> list[str]:
        ready, settings = self._ready, self._settings
        limits = ready.job.limits
        unfinished = answer.unfinished if answer is not None and answer.unfinished else None
        if unfinished is None and settings.unfinished == "unclear":
            unfinished = "unclear"
        own = {
            "--when-asked": settings.when_asked,
            "--max-budget-usd": limits.usd,
            "--max-tokens": limits.tokens,
            "--max-seconds": limits.seconds,
            "--unfinished": unfinished,
            "--add-dir": ready.venv,
            "--set": f"retry.shared_folder={ready.pace}",
        }
        protecting = protecting_flags(ready.folder.campaign, tuple(linked_places(ready.frozen)))
        words = [word for flag, value in own.items() if value is not None for word in (flag, str(value))]
        return headless_command(
            _prompt(ready.task, progress, answer),
            command=ready.panpan,
            model=ready.task.model,
            session_id=self._notes.state.session_id,
            max_turns=settings.max_turns,
            flags=(*settings.flags, *flags, *words, *protecting, "--end-with-parent"),
        )

    def _outer_limit(self) -> float | None:
        limit = self._ready.job.limits.seconds
        return None if limit is None else max(limit - self._notes.state.seconds, 0.0) + OVERTIME_S

    async def _wait_until_free(self) -> None:
        """Wait for an earlier run of a worker that was killed, if it is still ending."""
        log = await self._notes.log()
        began = self._clock()
        while log is not None and is_locked(log) and self._clock() - began < PATIENCE_S:
            await self._sleep(_PATIENCE_LOOK_S)

    async def _after(self, step: NextStep) -> Over | Waiting | Stopped | None:
        """Return the end, or None if the session goes on."""
        match step:
            case Over():
                return step
            case Halted(message=message):
                await self._notes.note()
                return Stopped(reason=f"panpan was asked to end by a signal: {message}")
            case Asked(needs=needs):
                return await self._ask(needs)
            case Again(why="held" | "running"):
                return await self._wait(step)
            case Again(why=why, message=message, pause_s=pause_s):
                failures = self._notes.state.failures + 1
                await self._notes.note(failures=failures)
                if failures > self._settings.retries:
                    return Over("error", f"{message} (after {failures} failed runs)")
                if why == "error":
                    await self._sleep(max(_PAUSES_S[min(failures, len(_PAUSES_S)) - 1], pause_s))
                return None

    async def _wait(self, step: Again) -> Waiting | Stopped | None:
        """Give what is left of an earlier run some time."""
        now = self._clock()
        if self._waited_since is None:
            self._waited_since = now
        if now - self._waited_since < PATIENCE_S:
            await self._sleep(_PATIENCE_LOOK_S)
            return None
        return Stopped(reason=step.message) if step.needs is None else await self._ask(step.needs)

    async def _ask(self, needs: Needs) -> Waiting:
        self._ready.folder.forget_needs()  # an answer that did not help
        await self._notes.note(answered_after=None)
        await to_thread.run_sync(self._ready.folder.write_needs, needs)
        return Waiting(needs=needs)


def _prompt(task: Task, progress: SessionProgress, answer: Answer | None) -> str:
    """Return the prompt of the next run."""
    if not progress.prompts:
        return task.prompt
    if answer is not None:
        return answer.text or (GO_ON if answer.unfinished else ANSWERED)
    return GO_ON
