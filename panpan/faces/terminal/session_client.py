"""The terminal as a client of a session's hub: shows its events and questions, and sends what the user says.

The rule: a message is shown as waiting until the model has it. An undelivered one goes back into the input box.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager

import anyio
from anyio import CancelScope, create_task_group
from anyio.abc import TaskGroup

from panpan.faces.terminal.dialogs.question_dialogs import QuestionDialogs
from panpan.faces.terminal.screen.screen import TurnRenderer
from panpan.faces.terminal.views.turn_view import PacedRenderer
from panpan.faces.turn_text import note_on_end
from panpan.hub.events import (
    ClientChanged,
    CommandRequested,
    FileEdited,
    HubEvent,
    MessageRecorded,
    PromptsReturned,
    Question,
    QuestionAsked,
    QuestionClosed,
    Resync,
    Rewound,
    StatusChanged,
    TaskChanged,
    TurnBegan,
    TurnClosed,
    TurnFailed,
    Warned,
)
from panpan.hub.feed import OpenReply
from panpan.hub.hub import Hub
from panpan.hub.questions import Answer
from panpan.hub.waiting_prompts import WaitingPrompt
from panpan.types.events import Compacted, Event
from panpan.types.messages import AssistantMessage, UserMessage
from panpan.types.permission import PlanProposal

TERMINAL = "terminal"
"""Name of the terminal that opened the session, as a client."""


class ShownTurn:
    """Shows one turn after the other from the events of a hub."""

    def __init__(self, view: TurnRenderer) -> None:
        self._view = view
        self._reply = OpenReply()
        self._is_stopped = False
        self._is_open = False
        self._last_reply: AssistantMessage | None = None
        self._shower = PacedRenderer(view, lambda: self._is_stopped)

    @property
    def is_open(self) -> bool:
        return self._is_open

    def stop(self) -> None:
        """Leave out what is still to be shown of the turn, but for its beginning."""
        self._is_stopped = self._is_open

    async def show(self, event: HubEvent) -> None:
        match event:
            case TurnBegan(prompt=prompt):
                self._is_open, self._is_stopped, self._last_reply = True, False, None
                self._shower = PacedRenderer(self._view, lambda: self._is_stopped)
                self._view.begin(prompt)
            case TurnFailed(error=error):
                self._last_reply = None
                self._view.fail(str(error))
            case TurnClosed():
                self._close()
            case Resync():
                for missed in self._reply.missing(event.blocks):
                    await self._show(missed)
            case Compacted(compaction=compaction) if self._is_open and compaction.trigger in ("manual", "undo"):
                pass  # the output of the command tells it
            case (
                StatusChanged()
                | PromptsReturned()
                | MessageRecorded()
                | Rewound()
                | ClientChanged()
                | TaskChanged()
                | FileEdited()
                | Warned()
                | CommandRequested()
                | QuestionAsked()
                | QuestionClosed()
            ):
                pass
            case _:
                for missed in self._reply.missing_before(event):
                    await self._show(missed)
                await self._show(event)

    async def _show(self, event: Event) -> None:
        self._reply.follow(event)
        await self._shower.show(event)
        if isinstance(event, AssistantMessage):
            self._last_reply = event

    def _close(self) -> None:
        if self._last_reply is not None and (note := note_on_end(self._last_reply)):
            self._view.note(note)
        if left_out := self._shower.left_out:
            self._view.note(
                f"[Interrupted] while it was shown: {left_out:,} more characters had come; /export writes them"
            )
        self._reply.follow(TurnClosed())
        self._is_open = False
        self._view.end()


class _Asked:
    """A question that the user is shown."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.scope = CancelScope()


class ShownQuestions:
    """Shows the questions of a session until they are closed.

    Args:
        dialogs: Puts them to the user.
        view: Shows what became of one that was closed elsewhere.
        answer: Gives the session the answer to the question with an id.
        client: Name of this client.
    """

    def __init__(
        self,
        dialogs: QuestionDialogs,
        view: TurnRenderer,
        answer: Callable[[int, Answer], Awaitable[None]],
        client: str,
    ) -> None:
        self._dialogs = dialogs
        self._view = view
        self._answer = answer
        self._client = client
        self._asked: dict[int, _Asked] = {}

    def follow(self, event: QuestionAsked | QuestionClosed, asking: TaskGroup) -> None:
        """Show a question, in a task of its own, or take it from the screen."""
        if isinstance(event, QuestionAsked):
            asked = self._asked[event.id] = _Asked(event.question)
            asking.start_soon(self._ask, event.id, asked)
        elif (closed := self._asked.pop(event.id, None)) is not None:
            closed.scope.cancel("the question is closed")
            if not event.client and isinstance(closed.question, PlanProposal):
                self._view.keep_plan(closed.question.text)  # no result of the call will show it
            elif event.client not in ("", self._client):
                self._view.note("answered elsewhere")

    async def _ask(self, number: int, asked: _Asked) -> None:
        with asked.scope:
            answer = await self._dialogs.answer_to(asked.question)
            await self._answer(number, answer)


