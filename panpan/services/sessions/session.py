"""A session: one conversation, its log, and the turns that make both longer.

The session owns the tasks for its whole life and a turn is one of them; `submit` only receives. Each message is
recorded before it is passed on, so that what a face has shown is on disk.
"""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Self

from anyio import (
    AsyncContextManagerMixin,
    BrokenResourceError,
    CancelScope,
    create_task_group,
    move_on_after,
    to_thread,
)

from panpan.core.conversation import Conversation, cut_short
from panpan.core.hooks import Hook
from panpan.core.query import Turn, query
from panpan.core.single_exception import unwrap_single_exception
from panpan.core.tool_executor import CLEANUP_S, ToolExecutor
from panpan.core.turn_totals import TurnTotals
from panpan.errors import SessionLogError
from panpan.services.sessions.event_hop import EventHop
from panpan.services.sessions.event_log import log_event
from panpan.services.sessions.log import SessionLog
from panpan.services.sessions.partial_reply import PartialReply
from panpan.services.sessions.records import call_started_record, record_of
from panpan.tools.tool import Tool, ToolContext
from panpan.types.events import Event, TurnEnded
from panpan.types.llm import ModelClient
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, UserMessage
from panpan.types.permission import Asker, PermissionMode

_EVENTS_AHEAD = 64
"""How far a turn may be ahead of its face."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """What a face may want to say about a session."""

    id: str
    cwd: Path
    model: str
    choice: str
    """Which model was chosen and why, on one line."""
    key_source: str
    """Where the key came from, such as a variable's name; never the key."""
    permission_mode: PermissionMode
    tools: Sequence[str]
    """Names of the tools that the model may call."""


@dataclass(frozen=True, slots=True)
class SessionParts:
    """What a session is made of; `app.py` puts it together."""

    info: SessionInfo
    conversation: Conversation
    log: SessionLog
    llm: ModelClient
    tools: Mapping[str, Tool[Any]]
    tool_context: ToolContext
    hooks: Sequence[Hook]
    ask: Asker
    max_rounds: int
    start_record: Mapping[str, Any] | None = None
    """Opens the log of a new session, with its first message."""
    on_close: Sequence[Callable[[], Awaitable[None]]] = ()
    """Awaited in order when the session ends."""


