"""Events of a session as the SDK has them.

A part is told whole when it begins and when it ends. Between, `message.part.delta` tells what is added.
"""

from collections.abc import Callable, Iterator
from time import time
from typing import Any, TypeAlias

from panpan.faces.server.opencode import shapes
from panpan.faces.server.opencode.ids import part_id, question_id, wire_id
from panpan.faces.server.opencode.questions import permission_json, question_json
from panpan.faces.server.opencode.shapes import Facts, Json
from panpan.faces.turn_text import title_of
from panpan.hub.events import (
    CommandRequested,
    FileEdited,
    HubEvent,
    MessageRecorded,
    OpenBlock,
    QuestionAsked,
    QuestionClosed,
    Resync,
    Rewound,
    StatusChanged,
    TurnBegan,
    TurnClosed,
    TurnFailed,
)
from panpan.hub.hub import Hub
from panpan.types.content import ChecklistDisplay, ToolUseBlock
from panpan.types.events import (
    BlockFinished,
    BlockStarted,
    Compacted,
    ReplyStarted,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
    ToolStarted,
    TurnEnded,
)
from panpan.types.messages import AssistantMessage, ToolResultMessage, UserMessage, new_id
from panpan.types.permission import PermissionQuestion

WireEvent: TypeAlias = tuple[str, Json]
"""Type and properties of an event."""
MAX_TOLD_AGAIN = 100
"""Newest messages that are told again to a client that fell far behind."""
_KINDS = {"text": "text", "thinking": "reasoning"}


