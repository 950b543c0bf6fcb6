"""One session of an editor that speaks version 2.

The rule: a prompt is answered when it is in the conversation. States tell when the session works, waits and rests.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import anyio
from acp.exceptions import RequestError
from acp.schema import StopReason
from anyio import CancelScope
from anyio.abc import TaskGroup

from panpan.errors import PanpanError
from panpan.faces.acp.choices import SessionChoices
from panpan.faces.acp.connection import CANCELLED, INTERNAL_ERROR, Connection
from panpan.faces.acp.questions import ClientQuestions
from panpan.faces.acp.session import CLIENT, END_S, AcpSession
from panpan.faces.acp.updates import Update, user_chunks
from panpan.faces.acp.v2.messages import Plain
from panpan.faces.acp.v2.updates import update_of, whole_messages
from panpan.hub.events import HubEvent, TaskChanged, TurnBegan, TurnClosed
from panpan.hub.hub import Hub
from panpan.types.messages import UserMessage

LAST_UPDATE_S = 1.0
"""Seconds for the last update of a session that is closed; nobody may read any more."""

State: TypeAlias = Literal["idle", "running", "requires_action"]


class _Waiting:
    """A prompt that is not in the conversation yet."""

    def __init__(self) -> None:
        self.sending = CancelScope()
        self.done = anyio.Event()
        self.is_inserted = False


class DraftSession(AcpSession):
    """An open session."""

    def __init__(
        self,
        hub: Hub,
        connection: Connection,
        questions: ClientQuestions,
        choices: SessionChoices,
        warnings: deque[str],
    ) -> None:
        super().__init__(hub, connection, questions, choices, warnings)
        self._waiting: dict[str, _Waiting] = {}
        """Prompts without a reply, by the id of the message."""
        self._in_foreground = False
        """True if a turn runs, as far as its events were taken."""
        self._told_state: State = "idle"
        self._resting = anyio.Event()
        """Set while the editor knows that the session is idle."""
        self._resting.set()
        self._has_ended = False
        """True if the editor is told nothing more of the session."""

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            with anyio.move_on_after(LAST_UPDATE_S, shield=True):
                if self._told_state != "idle":
                    await self._send({"sessionUpdate": "state_update", "state": "idle", "stopReason": "cancelled"})
            self._has_ended = True
            for one in self._waiting.values():
                one.done.set()

    async def _settled(self) -> None:
        for one in list(self._waiting.values()):
            await one.done.wait()
        await self._resting.wait()

    async def insert(self, message: UserMessage) -> str:
        """Send a prompt, and return the id of its message when it is in the conversation.

        Raises:
            RequestError: It was cancelled before.
            PanpanError: A file that it mentions cannot be sent.
        """
        one = self._waiting[message.uuid] = _Waiting()
        is_sent = False
        try:
            with one.sending:
                await self.hub.submit(message, delivery="steer", client=CLIENT)
                is_sent = True
            if is_sent and not self._has_ended:
                await one.done.wait()
        except anyio.get_cancelled_exc_class():
            if not is_sent or self.hub.withdraw(CLIENT, message.uuid):
                raise
            with anyio.move_on_after(END_S, shield=True):  # it is in the conversation, and its event is on the way
                await one.done.wait()
        finally:
            self._waiting.pop(message.uuid, None)
        if not one.is_inserted:
            raise RequestError(CANCELLED, "the prompt was cancelled before it was in the conversation")
        return message.uuid

    def cancel(self) -> None:
        for one in self._waiting.values():
            one.sending.cancel("the user has cancelled it")
        super().cancel()

    def _close(self, uuid: str, reason: StopReason, error: PanpanError | None = None) -> None:
        if (one := self._waiting.get(uuid)) is not None:
            one.done.set()

    async def tell(self, *updates: Update) -> None:
        for update in updates:
            if (told := update_of(update)) is None:
                continue
            if self._is_stopping and told.get("status") == "failed":
                told["status"] = "cancelled"
            await self._send(told)

    async def _send(self, *updates: Mapping[str, Any]) -> None:
        for update in updates if not self._has_ended else ():
            await self._connection.notify("session/update", Plain({"sessionId": self.id, "update": update}))

    async def replay(self) -> None:
        await self._send(*whole_messages(await self._updates.past()))

    async def tell_activity(self) -> None:
        """Send the state, which may be known."""
        state = self._state
        update: dict[str, Any] = {"sessionUpdate": "state_update", "state": state}
        if state == "idle" and self._told_state != "idle":
            update |= self._stop
        await self._send(update)
        self._told_state = state

    @property
    def _state(self) -> State:
        if not self._in_foreground:
            return "idle"
        return "requires_action" if self._asking else "running"

    @property
    def _stop(self) -> Mapping[str, Any]:
        """Reason for the end of the turn."""
        if self._error is None:
            return {"stopReason": self._end}
        return {"stopReason": "error", "error": {"code": INTERNAL_ERROR, "message": str(self._error)}}

    async def _take(self, event: HubEvent, group: TaskGroup) -> None:
        match event:
            case TurnBegan(prompt=message, client=client):
                self._in_foreground, self._resting = True, anyio.Event()
                await self.tell_activity()
                if message is not None and client == CLIENT:
                    await self._note_inserted(message)
            case UserMessage():
                await self._note_inserted(event)
            case TaskChanged(task=task) if not task.is_running:
                self.hub.wake()  # unlike in version 1, the editor can show a turn without a prompt, and stop it
            case _:
                pass
        await super()._take(event, group)
        if isinstance(event, TurnClosed):
            self._in_foreground = False
        if self._state != self._told_state:
            await self.tell_activity()
        if not self._in_foreground:
            self._resting.set()

    async def _note_inserted(self, message: UserMessage) -> None:
        await self._send(*whole_messages(list(user_chunks(message))))
        if (one := self._waiting.pop(message.uuid, None)) is not None:
            one.is_inserted = True
            one.done.set()

    async def _tell_warnings(self) -> None:
        while self._warnings:
            notice = {"sessionUpdate": "notice", "severity": "warning", "title": self._warnings.popleft() or "warning"}
            await self._send(notice)
