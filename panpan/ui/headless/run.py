"""One headless run: open the session, send it the prompts, show what happens, and say with which code to end."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from time import perf_counter

import anyio

from panpan.core.single_exception import unwrap_single_exception
from panpan.errors import ConfigError, PanpanError
from panpan.services.reply_limits import note_on_end
from panpan.services.sessions.session import Session
from panpan.types.events import TurnEnded
from panpan.types.messages import UserMessage
from panpan.ui.headless.face import HeadlessFace, TurnSummary
from panpan.ui.headless.outcome import INTERRUPTED, Outcome, outcome_of_error
from panpan.ui.signals import Received, watch_signals

LAST_WORD_S = 1.0
"""What a reader gets to take the result of a run that was told to end."""


async def run_headless(
    opening: AbstractAsyncContextManager[Session],
    prompts: AsyncGenerator[UserMessage, None],
    make_face: Callable[[Session], HeadlessFace],
    *,
    say: Callable[[str], None],
    warn: Callable[[str], None],
    show_failed_start: Callable[[PanpanError], Awaitable[None]],
) -> int:
    """Run every prompt as a turn, and return the exit code: that of the first turn that did not end well.

    Args:
        opening: The session, not entered yet.
        prompts: One or more prompts; asked for the next when a turn is over.
        make_face: Makes the face of the output format once the session is open.
        say: Prints one line for the user on standard error.
        warn: Does the same with what he may have asked not to hear.
        show_failed_start: Shows the error of a session that could not be opened, where there is no face yet.

    Raises:
        PanpanError: The session could not be opened, or the output not be written.
        BrokenPipeError: Nobody reads the output any more.
    """
    received = Received()
    run = _Run(say, warn)
    try:
        with unwrap_single_exception():
            async with anyio.create_task_group() as task_group, opening as session, aclosing(prompts):
                stop = task_group.cancel_scope.cancel
                task_group.start_soon(lambda: watch_signals(received, interrupt=session.interrupt, stop=stop))
                run.face = make_face(session)
                await run.face.begin()
                await run.turns(session, prompts)
                stop("every prompt is done")
    except PanpanError as error:
        if run.face is None:
            await show_failed_start(error)
        raise
    if received.exit_code is not None:
        await run.cut_short()
        return received.exit_code
    return run.exit_code


class _Run:
    """The turns of a run, and how they ended."""

    def __init__(self, say: Callable[[str], None], warn: Callable[[str], None]) -> None:
        self.face: HeadlessFace | None = None
        self.exit_code = 0
        self._say = say
        self._warn = warn
        self._summary = TurnSummary()
        self._has_result = False
        """Whether the newest turn was shown to its end."""

    async def turns(self, session: Session, prompts: AsyncGenerator[UserMessage, None]) -> None:
        """Run the prompts one after the other, until the last, or until the user interrupts one."""
        while True:
            try:
                prompt = await anext(prompts, None)
            except ConfigError as error:  # a prompt that cannot be read ends the run, with a result of its own
                self._begin()
                await self._end(outcome_of_error(error), 0.0)
                return
            if prompt is None or await self._turn(session, prompt) is INTERRUPTED:
                return

    async def cut_short(self) -> None:
        """Show the result of what a signal has ended, if a reader still takes it."""
        if self.face is not None and not self._has_result:
            with anyio.move_on_after(LAST_WORD_S), suppress(BrokenPipeError):
                await self._end(INTERRUPTED, 0.0)

    async def _turn(self, session: Session, prompt: UserMessage) -> Outcome:
        """Run one turn to its end, whatever end that is, and show it."""
        assert self.face is not None
        self._begin()
        outcome = Outcome()
        started_at = perf_counter()
        try:
            async with aclosing(session.submit(prompt)) as events:
                async for event in events:
                    self._summary.follow(event)
                    await self.face.show(event)
                    if isinstance(event, TurnEnded) and event.is_interrupted:
                        outcome = INTERRUPTED
        except PanpanError as error:
            outcome = outcome_of_error(error)
            self._summary.files = session.turn_files  # of a turn that failed no event tells
        except Exception as error:  # a bug; the result is shown, and the report is written above
            await self._show(Outcome("error_during_execution", 1, f"unexpected {type(error).__name__}"), 0.0)
            raise
        await self._end(outcome, perf_counter() - started_at)
        return outcome

    def _begin(self) -> None:
        self._summary = TurnSummary()
        self._has_result = False

    async def _show(self, outcome: Outcome, duration_s: float) -> None:
        assert self.face is not None
        self._has_result = True
        await self.face.end(self._summary, outcome, duration_s)

    async def _end(self, outcome: Outcome, duration_s: float) -> None:
        """Show how a turn ended, and say what the user should know of it."""
        await self._show(outcome, duration_s)
        self.exit_code = self.exit_code or outcome.exit_code
        reply = self._summary.last_reply
        note = note_on_end(reply) if reply is not None and not outcome.error else None
        if outcome is not INTERRUPTED and (line := outcome.error or note):
            self._say(line)
        if denials := self._summary.denials:
            names = ", ".join(dict.fromkeys(use.name for use in denials))
            self._warn(
                f"not allowed, and not run: {len(denials)} of the calls ({names}); with -p or a pipe nobody is asked: "
                "say what is allowed (--allowedTools, --yes, --permission-mode; none is for protected files, nor for "
                "leaving the sandbox), or run panpan without -p"
            )
