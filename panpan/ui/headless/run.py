"""One headless run: open the session, send it the prompts, show what happens, and say with which code to end."""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, aclosing
from time import perf_counter
from typing import Protocol

import anyio

from panpan.core.single_exception import unwrap_single_exception
from panpan.errors import PanpanError
from panpan.services.reply_limits import note_on_end
from panpan.services.sessions.session import Session
from panpan.types.events import TurnEnded
from panpan.types.messages import AssistantMessage, UserMessage
from panpan.ui.headless.face import HeadlessFace, TurnRecord
from panpan.ui.headless.outcome import INTERRUPTED, Outcome, outcome_of_error
from panpan.ui.signals import Received, watch_signals


class MakeFace(Protocol):
    """Makes the face of an output format once the session is open."""

    def __call__(self, session: Session) -> HeadlessFace:
        """Return the face."""
        ...


async def run_headless(
    opening: AbstractAsyncContextManager[Session],
    prompts: AsyncGenerator[UserMessage, None],
    make_face: MakeFace,
    say: Callable[[str], None],
) -> int:
    """Run every prompt as a turn, and return the exit code.

    Args:
        opening: The session, not entered yet.
        prompts: One or more prompts; asked for the next when a turn is over.
        make_face: Makes the face.
        say: Prints one line for the user on standard error.

    Raises:
        PanpanError: The session could not be opened, or a prompt could not be read.
        BrokenPipeError: Nobody reads the output any more.
    """
    received = Received()
    exit_code = 0
    with unwrap_single_exception():
        async with anyio.create_task_group() as task_group, opening as session, aclosing(prompts):
            running = _Running(session)
            stop = task_group.cancel_scope.cancel
            task_group.start_soon(lambda: watch_signals(received, interrupt=running.interrupt, stop=stop))
            face = make_face(session)
            await face.begin()
            async for prompt in prompts:
                outcome = await running.turn(prompt, face)
                for line in _lines_to_say(outcome, running.last_reply):
                    say(line)
                exit_code = outcome.exit_code
                if outcome is INTERRUPTED:
                    break
            stop("every prompt is done")
    return received.exit_code if received.exit_code is not None else exit_code


def _lines_to_say(outcome: Outcome, last_reply: AssistantMessage | None) -> Iterator[str]:
    if outcome.error and outcome is not INTERRUPTED:
        yield outcome.error
    if not outcome.error and last_reply is not None and (note := note_on_end(last_reply)):
        yield note


class _Running:
    """The turn that runs, if one does."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._is_running = False
        self.last_reply: AssistantMessage | None = None

    def interrupt(self) -> bool:
        """End the turn; False where none runs."""
        self._session.interrupt()
        return self._is_running

    async def turn(self, prompt: UserMessage, face: HeadlessFace) -> Outcome:
        """Run one turn to its end, whatever end that is, and show it."""
        record = TurnRecord()
        outcome = Outcome()
        started_at = perf_counter()
        self._is_running = True
        try:
            async with aclosing(self._session.submit(prompt)) as events:
                async for event in events:
                    record.follow(event)
                    await face.show(event)
                    if isinstance(event, TurnEnded) and event.is_interrupted:
                        outcome = INTERRUPTED
        except PanpanError as error:
            outcome = outcome_of_error(error)
        finally:
            self._is_running = False
        self.last_reply = record.last_reply
        await face.end(record, outcome, perf_counter() - started_at)
        return outcome
