"""One session of an editor: its prompts, and what it is told of the session.

The rule: the reply to a prompt comes after everything of its turn was sent, and each prompt gets one, whatever happens.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from math import inf

import anyio
from acp.schema import (
    ConfigOptionUpdate,
    CurrentModeUpdate,
    SessionInfoUpdate,
    SessionNotification,
    StopReason,
    ToolCallProgress,
    ToolCallStart,
    Usage,
)
from anyio import CancelScope, create_task_group
from anyio.abc import TaskGroup

from panpan.errors import PanpanError, TurnLimitError
from panpan.faces.acp.choices import ConfigOption, SessionChoices
from panpan.faces.acp.connection import Connection
from panpan.faces.acp.questions import ClientQuestions
from panpan.faces.acp.updates import PROGRESS_S, SessionUpdates, Update, thought
from panpan.faces.turn_text import verification_lines
from panpan.hub.events import (
    HubEvent,
    PromptsReturned,
    Question,
    QuestionAsked,
    QuestionClosed,
    StatusChanged,
    TurnBegan,
    TurnClosed,
    TurnFailed,
)
from panpan.hub.feed import Numbered
from panpan.hub.hub import Hub
from panpan.types.events import TurnEnded
from panpan.types.messages import AssistantMessage, UserMessage, new_id
from panpan.types.messages import StopReason as ReplyEnd

END_S = 5.0
"""Seconds that the turn of a session that is closed has to end by itself."""
CLOSE_S = 20.0
"""Seconds for closing a session; panpan's own limits for its parts are shorter."""
CLIENT = "acp"
"""Name of the editor as a client of the hub."""

_STOP_REASONS: Mapping[ReplyEnd, StopReason] = {
    "refusal": "refusal",
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "interrupted": "cancelled",
}


class _Prompt:
    """A prompt that waits for the end of its turn."""

    def __init__(self) -> None:
        self.sending = CancelScope()
        self.done = anyio.Event()
        self.stop_reason: StopReason = "end_turn"
        self.error: PanpanError | None = None
        self.is_cancelled = False

    def close(self, reason: StopReason, error: PanpanError | None = None) -> None:
        self.stop_reason, self.error = ("cancelled", None) if self.is_cancelled else (reason, error)
        self.done.set()