class SessionEvents:
    """Translates the events of one session for one client, from now on.

    Args:
        hub: The hub of the session.
        clock: Returns seconds since 1970.
    """

    def __init__(self, hub: Hub, clock: Callable[[], float] = time) -> None:
        self._hub = hub
        self._clock = clock
        messages = hub.session.conversation.messages
        self._known = [one.uuid for one in messages]
        prompts = [one.uuid for one in messages if isinstance(one, UserMessage)]
        self._parent = prompts[-1] if prompts else ""
        self._open = ""
        """Our id of the reply that is arriving; empty if none is."""
        self._sent: dict[str, Json] = {}
        """Whole parts of the reply that is arriving, as they were told last."""
        self._began_ms: dict[str, int] = {}
        """Times at which calls began to run."""
        self._titles: dict[str, str] = {}
        self._status, self._title = shapes.status_json(hub.status), hub.status.title

    def follow(self, event: HubEvent) -> Iterator[WireEvent]:
        """Yield what the SDK's client gets for an event."""
        match event:
            case TextDelta(index=index, text=text) | ThinkingDelta(index=index, text=text):
                yield self._delta(index, text)
            case ReplyStarted() | BlockStarted() | BlockFinished() | RetryScheduled() | Resync():
                yield from self._arriving(event)
            case TurnBegan(prompt=UserMessage() as prompt):
                if self._hub.session.commands.line_in(prompt.typed) is None:
                    yield from self._message(prompt)
            case MessageRecorded(message=message):
                yield from self._message(message)
            case UserMessage() | AssistantMessage() | ToolResultMessage():
                yield from self._message(event)
            case ToolStarted():
                yield from self._call_began(event)
            case Rewound():
                kept = {one.uuid for one in self._hub.session.conversation.messages}
                for own in [one for one in self._known if one not in kept]:
                    yield self._removed(own)
                self._known = [one for one in self._known if one in kept]
            case QuestionAsked() | QuestionClosed():
                yield from self._question(event)
            case CommandRequested():
                yield _command(event)
            case _:
                yield from self._of_session(event)

    @property
    def _facts(self) -> Facts:
        return Facts.of(self._hub)

    @property
    def _session(self) -> str:
        return wire_id("ses", self._hub.session.info.id)

    @property
    def _now_ms(self) -> int:
        return round(self._clock() * 1000)

    def _event(self, name: str, **properties: Any) -> WireEvent:
        return name, {"sessionID": self._session, **properties}

    def _part(self, part: Json) -> WireEvent:
        self._sent[part["id"]] = part
        return self._event("message.part.updated", part=part, time=self._now_ms)

    def _removed(self, own: str) -> WireEvent:
        return self._event("message.removed", messageID=wire_id("msg", own))

    def _delta(self, index: int, text: str) -> WireEvent:
        names = {"messageID": wire_id("msg", self._open), "partID": part_id(self._open, index + 1)}
        return self._event("message.part.delta", **names, field="text", delta=text)

    def _arriving(
        self, event: ReplyStarted | BlockStarted | BlockFinished | RetryScheduled | Resync
    ) -> Iterator[WireEvent]:
        """Tell the reply that is arriving."""
        match event:
            case ReplyStarted(uuid=uuid):
                yield from self._void()
                self._open = uuid or new_id()
                facts = self._facts
                yield self._event("message.updated", info=shapes.open_reply(self._open, facts, self._parent))
                yield self._part(facts.part(self._open, 0, "step-start"))
            case RetryScheduled():
                yield from self._void()
            case BlockStarted(index=index, kind=kind):
                yield from self._block(OpenBlock(index, kind, "", event.tool_use_id, event.tool_name))
            case BlockFinished(index=index, block=block):
                if shapes.is_shown(block):
                    yield self._part(shapes.block_part(self._open, index, block, self._facts, self._now_ms))
            case Resync(blocks=blocks, is_whole=is_whole):
                if not is_whole:
                    yield from self._everything()
                for one in blocks:
                    yield from self._block(one)

    def _block(self, block: OpenBlock) -> Iterator[WireEvent]:
        """Tell a part as far as it is there."""
        facts, number = self._facts, block.index + 1
        if block.kind == "tool_use":
            state = {"status": "pending", "input": {}, "raw": ""}
            names = {"callID": block.tool_use_id, "tool": block.tool_name}
            yield self._part(facts.part(self._open, number, "tool", **names, state=state))
        elif block.kind in _KINDS:
            times = {"start": self._now_ms}
            yield self._part(facts.part(self._open, number, _KINDS[block.kind], text=block.text, time=times))

    def _void(self) -> Iterator[WireEvent]:
        """Take back a reply that broke off."""
        if self._open:
            yield self._removed(self._open)
        self._open = ""
        self._sent.clear()

    def _message(self, message: object) -> Iterator[WireEvent]:
        match message:
            case UserMessage():
                self._parent = message.uuid
                self._known.append(message.uuid)
                yield from self._whole(shapes.user_message(message, self._facts))
            case AssistantMessage():
                if self._open not in ("", message.uuid):  # its id was not known when it began
                    yield from self._void()
                self._known.append(message.uuid)
                sent, self._open = dict(self._sent), ""
                told = shapes.reply(message, self._facts, self._parent, {})
                yield from self._whole(told)
                now = {part["id"] for part in told["parts"]}
                for part in sent:
                    if part not in now:
                        yield self._event("message.part.removed", messageID=told["info"]["id"], partID=part)
                self._sent.clear()
            case ToolResultMessage():
                yield from self._call_ended(message)
            case _:
                pass

    def _whole(self, told: Json) -> Iterator[WireEvent]:
        yield self._event("message.updated", info=told["info"])
        for part in told["parts"]:
            if _without_time(self._sent.get(part["id"], {})) != _without_time(part):
                yield self._part(part)

    def _found(self, call: str) -> tuple[AssistantMessage, int, ToolUseBlock] | None:
        """Return the reply that makes a call, the number of the block, and the block."""
        for message in reversed(self._hub.session.conversation.messages):
            if isinstance(message, AssistantMessage):
                for number, block in enumerate(message.content):
                    if isinstance(block, ToolUseBlock) and block.id == call:
                        return message, number, block
        return None

    def _call_began(self, event: ToolStarted) -> Iterator[WireEvent]:
        if (found := self._found(event.tool_use_id)) is None:
            return
        message, number, use = found
        began = self._began_ms[use.id] = self._now_ms
        self._titles[use.id] = event.title
        state = {
            "status": "running",
            "input": use.input,
            "title": event.title,
            "metadata": {},
            "time": {"start": began},
        }
        part = shapes.block_part(message.uuid, number, use, self._facts, began)
        yield self._event("message.part.updated", part=part | {"state": state}, time=began)

    def _call_ended(self, result: ToolResultMessage) -> Iterator[WireEvent]:
        if (found := self._found(result.tool_use_id)) is None:
            return
        message, number, use = found
        facts = self._facts
        began = self._began_ms.pop(use.id, shapes.ended_at(message))
        title = self._titles.pop(use.id, "") or title_of(use)
        part = shapes.block_part(message.uuid, number, use, facts, began)
        part |= {"state": shapes.ended_call(use, result, began, title)}
        yield self._event("message.part.updated", part=part, time=self._now_ms)
        if isinstance(result.display, ChecklistDisplay):
            yield self._event("todo.updated", todos=shapes.todos_json(result.display.todos))
        messages = self._hub.session.conversation.messages
        results = {one.tool_use_id: one for one in messages if isinstance(one, ToolResultMessage)}
        results[use.id] = result
        if (patch := shapes.patch_part(message, facts, results)) is not None:
            yield self._event("message.part.updated", part=patch, time=self._now_ms)

    def _question(self, event: QuestionAsked | QuestionClosed) -> Iterator[WireEvent]:
        epoch, number = self._hub.epoch, event.id
        if isinstance(event, QuestionClosed):
            if event.reply:
                name = question_id("per", epoch, number)
                replied = {"requestID": name, "permissionID": name, "reply": event.reply, "response": event.reply}
                yield self._event("permission.replied", **replied)
            elif event.client:
                yield self._event("question.replied", requestID=question_id("que", epoch, number), answers=[])
            else:
                yield from self._withdrawn(number)
        elif isinstance(event.question, PermissionQuestion):
            told = self.permission(number, event.question)
            yield "permission.asked", told
            yield "permission.updated", told
        else:
            yield "question.asked", question_json(epoch, number, event.question, self._session)

    def _withdrawn(self, number: int) -> Iterator[WireEvent]:
        """Close a question of which only the number is known: no id of the one kind is one of the other."""
        name = question_id("per", self._hub.epoch, number)
        replied = {"requestID": name, "permissionID": name, "reply": "reject", "response": "reject"}
        yield self._event("permission.replied", **replied)
        yield self._event("question.rejected", requestID=question_id("que", self._hub.epoch, number))

    def permission(self, number: int, question: PermissionQuestion) -> Json:
        """Return a question about a call."""
        found = None if question.agent else self._found(question.tool_use_id)
        reply = "" if found is None else found[0].uuid
        return permission_json(self._hub.epoch, number, question, self._session, reply=reply, at_ms=self._now_ms)

    def _of_session(self, event: HubEvent) -> Iterator[WireEvent]:
        """Tell what is about the session as a whole."""
        match event:
            case StatusChanged(status=status):
                told = shapes.status_json(status)
                if told != self._status:
                    self._status = told
                    yield self._event("session.status", status=told)
                    if status.activity == "idle":
                        yield self._event("session.idle")
                if status.title != self._title:
                    self._title = status.title
                    yield self._event("session.updated", info=shapes.session_of(self._hub))
            case TurnFailed(error=error):
                yield self._event("session.error", error=shapes.error_json(str(error)))
            case TurnEnded(is_interrupted=is_interrupted, files=files):
                if is_interrupted:
                    yield self._event("session.error", error=shapes.aborted_json())
                if files:
                    yield self._event("session.diff", diff=shapes.diff_json(files))
            case TurnClosed():
                yield from self._void()
                self._began_ms.clear()
                self._titles.clear()
                yield self._event("session.updated", info=shapes.session_of(self._hub))
            case Compacted():
                yield self._event("session.compacted")
            case FileEdited(path=path):
                yield self._event("file.edited", file=str(self._hub.session.info.cwd / path))
            case _:
                pass

    def _everything(self) -> Iterator[WireEvent]:
        """Tell the newest messages again, to a client that missed more than deltas."""
        yield self._event("session.updated", info=shapes.session_of(self._hub))
        told = list(shapes.told_messages(self._hub.session.conversation.messages, self._facts))
        for one in told[-MAX_TOLD_AGAIN:]:
            yield self._event("message.updated", info=one["info"])
            for part in one["parts"]:
                yield self._event("message.part.updated", part=part, time=self._now_ms)


def _without_time(part: Json) -> Json:
    return {name: value for name, value in part.items() if name != "time"}


def _command(event: CommandRequested) -> WireEvent:
    match event.command:
        case "prompt.append":
            return "tui.prompt.append", {"text": event.text}
        case "hint.show":
            return "tui.toast.show", {"message": event.text, "variant": "info"}
        case _:
            return "tui.command.execute", {"command": event.command}