class Session(AsyncContextManagerMixin):
    """One conversation. Enter it, then `submit` prompts one after the other.

    Args:
        parts: What it is made of.
    """

    def __init__(self, parts: SessionParts) -> None:
        self.parts = parts
        self.info = parts.info
        self.conversation = parts.conversation
        self._turn_scope: CancelScope | None = None

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self, None]:
        try:
            with unwrap_single_exception():
                async with create_task_group() as self._task_group:
                    yield self
                    self._task_group.cancel_scope.cancel("the session is over")
        finally:
            try:
                with move_on_after(CLEANUP_S, shield=True):
                    for close in self.parts.on_close:
                        await close()
            finally:
                self.parts.log.close()

    async def submit(self, prompt: str | UserMessage) -> AsyncGenerator[Event, None]:
        """Run one turn and yield its events; leaving early, or `interrupt()`, ends the turn and all that it started.

        Args:
            prompt: What the user says.

        Raises:
            PanpanError: The turn failed; what was said before stays in the conversation.
            RuntimeError: A turn is running already.
        """
        if self._turn_scope is not None:
            raise RuntimeError("a turn is running already")
        hop = EventHop[Event](_EVENTS_AHEAD)
        self._turn_scope = scope = CancelScope()
        failure: list[Exception] = []
        message = UserMessage.of(prompt) if isinstance(prompt, str) else prompt
        turn = self._task_group.start_soon(self._run_turn, message, hop, scope, failure)
        try:
            while events := await hop.take():
                for event in events:
                    yield event
        finally:
            scope.cancel("the face has left")
            hop.leave()
            with move_on_after(2 * CLEANUP_S, shield=True):
                await turn.wait()
            self._turn_scope = None
        if failure:
            raise failure[0]

    def interrupt(self) -> bool:
        """End the running turn; safe to call from a key binding.

        Returns:
            Whether there was a turn that had not been told to end before.
        """
        scope = self._turn_scope
        if scope is None or scope.cancel_called:
            return False
        scope.cancel("the user interrupted the turn")
        return True

    async def _run_turn(
        self, prompt: UserMessage, hop: EventHop[Event], scope: CancelScope, failure: list[Exception]
    ) -> None:
        """Drive one turn to its end, whatever end that is, and leave a conversation that is valid and recorded."""
        totals = TurnTotals()
        partial = PartialReply()
        started_at = perf_counter()
        parts = self.parts
        executor = ToolExecutor(
            parts.tools, parts.tool_context, parts.hooks, ask=parts.ask, note_start=self._record_start
        )
        is_whole, is_logged = False, log.isEnabledFor(logging.DEBUG)
        with closing(hop):
            try:
                with scope:
                    self._open_log()
                    self._keep(prompt)
                    turn = Turn(parts.llm, executor, parts.hooks, parts.max_rounds)
                    async with executor, aclosing(query(self.conversation, turn)) as events:
                        async for event in events:
                            self._record_if_message(event)  # first the record, then the screen
                            partial.follow(event)
                            if is_logged:
                                log_event(event)
                            if isinstance(event, AssistantMessage):
                                totals.add(event)
                            await hop.send(event)
                    is_whole = True
            except Exception as error:  # belongs to whoever asked, not to the session
                failure.append(error)
            finally:  # also when the whole session is cancelled
                is_interrupted = not is_whole and not failure
                await self._finish_turn(executor, partial, is_interrupted, failure)
                if failure:
                    log.debug("turn failed", extra={"error": repr(failure[0])})
            if not failure:
                with suppress(BrokenResourceError):  # the face may have left
                    await hop.send(_turn_ended(totals, perf_counter() - started_at, is_interrupted))

    async def _finish_turn(
        self, executor: ToolExecutor, partial: PartialReply, is_interrupted: bool, failure: list[Exception]
    ) -> None:
        """Answer what is open, tell the hooks, and make the log durable; bounded, and not stopped by a cancel."""
        with move_on_after(CLEANUP_S, shield=True):
            try:
                self._answer_what_is_open(executor, partial, is_interrupted)
                self.parts.log.flush()
            except Exception as error:
                failure.append(error)
            for hook in self.parts.hooks:
                try:
                    if is_interrupted:
                        await hook.interrupted(self.conversation)
                    await hook.turn_ended(self.conversation)
                except Exception as error:  # the other hooks hear of the end all the same
                    failure.append(error)
            try:
                await to_thread.run_sync(self.parts.log.sync)
            except SessionLogError as error:
                failure.append(error)

    def _answer_what_is_open(self, executor: ToolExecutor, partial: PartialReply, is_interrupted: bool) -> None:
        """Keep the text of a reply that was cut short, and give every open call its result."""
        if is_interrupted and (reply := partial.message(self.info.model)) is not None:
            self._keep(reply)
        self._keep(
            *(
                executor.results.get(tool_use_id)
                or cut_short(tool_use_id, was_begun=tool_use_id in executor.begun, is_interrupted=is_interrupted)
                for tool_use_id in list(self.conversation.open_tool_uses)
            )
        )

    def _open_log(self) -> None:
        if self.parts.log.parent_uuid is None and self.parts.start_record is not None:
            self.parts.log.append(self.parts.start_record)

    def _keep(self, *messages: Message) -> None:
        """Add messages to the conversation, all of them, and then to the log, which may be full."""
        for message in messages:
            self.conversation.append(message)
        failure: SessionLogError | None = None
        for message in messages:
            try:
                self.parts.log.append(record_of(message))
            except SessionLogError as error:  # it waits for space, and those behind it have to wait, too
                failure = failure or error
        if failure is not None:
            raise failure

    def _record_start(self, tool_use_id: str) -> None:
        """Record that a call may change something from now on, so that after a crash it is known which did not."""
        self.parts.log.append(call_started_record(tool_use_id))

    def _record_if_message(self, event: Event) -> None:
        """Record what the loop has appended to the conversation."""
        if isinstance(event, UserMessage | SystemReminder | AssistantMessage | ToolResultMessage):
            self.parts.log.append(record_of(event))


def _turn_ended(totals: TurnTotals, duration_s: float, is_interrupted: bool) -> TurnEnded:
    return TurnEnded(
        rounds=totals.rounds,
        usage=totals.usage,
        cost_usd=totals.cost_usd,
        duration_s=duration_s,
        api_duration_s=totals.api_duration_s,
        is_interrupted=is_interrupted,
    )
