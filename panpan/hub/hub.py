"""The hub: owns the turns of one session, and lets any number of clients send prompts, answer, interrupt and read.

The rule: a prompt is in the conversation, waits here, or was returned to its client. None is lost, and none runs twice.
"""

import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, contextmanager
from functools import cached_property
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Self

import anyio
from anyio import AsyncContextManagerMixin, create_task_group
from anyio.lowlevel import checkpoint_if_cancelled

from panpan.core.background import Background
from panpan.errors import PanpanError, unwrap_single_exception
from panpan.hub.events import (
    Activity,
    ClientChanged,
    Delivery,
    FileEdited,
    PromptsReturned,
    SessionUse,
    Status,
    StatusChanged,
    TaskChanged,
    TurnBegan,
    TurnClosed,
    TurnFailed,
    Warned,
)
from panpan.hub.feed import Feed, Reader
from panpan.hub.operations.table import BusyError
from panpan.hub.preparing import PreparingPrompts
from panpan.hub.questions import Questions
from panpan.hub.recorded_messages import RecordedMessages
from panpan.hub.waiting_prompts import MAX_WAITING, WaitingPrompt, WaitingPrompts
from panpan.session.context_usage import used_tokens
from panpan.session.frontend import Askers
from panpan.session.session import Session
from panpan.types.content import DiffDisplay
from panpan.types.events import Event, ReplyStarted, RetryScheduled, RoundEnded, SubagentEvent, TurnEnded
from panpan.types.messages import (
    Compaction,
    Message,
    ToolResultMessage,
    Usage,
    UserMessage,
    new_id,
)

if TYPE_CHECKING:
    from panpan.hub.path_search import FileIndex

log = logging.getLogger(__name__)


