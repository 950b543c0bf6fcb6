"""Runs the turns of a session one after the other, and keeps the messages that the user sends meanwhile.

The rule: a message is shown as waiting until the model has it. An undelivered one goes back into the input box.
"""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import aclosing

import anyio

from panpan.errors import PanpanError, unwrap_single_exception
from panpan.faces.terminal.screen.screen import TurnRenderer
from panpan.faces.terminal.views.turn_view import PacedRenderer
from panpan.faces.turn_text import note_on_end
from panpan.session.session import Session
from panpan.types.messages import AssistantMessage, UserMessage


class TurnRunner:
    """Runs prompts as turns of a session.

    Args:
        session: The session.
        view: Shows the events of the turns.
        give_back: Gets the text of undelivered messages.
        is_held_up: Returns True if waking the model has to wait for something else.
    """

    def __init__(
        self,
        session: Session,
        view: TurnRenderer,
        return_prompt: Callable[[str], None],
        is_held_up: Callable[[], bool] = lambda: False,
    ) -> None:
        self._session = session
        self._view = view
        self._return_prompt = return_prompt
        self._is_held_up = is_held_up
        self._is_wake_wanted = False
        self._queue: deque[UserMessage] = deque()
        self._notes: list[UserMessage] = []
        """Messages about the user's own actions during a turn; added after it, since they need no reply."""
        self._has_work = anyio.Event()
        self._is_running = False
        self._is_stopped = False
        """True if the turn was interrupted or failed, so that the user sees it before anything else is sent."""

    @property
    def is_busy(self) -> bool:
        return self._is_running or bool(self._queue)

    @property
    def steering(self) -> tuple[UserMessage, ...]:
        return tuple(self._session.steering.waiting)

    @property
    def queued(self) -> tuple[UserMessage, ...]:
        return tuple(self._queue) if self._is_running else ()

    @property
    def left_over(self) -> tuple[UserMessage, ...]:
        return (*self.steering, *self._queue)

    def submit(self, message: UserMessage) -> None:
        self._queue.append(message)
        self._has_work.set()

    def steer(self, message: UserMessage) -> None:
        """Send a message with the next round; begin a turn if none is running."""
        if self._is_running:
            self._session.steering.add(message)
        else:
            self.submit(message)

    def wake(self) -> None:
        """Wake the model for its news when nothing runs; after a stopped turn, with the next prompt."""
        self._is_wake_wanted = True
        self._has_work.set()

    def look_again(self) -> None:
        """Begin a turn that had to wait for something else."""
        self._has_work.set()

    def note(self, message: UserMessage) -> None:
        """Add a message that needs no reply: now, or after the running turn."""
        if self._is_running:
            self._notes.append(message)
        else:
            self._session.add_message(message)

    def take_back(self) -> UserMessage | None:
        if self.queued:
            return self._queue.pop()
        return self._session.steering.take_last()

    def interrupt(self) -> bool:
        """Stop the running turn, or give back waiting messages; return True unless it was stopped before."""
        if not self._is_running:
            return self._give_back_waiting()
        is_told = self._session.interrupt()
        self._is_stopped = is_told or self._is_stopped
        return is_told

    async def run(self) -> None:
        while True:
            await self._has_work.wait()
            self._has_work = anyio.Event()
            while self._queue or self._takes_wake():
                try:
                    await self._run_turn(self._queue.popleft() if self._queue else None)
                finally:
                    self._add_notes()  # also if the user leaves, since the notes were on the screen
                self._after_turn()

    def _takes_wake(self) -> bool:
        """Return True if the model is woken now, and clear the request."""
        if not self._is_wake_wanted or self._is_held_up():
            return False
        self._is_wake_wanted = False
        return self._session.settings.background.wake and not self._is_stopped and self._session.may_be_woken

    async def _run_turn(self, prompt: UserMessage | None) -> None:
        """Run a turn; without a prompt, wake the model."""
        self._is_running, self._is_stopped = True, False
        self._view.begin(prompt)
        last_reply: AssistantMessage | None = None
        shower = PacedRenderer(self._view, lambda: self._is_stopped)
        try:
            with unwrap_single_exception():
                async with aclosing(self._session.wake() if prompt is None else self._session.send(prompt)) as events:
                    async for event in events:
                        await shower.show(event)
                        if isinstance(event, AssistantMessage):
                            last_reply = event
        except PanpanError as error:
            self._is_stopped = True
            self._view.fail(str(error))
        else:
            if last_reply is not None and (note := note_on_end(last_reply)):
                self._view.note(note)
            if shower.left_out:
                more = f"{shower.left_out:,} more characters had come"
                self._view.note(f"[Interrupted] while it was shown: {more}; /export writes them")
        finally:
            self._is_running = False
            self._view.end()

    def _after_turn(self) -> None:
        """Queue undelivered messages as the next turns; after an interrupt or error, give them back to the user."""
        if self._is_stopped:
            self._give_back_waiting()
        else:
            self._queue.extend(self._take_waiting())

    def _give_back_waiting(self) -> bool:
        """Give back all waiting messages, and return True if there were any."""
        waiting = self._take_waiting()
        if waiting:
            self._return_prompt("\n".join(message.typed for message in waiting))
        return bool(waiting)

    def _take_waiting(self) -> Sequence[UserMessage]:
        waiting = self.left_over
        while self._session.steering.take_last() is not None:
            pass
        self._queue.clear()
        return waiting

    def _add_notes(self) -> None:
        notes, self._notes = self._notes, []
        for note in notes:
            try:
                self._session.add_message(note)
            except PanpanError as error:  # the disk is full; the note is in the conversation anyway
                self._view.note(str(error))
