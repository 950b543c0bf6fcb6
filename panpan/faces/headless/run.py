"""One headless run: open the session, send it the prompts, show the events, and return the exit code."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from time import perf_counter
from typing import Literal, TypeAlias

import anyio

from panpan.cli_kit.signals import Received, watch_signals
from panpan.core.background import Background
from panpan.errors import AnswerNeededError, ConfigError, PanpanError, ToolError, unwrap_single_exception
from panpan.faces.headless.face import (
    INTERRUPTED,
    HeadlessFace,
    Outcome,
    TurnSummary,
    denials_told,
    outcome_of_end,
    outcome_of_error,
)
from panpan.faces.headless.prompts import Prompt, PromptReader
from panpan.faces.turn_text import note_on_end
from panpan.session.budget.budget import Budget
from panpan.session.budget.spending import Spending
from panpan.session.capability import StructuredAnswer
from panpan.session.descriptions import titles
from panpan.session.session import Session
from panpan.system.text.terminal_text import clean_line
from panpan.types.events import Event, TurnEnded
from panpan.types.messages import UserMessage


class TaskLines:
    """Reports each start and each end of a background task to the face, once.

    Args:
        background: The tasks. Those that have ended already are not reported.
        face: Gets the reports.
    """

    def __init__(self, background: Background, face: HeadlessFace) -> None:
        self._background = background
        self._face = face
        self._ended = {task.id for task in background.tasks if not task.is_running}
        self._started = set(self._ended)

    async def run(self) -> None:
        while True:
            await self.tell()
            await self._background.wait_changed()

    async def tell(self) -> None:
        for task in self._background.tasks:
            if task.id not in self._started:
                self._started.add(task.id)
                await self._face.task_started(task)
            if not task.is_running and task.id not in self._ended:
                self._ended.add(task.id)
                await self._face.task_ended(task)


class SessionTasks:
    """Reports the background tasks of a session, and waits for them or stops them at the end of the run.

    Args:
        session: The session; it has background tasks.
        face: Gets a report when a task starts or ends.
        warn: Prints one line for the user on standard error.
        drains: True to wait for the tasks at the end.
    """

    def __init__(self, session: Session, face: HeadlessFace, warn: Callable[[str], None], *, drains: bool) -> None:
        self.drains = drains
        self._session = session
        self._tasks = session[Background]
        self._warn = warn
        self._lines = TaskLines(self._tasks, face)

    async def tell(self) -> None:
        await self._lines.run()

    async def has_news_before(self, queue: PromptReader) -> bool:
        """Wait for a prompt, the end of the input or task news; return True if news for the model comes first."""
        if not self._session.settings.background.wake:
            return False
        async with anyio.create_task_group() as waiting:
            waiting.start_soon(self._cancel_when_ready, queue, waiting.cancel_scope)
            while not self._session.may_be_woken:
                await self._tasks.wait_changed()
            waiting.cancel_scope.cancel("there is news")
        return not queue.is_ready

    async def _cancel_when_ready(self, queue: PromptReader, scope: anyio.CancelScope) -> None:
        await queue.ready()
        scope.cancel("there is a prompt")

    async def drain(self, wake: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """Wait until no task runs, report each end to the model, and return the outcome of the last turn.

        Args:
            wake: Runs a turn for news that the model does not know yet; after a failed turn it is not called again.
        """
        outcome = Outcome()
        while not outcome.error:
            if self._session.may_be_woken:
                outcome = await wake()
            elif self._tasks.running:
                await self._tasks.wait_changed()
            else:
                break
        return outcome

    async def stop(self) -> None:
        """Stop the tasks that cannot outlive panpan, name them to the user, and report their end to the face."""
        kept = {task.id for task in self._tasks.keepable} if self._tasks.keeps else ()
        going = [task for task in self._tasks.running if task.id not in kept]
        async with anyio.create_task_group() as stopping:
            for task in going:
                stopping.start_soon(self._stop, task.id)
        if going:
            self._warn(f"stopped in the background: {titles(going)}")
        await self._lines.tell()

    async def _stop(self, task_id: str) -> None:
        with suppress(ToolError):  # closing the session names the tasks that cannot be ended
            await self._tasks.stop(task_id)


AtEnd: TypeAlias = Literal["exit", "drain", "stop"]
"""Fate of background tasks at the end of a run: left running, waited for, or stopped."""

_MOST_CHARS = 80
"""Most characters that are quoted from a message that did not reach the model."""

LAST_WORD_S = 1.0
"""Seconds that a reader has to take the result after a signal ended the run."""


async def run_headless(
    opening: AbstractAsyncContextManager[Session],
    prompts: AsyncGenerator[Prompt, None],
    make_face: Callable[[Session], HeadlessFace],
    *,
    say: Callable[[str], None],
    warn: Callable[[str], None],
    show_failed_start: Callable[[PanpanError], Awaitable[None]],
    background: AtEnd | None = None,
    has_one_prompt: bool = True,
    ends_well: Callable[[], bool] = lambda: False,
    take_reader: Callable[[PromptReader], None] = lambda _: None,
) -> int:
    """Run every prompt as a turn, and return the exit code; see `_Run.exit_code`.

    Args:
        opening: The session, not entered yet.
        prompts: One or more prompts; also read while turns run.
        make_face: Makes the face of the output format once the session is open.
        say: Prints one line for the user on standard error.
        warn: Does the same with lines that the user may have turned off.
        show_failed_start: Shows the error of a session that could not be opened, since there is no face yet.
        background: Fate of background tasks when all prompts are done; None: as in the settings.
        has_one_prompt: True if there is only one prompt, whose result then comes last.
        ends_well: True if the results tell all that a caller needs, so that the exit code is 1 only if the last turn
            failed for another reason than a limit or an interrupt.
        take_reader: Given the reader of the prompts before it reads.

    Raises:
        PanpanError: The session could not be opened, or the output not be written.
        BrokenPipeError: Nobody reads the output any more.
    """
    received = Received()
    run = _Run(received, say, warn, has_one_prompt=has_one_prompt, ends_well=ends_well)
    try:
        with unwrap_single_exception():
            async with anyio.create_task_group() as task_group, opening as session:
                stop = task_group.cancel_scope.cancel
                task_group.start_soon(
                    lambda: watch_signals(received, interrupt=lambda _: session.interrupt(), stop=stop)
                )
                run.face = make_face(session)
                run.take_budget(session.budget)
                await run.face.begin()
                if (tasks := session.find(Background)) is not None:
                    if background is not None:
                        tasks.keep_at_exit(keeps=background == "exit")
                    run.background = SessionTasks(session, run.face, warn, drains=background == "drain")
                    task_group.start_soon(run.background.tell)
                said = (message.uuid for message in session.conversation.messages if isinstance(message, UserMessage))
                queue = run.queue = PromptReader(prompts, session.steering, session.steer, said)
                take_reader(queue)
                task_group.start_soon(queue.read)
                await run.turns(session, queue)
                stop("every prompt is done")
    except PanpanError as error:
        if run.face is None:
            await show_failed_start(error)
        raise
    if received.exit_code is not None:
        await run.cut_short()
        run.tell_what_waits()
        return received.exit_code
    return run.last_exit_code if ends_well() else run.exit_code


class _Run:
    """The turns of a run, and how they ended."""

    def __init__(
        self,
        received: Received,
        say: Callable[[str], None],
        warn: Callable[[str], None],
        *,
        has_one_prompt: bool,
        ends_well: Callable[[], bool],
    ) -> None:
        self.face: HeadlessFace | None = None
        self.queue: PromptReader | None = None
        self.background: SessionTasks | None = None
        self._failure = 0
        self._last = Outcome()
        self._has_refused_call = False
        self._has_allowed_call = False
        self._received = received
        self._say = say
        self._warn = warn
        self._has_one_prompt = has_one_prompt
        self._ends_well = ends_well
        self._summary = TurnSummary()
        self._has_result = False
        """True if the newest turn was shown to its end."""
        self._budget = Budget()
        self._told = Spending()
        """Part of the budget that earlier results have reported, or that was spent before this run."""
        self._first = self._told
        """Part of it that was spent before this run."""

    @property
    def exit_code(self) -> int:
        """Exit code of the first turn that failed; that of `AnswerNeededError` if every call was refused."""
        is_refused = self._has_refused_call and not self._has_allowed_call
        return self._failure or (AnswerNeededError.exit_code if is_refused else 0)

    @property
    def last_exit_code(self) -> int:
        """1 if the last turn failed for another reason than a limit or an interrupt."""
        last = self._last
        return int(last.subtype == INTERRUPTED.subtype and last is not INTERRUPTED)

    def take_budget(self, budget: Budget) -> None:
        """Let results report the spending of `budget` from now on."""
        self._budget, self._told, self._first = budget, budget.spent, budget.spent

    async def turns(self, session: Session, queue: PromptReader) -> None:
        """Run the prompts one after the other; an interrupt ends the running turn, and the waiting ones still run."""
        outcome = Outcome()
        while True:
            if not outcome.error and await self._has_news_before(queue):
                with queue.turn():
                    outcome = await self._woken_turn(session)
                continue
            try:
                prompt = await queue.next()
            except ConfigError as error:  # a prompt that cannot be read ends the run, with a result of its own
                self._begin()
                await self._end(outcome_of_error(error), 0.0)
                return
            if prompt is None:
                break
            with queue.turn():
                outcome = await self._turn(session, prompt)
            if outcome is INTERRUPTED and (self._has_one_prompt or self._received.exit_code is not None):
                return
        if not self._has_one_prompt and self.background is not None:
            if self.background.drains:
                await self.background.drain(lambda: self._woken_turn(session))
            await self.background.stop()

    async def _has_news_before(self, queue: PromptReader) -> bool:
        if self._has_one_prompt or self.background is None:
            return False
        return await self.background.has_news_before(queue)

    async def cut_short(self) -> None:
        """Show the result of a turn that a signal has ended, if a reader still takes it."""
        if self.face is not None and not self._has_result:
            with anyio.move_on_after(LAST_WORD_S), suppress(BrokenPipeError):
                await self._end(INTERRUPTED, 0.0)

    def tell_what_waits(self) -> None:
        """Report the messages that were read and that no turn has received."""
        if self.queue is not None and (waiting := self.queue.waiting):
            number = "1 message" if len(waiting) == 1 else f"{len(waiting):,} messages"
            self._say(
                f"{number} of the input did not reach the model, the first: {clean_line(waiting[0].text)[:_MOST_CHARS]}"
            )

    async def _turn(self, session: Session, prompt: UserMessage) -> Outcome:
        """Run one turn and show its result; with a single prompt, include the background tasks that it has started."""
        self._begin()
        started_at = perf_counter()
        self._summary.note_prompt(prompt)
        assert self.face is not None
        await self.face.prompt_taken(prompt, is_named=self.queue is not None and prompt.uuid in self.queue.named)
        outcome = await self._run(session, session.submit(prompt))
        if self._has_one_prompt and outcome is not INTERRUPTED and self.background is not None:
            if self.background.drains and not outcome.error:
                outcome = await self.background.drain(lambda: self._wake(session))
            await self.background.stop()
        await self._end(outcome, perf_counter() - started_at)
        return outcome

    async def _wake(self, session: Session) -> Outcome:
        return await self._run(session, session.wake())

    async def _woken_turn(self, session: Session) -> Outcome:
        """Wake the model in a turn with a result of its own."""
        self._begin()
        started_at = perf_counter()
        outcome = await self._wake(session)
        await self._end(outcome, perf_counter() - started_at)
        return outcome

    async def _run(self, session: Session, turn: AsyncGenerator[Event, None]) -> Outcome:
        assert self.face is not None
        outcome = Outcome()
        try:
            async with aclosing(turn) as events:
                async for event in events:
                    self._summary.follow(event)
                    await self.face.show(event)
                    if isinstance(event, TurnEnded):
                        outcome = outcome_of_end(event)
        except PanpanError as error:
            outcome = outcome_of_error(error)
            self._summary.note_files(session.turn_files)
        except Exception as error:  # a bug; the result is shown, and the report is written above
            await self._show(Outcome("error_during_execution", 1, f"unexpected {type(error).__name__}"), 0.0)
            raise
        if not outcome.error and self._summary.rounds and (answer := session.find(StructuredAnswer)) is not None:
            self._summary.note_structured(answer.values)
        return outcome

    def _begin(self) -> None:
        self._summary = TurnSummary()
        self._has_result = False

    async def _show(self, outcome: Outcome, duration_s: float) -> None:
        assert self.face is not None
        self._has_result = True
        spent = self._budget.spent
        if self.queue is not None:
            self._summary.keep_named(self.queue.named)
        since = spent.since(self._told)
        # programs on the Agent SDK read the costs of the newest result alone
        self._summary.note_spent(since, spent.since(self._first) if self._ends_well() else since)
        self._told = spent
        await self.face.end(self._summary, outcome, duration_s)

    async def _end(self, outcome: Outcome, duration_s: float) -> None:
        await self._show(outcome, duration_s)
        self._failure = self._failure or outcome.exit_code
        self._last = outcome
        self._has_refused_call = self._has_refused_call or bool(self._summary.denials)
        self._has_allowed_call = self._has_allowed_call or self._summary.has_allowed_call
        reply = self._summary.last_reply
        note = note_on_end(reply) if reply is not None and not outcome.error else None
        if self._summary.verification is not None:
            self._say(clean_line(self._summary.verification.line))
        if outcome is not INTERRUPTED and (line := outcome.error or note):
            self._say(line)
        for line in () if self._ends_well() or outcome.asked is not None else denials_told(self._summary):
            self._warn(line)