class SessionClient:
    """Sends prompts of the user to a hub, and shows what it tells.

    Args:
        hub: The hub of the session.
        view: Shows the turns.
        dialogs: Puts the session's questions to the user.
        return_prompt: Gets the text of undelivered messages.
        is_held_up: Returns True if waking the model has to wait for something else.
        refresh: Draws the state of the session again, which other clients may change.
    """

    def __init__(
        self,
        hub: Hub,
        view: TurnRenderer,
        dialogs: QuestionDialogs,
        return_prompt: Callable[[str], None],
        is_held_up: Callable[[], bool] = lambda: False,
        refresh: Callable[[], None] = lambda: None,
    ) -> None:
        self._hub = hub
        self._refresh = refresh
        self._is_showing = False
        self._return_prompt = return_prompt
        self._is_held_up = is_held_up
        self._is_wake_wanted = False
        self._view = view
        self._turn = ShownTurn(view)
        self._questions = ShownQuestions(dialogs, view, self._answer, TERMINAL)
        self._reader = hub.read()
        self._steered: set[str] = set()
        """Ids of messages of this terminal for the running turn."""
        self._may_wake = anyio.Event()
        self.left_over: Sequence[UserMessage] = ()
        """Messages that were not delivered when `run` ended, oldest first."""

    @property
    def is_busy(self) -> bool:
        """True if a turn runs or is about to, or is not shown to its end."""
        return self._hub.is_busy or self._reader.is_behind or self._is_showing

    @property
    def steering(self) -> Sequence[UserMessage]:
        return self._hub.steering

    @property
    def queued(self) -> Sequence[UserMessage]:
        return self._hub.queued

    def submit(self, message: UserMessage) -> None:
        self._hub.put(WaitingPrompt(message, TERMINAL, is_returned=True))

    def steer(self, message: UserMessage) -> None:
        """Send a message with the next round; begin a turn if none is running."""
        self._steered.add(message.uuid)
        self._hub.put(WaitingPrompt(message, TERMINAL, is_returned=True), "steer")

    def held(self) -> AbstractContextManager[None]:
        """Let no turn begin inside the block, whoever asks for one."""
        return self._hub.held()

    def wake(self) -> None:
        """Wake the model for its news when nothing runs; after a stopped turn, with the next prompt."""
        self._is_wake_wanted = True
        self._may_wake.set()

    def look_again(self) -> None:
        """Wake the model if that had to wait for something else."""
        self._may_wake.set()

    def note(self, message: UserMessage) -> None:
        """Add a message that needs no reply: now, or after the running turn."""
        self._hub.note(message)

    def take_back(self) -> UserMessage | None:
        return self._hub.take_back(TERMINAL)

    def interrupt(self) -> bool:
        """Stop the running turn, or give back waiting messages; return True unless it was stopped before."""
        is_told = self._hub.interrupt()
        if is_told:
            self._turn.stop()
        return is_told

    async def run(self) -> None:
        """Show events and questions until cancelled."""
        try:
            async with create_task_group() as tasks:
                tasks.start_soon(self._wake_when_free)
                with self._hub.questions.answered_by(TERMINAL):
                    while True:
                        events = await self._reader.take()
                        self._is_showing = True
                        for one in events:
                            await self._follow(one.event, tasks)
                        self._is_showing = False
        finally:
            self._is_showing = False
            returned = [message for one in self._reader.take_now() for message in _returned(one.event)]
            self.left_over = [*returned, *self._hub.withdraw(TERMINAL)]

    async def _wake_when_free(self) -> None:
        while True:
            await self._may_wake.wait()
            self._may_wake = anyio.Event()
            if self._is_wake_wanted and not self._is_held_up():
                self._is_wake_wanted = False
                self._hub.wake()

    async def _follow(self, event: HubEvent, asking: TaskGroup) -> None:
        match event:
            case QuestionAsked() | QuestionClosed():
                self._questions.follow(event, asking)
            case StatusChanged():
                self._refresh()
            case ClientChanged(client=client, is_here=is_here):
                self._view.note(f"{client} {'joined' if is_here else 'left'} this session")
            case Compacted() if not self._turn.is_open:
                pass  # the command that was typed here has told it
            case PromptsReturned():
                if texts := [message.typed for message in _returned(event)]:
                    self._return_prompt("\n".join(texts))
            case _:
                if (prompt := self._from_elsewhere(event)) is not None:
                    self._view.prompt_came(prompt)
                await self._turn.show(event)

    def _from_elsewhere(self, event: HubEvent) -> UserMessage | None:
        """Return the prompt of another client that the model has now; None if the event brings none."""
        match event:
            case TurnBegan(prompt=prompt, client=client):
                return None if client == TERMINAL else prompt
            case UserMessage(uuid=uuid) if uuid in self._steered:
                self._steered.discard(uuid)
                return None
            case UserMessage():
                return event
            case _:
                return None

    async def _answer(self, number: int, answer: Answer) -> None:
        self._hub.questions.answer(number, answer, TERMINAL)


def _returned(event: HubEvent) -> Sequence[UserMessage]:
    return event.prompts if isinstance(event, PromptsReturned) and event.client == TERMINAL else ()