class Hub(AsyncContextManagerMixin):
    """Runs the turns of a session. Enter it, and every prompt becomes a turn.

    Args:
        session: An open session.
        feed: Gets all events.
        questions: The session's questions.
    """

    def __init__(self, session: Session, feed: Feed, questions: Questions) -> None:
        self.session = session
        self.feed = feed
        self.questions = questions
        self._waiting = WaitingPrompts(session.steering)
        self._preparing = PreparingPrompts()
        self._begun: deque[str] = deque(maxlen=MAX_WAITING)
        """Ids of the newest prompts that began a turn; a command is in no conversation."""
        self._notes: list[UserMessage] = []
        """Messages that need no reply, to add after the turn."""
        self._messages = RecordedMessages(session, feed)
        self._is_command = False
        """True if the turn runs a slash command."""
        self._command_scope = anyio.CancelScope()
        self._has_work = anyio.Event()
        self._holders = 0
        self._is_wake_wanted = False
        self._is_running = False
        self._is_ending = False
        """True if no turn begins any more, and no prompt is taken."""
        self._is_stopped = False
        """True if the turn was interrupted or failed, so that a user sees it before the model is woken again."""
        self._retry: RetryScheduled | None = None
        self._retry_at = 0.0
        self._status = Status()
        self._use = SessionUse()
        self.epoch = new_id()
        """Id of this numbering of events; another hub of the same session has another one."""

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self, None]:
        self.session.agent.transcript.recorder.subscribe(self._recorded)
        self.questions.subscribe(self._tell_status)
        self._measure()
        self._tell_status()
        try:
            with unwrap_single_exception():
                async with create_task_group() as tasks:
                    tasks.start_soon(self._run)
                    tasks.start_soon(self._watch_tasks)
                    try:
                        yield self
                    finally:
                        self._is_ending = True
                        tasks.cancel_scope.cancel("the hub is closed")
        finally:
            self._return_all()
            self.feed.close()

    @cached_property
    def files(self) -> "FileIndex":
        """The files of the workspace by name, for clients that search them."""
        from panpan.hub.path_search import FileIndex  # most sessions have no such client

        return FileIndex(self.session.agent.context.paths)

    @property
    def is_busy(self) -> bool:
        """True if a turn runs or is about to."""
        return self._is_running or bool(self._waiting)

    @property
    def is_preparing(self) -> bool:
        """True if a prompt is on its way."""
        return bool(self._preparing)

    @property
    def is_stopped(self) -> bool:
        """True if the running turn is being stopped, or the last one was interrupted or failed."""
        return self._is_stopped

    @property
    def steering(self) -> Sequence[UserMessage]:
        """Messages that wait for the next round of the running turn, oldest first."""
        return self._waiting.steering

    @property
    def queued(self) -> Sequence[UserMessage]:
        """Messages that wait for the end of the running turn, or while the hub is held, oldest first."""
        return self._waiting.queued if self._is_running or self._holders else []

    @property
    def status(self) -> Status:
        """State of the session now."""
        session, retry = self.session, self._retry
        return Status(
            self._activity,
            retry.attempt if retry is not None else 0,
            self._retry_at if retry is not None else 0.0,
            retry.reason if retry is not None else "",
            len(self.steering) + len(self.queued),
            session.permission_mode,
            session.model,
            session.title or "",
            self._use,
        )

    @property
    def _activity(self) -> Activity:
        if self.questions.open:
            return "asking"
        if self._retry is not None:
            return "retrying"
        return "busy" if self.is_busy else "idle"

    def has_prompt(self, message_id: str) -> bool:
        """Return True if a prompt is in the conversation already, runs or ran, waits, or is about to."""
        if message_id in self._preparing or message_id in self._begun or message_id in self._waiting:
            return True
        return any(one.uuid == message_id for one in self.session.conversation.messages)

    def past(self) -> tuple[Sequence[Message], int]:
        """Return the messages that no later event carries, and the number of the event to read on after."""
        return self._messages.past()

    def read(self, after: int | None = None) -> Reader:
        """Return a reader of the events behind a number, or with None of those to come."""
        return Reader(self.feed, after)

    async def submit(
        self,
        prompt: str | UserMessage,
        *,
        delivery: Delivery = "queue",
        client: str = "",
        is_returned: bool = False,
    ) -> None:
        """Send a prompt as the user wrote it: a slash command, or words that may mention files.

        It may be nonsense of another program, so an unexpected error ends no more than its turn.

        Args:
            prompt: The prompt.
            delivery: Time of its delivery while a turn runs; without one, it begins a turn. A command always waits.
            client: Client that sends it.
            is_returned: True if it goes back to the client when the turn before it is stopped.

        Raises:
            PanpanError: A file that it mentions cannot be sent, too many prompts wait, the client interrupted it, or
                the session is closed.
        """
        message = UserMessage.of(prompt) if isinstance(prompt, str) else prompt
        is_command = self.session.commands.line_in(message.typed) is not None
        async with self._preparing.turn_of(client, message.uuid):
            if not is_command:
                message = await self.session.prepare_message(message)
            waiting = WaitingPrompt(message, client, is_command, is_returned, is_contained=True)
            await checkpoint_if_cancelled()  # who cancelled it meanwhile did not find it in the queue
            self.put(waiting, "queue" if is_command else delivery)

    def put(self, prompt: WaitingPrompt, delivery: Delivery = "queue") -> None:
        """Send a prompt that is prepared, or a command.

        Raises:
            PanpanError: Too many prompts wait, or the session is closed; this one is not sent.
        """
        if self._is_ending:
            raise BusyError("the session was closed before the prompt was sent; open it again, and send it once more")
        if delivery == "steer" and self._is_running:
            self._waiting.steer(prompt)
        else:
            self._waiting.queue(prompt)
            self._has_work.set()
        self._tell_status()

    def note(self, message: UserMessage) -> None:
        """Add a message that needs no reply: now, or after the running turn.

        Raises:
            SessionLogError: The log is full; the message is in the conversation.
        """
        if self._is_running:
            self._notes.append(message)
        else:
            self.session.add_message(message)

    def take_back(self, client: str = "") -> UserMessage | None:
        """Take back the newest prompt of a client that waits; None if none does."""
        taken = self._waiting.take_back(client, looks_in_queue=self._is_running or self._holders > 0)
        self._tell_status()
        return taken

    def withdraw(self, client: str = "", uuid: str = "") -> Sequence[UserMessage]:
        """Take back all prompts of a client that wait, oldest first, as when it leaves; or the one with an id."""
        taken = self._waiting.withdraw(client, uuid)
        self._tell_status()
        return taken

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let no turn begin inside the block, as while something else changes the conversation; prompts wait."""
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1
            self._has_work.set()

    def joined(self, client: str) -> None:
        """Tell the others that a client of another process is there."""
        self._waiting.joined(client)
        self.feed.publish(ClientChanged(client, is_here=True))

    def left(self, client: str) -> None:
        """Tell the others that a client has left, and let its prompts run, which it cannot get back any more."""
        self._waiting.left(client)
        self.feed.publish(ClientChanged(client, is_here=False))

    def wake(self) -> None:
        """Wake the model for its news when nothing runs; after a stopped turn, with the next prompt."""
        self._is_wake_wanted = True
        self._has_work.set()

    def cancel(self, client: str) -> bool:
        """Drop what a client is sending, and stop the running turn; return True if there was something of either."""
        is_sending = self._preparing.cancel(client)
        return self.interrupt() or is_sending

    def interrupt(self) -> bool:
        """Stop the running turn; return True unless none runs or it was stopped before.

        A prompt whose turn is only about to begin is returned to its client.
        """
        if not self._is_running:
            return self._return_prompts()
        is_told = self.session.interrupt() or self._stop_command()
        self._is_stopped = is_told or self._is_stopped
        return is_told

    def end(self) -> None:
        """Stop the running turn, begin no other, and take no further prompts, since the session is about to be closed.

        Prompts that wait go back to their clients when the hub is left.
        """
        self._is_ending = True
        self.interrupt()

    def _stop_command(self) -> bool:
        """Cancel a slash command that runs by itself; return True if one did and was not cancelled before."""
        if not self._is_command or self.session.agent.is_busy or self._command_scope.cancel_called:
            return False
        self._command_scope.cancel("the user interrupted the command")
        return True

    async def idle(self) -> None:
        """Wait until no turn runs and none is about to.

        Raises:
            EndOfStream: The session was closed before.
        """
        reader = self.read()
        while self.is_busy:
            await reader.take()

    async def _run(self) -> None:
        while True:
            await self._has_work.wait()
            self._has_work = anyio.Event()
            while not (self._holders or self._is_ending) and (self._waiting or self._takes_wake()):
                await self._run_turn(self._waiting.take_next())

    async def _watch_tasks(self) -> None:
        if (background := self.session.find(Background)) is None:
            return
        running = {task.id for task in background.tasks if task.is_running}
        while True:
            await background.wait_changed()
            for task in background.tasks:
                if task.is_running != (task.id in running):
                    running ^= {task.id}
                    self.feed.publish(TaskChanged(task))

    def _takes_wake(self) -> bool:
        """Return True if the model is woken now, and clear the request."""
        if not self._is_wake_wanted:
            return False
        self._is_wake_wanted = False
        return self.session.settings.background.wake and not self._is_stopped and self.session.may_be_woken

    async def _run_turn(self, prompt: WaitingPrompt | None) -> None:
        """Run a turn; without a prompt, wake the model."""
        self._is_running, self._is_stopped = True, False
        message, client = (None, "") if prompt is None else (prompt.message, prompt.client)
        self._is_command = prompt is not None and prompt.is_command
        if message is not None:
            self._begun.append(message.uuid)
        self._messages.turn_begins(message, is_command=self._is_command)
        try:
            self.feed.publish(TurnBegan(message, client))
            self._tell_status()
            self._command_scope, began_s = anyio.CancelScope(), monotonic()
            try:
                with self._command_scope, unwrap_single_exception():
                    async with aclosing(self._events_of(prompt)) as events:
                        async for event in events:
                            self._publish(event)
                if self._command_scope.cancelled_caught:
                    self._publish(TurnEnded(0, Usage(), 0.0, monotonic() - began_s, 0.0, is_interrupted=True))
            except PanpanError as error:
                self._is_stopped = True
                self.feed.publish(TurnFailed(error))
            except Exception as error:
                if prompt is None or not prompt.is_contained:
                    raise
                log.exception("a turn failed")
                self._is_stopped = True
                told = f"an unexpected {type(error).__name__} ended the turn; say it in other words, or report it"
                self.feed.publish(TurnFailed(PanpanError(told)))
        finally:
            self._is_running, self._is_command, self._retry = False, False, None
            self._messages.turn_is_over()
            self._add_notes()  # also if the hub is closed, since the notes were on a screen
            self.feed.publish(TurnClosed())
        self._measure()
        self._after_turn()
        self._tell_status()

    def _events_of(self, prompt: WaitingPrompt | None) -> AsyncGenerator[Event, None]:
        if prompt is None:
            return self.session.wake()
        return self.session.submit(prompt.message) if prompt.is_command else self.session.send(prompt.message)

    def _publish(self, event: Event) -> None:
        match event:
            case RetryScheduled(delay_s=delay_s):
                self._retry, self._retry_at = event, time() + delay_s
                self._tell_status()
            case ReplyStarted() if self._retry is not None:
                self._retry = None
                self._tell_status()
            case UserMessage(uuid=uuid):
                self._waiting.arrived(uuid)
                self._tell_status()
            case RoundEnded():
                self._measure()
                self._tell_status()
            case _:
                pass
        self._messages.carried_by(event)
        self.feed.publish(event)
        if isinstance(event, ToolResultMessage | SubagentEvent):
            for file in _edited_in(event):
                self.feed.publish(file)

    def _recorded(self, record: Message | Compaction | Mapping[str, Any]) -> None:
        """Follow what the session records, since not all of it is an event of a turn."""
        self._messages.take(record)
        if isinstance(record, Mapping | Compaction):
            self._measure()
            self._tell_status()

    def _after_turn(self) -> None:
        """Queue undelivered messages as the next turns; after a stopped turn, return those that are to be returned."""
        self._waiting.queue_steering()
        if self._is_stopped:
            self._return_prompts()

    def _return_all(self) -> None:
        """Return every prompt that no turn has received, since none will."""
        self._waiting.queue_steering()
        self._return_prompts(takes_all=True)

    def _return_prompts(self, *, takes_all: bool = False) -> bool:
        """Return the waiting prompts that are to be returned, and return True if there were any."""
        by_client = self._waiting.take_returned(takes_all=takes_all)
        for client, messages in by_client.items():
            self.feed.publish(PromptsReturned(messages, client))
        self._tell_status()
        return bool(by_client)

    def _add_notes(self) -> None:
        notes, self._notes = self._notes, []
        for note in notes:
            try:
                self.session.add_message(note)
            except PanpanError as error:  # the disk is full; the note is in the conversation anyway
                self.session.agent.warn(str(error))

    def _measure(self) -> None:
        """Count what the session has used; not for each event, since it reads the newest messages."""
        session = self.session
        tokens = used_tokens(session.conversation) if session.conversation.messages else 0
        budget = session.budget
        self._use = SessionUse(budget.known_usd, budget.is_estimated, tokens, session.context_window)

    def _tell_status(self) -> None:
        if (status := self.status) != self._status:
            self._status = status
            self.feed.publish(StatusChanged(status))


def _edited_in(event: Event) -> Iterator[FileEdited]:
    """Yield the files that a call changed, its own or that of a subagent."""
    match event:
        case SubagentEvent():
            yield from _edited_in(event.innermost.event)
        case ToolResultMessage(result=result, display=DiffDisplay(files=files)) if not result.is_error:
            for file in files:
                yield FileEdited(file.path, result.tool_use_id)
        case _:
            pass


OpenWith = Callable[[Askers, Callable[[str], None]], AbstractAsyncContextManager[Session]]
"""Returns the context manager that opens a session whose questions go to the askers, and warnings to a function."""


@asynccontextmanager
async def hosted(open_session: OpenWith, warn: Callable[[str], None]) -> AsyncGenerator[Hub, None]:
    """Open a session with a hub, and close both at the end of the `with` block.

    Args:
        open_session: Opens the session.
        warn: Gets the session's warnings, as all clients do; also those of its opening.

    Raises:
        PanpanError: The session could not be opened.
    """
    feed = Feed()
    questions = Questions(feed)

    def warn_all(text: str) -> None:
        warn(text)
        feed.publish(Warned(text))

    async with open_session(questions.askers, warn_all) as session, Hub(session, feed, questions) as hub:
        yield hub