class AcpSession:
    """An open session.

    Args:
        hub: Its hub.
        connection: The way to the editor.
        questions: Puts its questions to the person there.
        choices: What the user may choose in it.
        warnings: Warnings for the user, oldest first; more may come.
    """

    def __init__(
        self,
        hub: Hub,
        connection: Connection,
        questions: ClientQuestions,
        choices: SessionChoices,
        warnings: deque[str],
    ) -> None:
        self.hub = hub
        self.choices = choices
        self.id = hub.session.info.id
        self.closed = anyio.Event()
        self.scope = CancelScope()
        """Cancelling it closes the session."""
        self._connection = connection
        self._warnings = warnings
        self._questions = questions
        self._updates = SessionUpdates(hub.session, CLIENT)
        self._prompts: dict[str, _Prompt] = {}
        """Prompts without a reply, by the id of the message."""
        self._in_turn: list[str] = []
        """Those that the running turn answers."""
        self._end: StopReason = "end_turn"
        self._error: PanpanError | None = None
        self._is_stopping = False
        """True if the running turn was cancelled."""
        self._asking: dict[int, CancelScope] = {}
        self._own_calls: dict[int, str] = {}
        """Calls that were made up for questions."""
        self._told_mode = hub.session.permission_mode
        self._told_title = hub.session.title
        self._told_options: Sequence[ConfigOption] = choices.options

    async def run(self) -> None:
        """Tell the editor what happens, until the session is closed."""
        reader = self.hub.read()
        try:
            with self.hub.questions.answered_by(CLIENT):
                async with create_task_group() as group:
                    while True:
                        events: Sequence[Numbered] = ()
                        with anyio.move_on_after(PROGRESS_S if self._updates.has_untold else inf):
                            events = await reader.take()
                        for one in events:
                            await self._take(one.event, group)
                        await self.tell(*self._updates.untold())
        finally:
            for prompt in self._prompts.values():
                prompt.close("cancelled")

    async def end(self) -> None:
        """Stop what runs, let its prompts be answered, and close the session."""
        self.cancel()
        with anyio.move_on_after(END_S):
            await self._settled()
        self.scope.cancel("the editor has closed the session")
        with anyio.move_on_after(CLOSE_S, shield=True):
            await self.closed.wait()

    async def _settled(self) -> None:
        """Wait until all prompts are answered."""
        for prompt in list(self._prompts.values()):
            await prompt.done.wait()

    async def prompt(self, message: UserMessage) -> StopReason:
        """Run a turn, or give the message to the one that runs, and return how the turn ended.

        Raises:
            PanpanError: The turn failed.
        """
        prompt = self._prompts[message.uuid] = _Prompt()
        try:
            with prompt.sending:
                await self.hub.submit(message, delivery="steer", client=CLIENT)
            if prompt.sending.cancelled_caught:
                return "cancelled"
            await prompt.done.wait()
        except anyio.get_cancelled_exc_class():
            self.cancel()
            raise
        finally:
            del self._prompts[message.uuid]
        if prompt.error is not None:
            raise prompt.error
        return prompt.stop_reason

    @property
    def tokens(self) -> Usage:
        """Tokens of the session so far, which evaluation harnesses read; the field is no part of the protocol yet."""
        spent = self.hub.session.budget.spent.usage
        return Usage(
            input_tokens=spent.input_tokens,
            output_tokens=spent.output_tokens,
            cached_read_tokens=spent.cache_read_input_tokens,
            cached_write_tokens=spent.cache_creation_input_tokens,
            total_tokens=spent.context_tokens,
        )

    def cancel(self) -> None:
        """Stop the running turn, and take back all prompts that wait."""
        for prompt in self._prompts.values():
            prompt.is_cancelled = True
            prompt.sending.cancel("the user has cancelled it")
        for message in self.hub.withdraw(CLIENT):
            self._close(message.uuid, "cancelled")
        self._is_stopping = self.hub.is_busy
        self.hub.interrupt()

    async def tell(self, *updates: Update) -> None:
        """Send updates."""
        for update in updates:
            await self._connection.notify("session/update", SessionNotification(session_id=self.id, update=update))

    async def replay(self) -> None:
        """Send the conversation so far."""
        await self.tell(*await self._updates.past())

    async def tell_state(self) -> None:
        """Send what the editor shows beside the conversation."""
        title = [] if self.hub.session.title is None else [_titled(self.hub.session.title)]
        await self._tell_warnings()
        await self.tell(self.choices.commands, *title, *self._updates.plan(), *self._updates.usage())

    async def tell_options(self) -> None:
        """Send the options if they are not as the editor knows them."""
        if (options := self.choices.options) != self._told_options:
            self.note_options(options)
            await self.tell(ConfigOptionUpdate(session_update="config_option_update", config_options=list(options)))

    def note_options(self, options: Sequence[ConfigOption]) -> None:
        """Remember the options that the editor knows."""
        self._told_options = options

    async def _take(self, event: HubEvent, group: TaskGroup) -> None:
        await self._tell_warnings()
        await self.tell(*await self._updates.of(event))
        match event:
            case QuestionAsked(id=number, question=question):
                await self._begin_question(number, question, group)
            case QuestionClosed(id=number):
                await self._end_question(number)
            case StatusChanged():
                await self._tell_changes()
            case PromptsReturned(prompts=messages, client=client) if client == CLIENT:
                for message in messages:
                    self._close(message.uuid, "cancelled")
            case _:
                await self._follow_turn(event)
        if self._is_stopping:
            self.hub.interrupt()  # a turn that was only beginning had nothing to interrupt yet

    async def _tell_warnings(self) -> None:
        while self._warnings:
            await self.tell(thought(f"panpan: {self._warnings.popleft()}\n", new_id()))

    async def _follow_turn(self, event: HubEvent) -> None:
        match event:
            case TurnBegan(prompt=message):
                self._in_turn = [] if message is None else [message.uuid]
                self._end, self._error = "end_turn", None
            case UserMessage(uuid=uuid):
                self._in_turn.append(uuid)
            case AssistantMessage(stop_reason=reason):
                self._end = _STOP_REASONS.get(reason, "end_turn")
            case TurnEnded():
                if event.is_interrupted:
                    self._end = "cancelled"
                for line in verification_lines(event):
                    await self.tell(thought(f"panpan: {line}\n", new_id()))
            case TurnFailed(error=TurnLimitError()):
                self._end = "max_turn_requests"
            case TurnFailed(error=error):
                self._error = error
            case TurnClosed():
                await self._tell_changes()
                for uuid in self._in_turn:
                    self._close(uuid, self._end, self._error)
                self._in_turn, self._is_stopping = [], False
            case _:
                pass

    def _close(self, uuid: str, reason: StopReason, error: PanpanError | None = None) -> None:
        if (prompt := self._prompts.get(uuid)) is not None:
            prompt.close(reason, error)

    async def _tell_changes(self) -> None:
        session = self.hub.session
        if session.permission_mode != self._told_mode:
            self._told_mode = session.permission_mode
            await self.tell(CurrentModeUpdate(session_update="current_mode_update", current_mode_id=self._told_mode))
        if session.title != self._told_title:
            self._told_title = session.title
            await self.tell(_titled(session.title))
        await self.tell_options()

    async def _begin_question(self, number: int, question: Question, group: TaskGroup) -> None:
        call = self._questions.call_for(number, question, self._updates.open_calls)
        await self.tell(call)
        if isinstance(call, ToolCallStart):
            self._own_calls[number] = call.tool_call_id
        scope = self._asking[number] = CancelScope()
        group.start_soon(self._ask, number, question, call, scope)

    async def _ask(
        self, number: int, question: Question, call: ToolCallStart | ToolCallProgress, scope: CancelScope
    ) -> None:
        with scope:
            answer = await self._questions.ask(question, call)
            self.hub.questions.answer(number, answer, CLIENT)

    async def _end_question(self, number: int) -> None:
        if (asking := self._asking.pop(number, None)) is not None:
            asking.cancel("the question is closed")
        if (call := self._own_calls.pop(number, None)) is not None:
            await self.tell(ToolCallProgress(session_update="tool_call_update", tool_call_id=call, status="completed"))


def _titled(title: str | None) -> SessionInfoUpdate:
    return SessionInfoUpdate(session_update="session_info_update", title=title)
