"""Prompts of the SDK: their parts become ours, and the reply is waited for."""

import base64
import binascii
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs, unquote, unquote_to_bytes, urlsplit

import anyio
from anyio import create_task_group
from pydantic import Field
from starlette.requests import ClientDisconnect

from panpan.errors import PanpanError, unwrap_single_exception
from panpan.faces.server.opencode import shapes
from panpan.faces.server.opencode.asked import Asked, Body, Offered
from panpan.faces.server.opencode.ids import new_message_id
from panpan.faces.server.opencode.session_calls import mode_of, model_name, told_message
from panpan.faces.server.opencode.shapes import Facts, Json
from panpan.hub.events import MessageRecorded, TurnBegan, TurnClosed, TurnFailed
from panpan.hub.feed import Reader
from panpan.hub.hub import Hub
from panpan.hub.operations.prompts import MAX_PARTS
from panpan.hub.wire import WireError
from panpan.types.events import CommandRan, TurnEnded
from panpan.types.messages import AssistantMessage, UserMessage, new_id

_REFUSED = ("noReply", "system", "tools", "format", "variant")
"""Parameters of a prompt that would change what the model is asked."""


class PromptBody(Body):
    """A prompt."""

    parts: tuple[dict[str, Any], ...] = Field(min_length=1, max_length=MAX_PARTS)
    messageID: str | None = None  # noqa: N815
    agent: str | None = None
    model: dict[str, Any] | None = None


class CommandBody(Body):
    """A slash command."""

    command: str = Field(min_length=1, max_length=1_000)
    arguments: str = Field(default="", max_length=90_000)


async def _prompt(asked: Asked) -> Json:
    """Send a prompt, wait for the end of its turn, and return the last reply."""
    hub = await asked.hub("session.send")
    reader = hub.read()
    return await _until_gone(asked, hub, reader, await _send(asked, hub))


async def _prompt_async(asked: Asked) -> None:
    """Send a prompt; events tell its turn."""
    await _send(asked, await asked.hub("session.send"))


async def _command(asked: Asked) -> Json:
    """Run a slash command, and return its output or the last reply."""
    hub = await asked.hub("session.command")
    asked.refuse("model", "agent", "variant", "parts", "messageID")
    body = asked.read(CommandBody)
    reader = hub.read()
    line = f"/{body.command.removeprefix('/')} {body.arguments}".strip()
    sent = await asked.on(hub, "session.command", line=line)
    return await _until_gone(asked, hub, reader, sent["message"])


async def _send(asked: Asked, hub: Hub) -> str:
    """Send a prompt, and return the id of its message."""
    asked.refuse(*_REFUSED)
    body = asked.read(PromptBody)
    parts = [ours for part in body.parts for ours in _part_of(part)]
    given = {} if not body.messageID else {"message": new_message_id(body.messageID)}
    if body.model is not None and body.model.get("modelID") != hub.session.model:
        await asked.on(hub, "session.change", model=model_name(body.model, "modelID"))
    if body.agent is not None:
        is_plan = hub.session.permission_mode == "plan"
        if (mode := mode_of(body.agent)) != "plan" and not is_plan:
            mode = hub.session.permission_mode  # "build" is any mode in which the model works
        if mode != hub.session.permission_mode:
            await asked.on(hub, "session.change", mode=mode)
    sent = await asked.on(hub, "session.send", parts=parts, **given)
    return str(sent["message"])


def _part_of(part: dict[str, Any]) -> Sequence[Json]:
    """Return our parts for a part of the SDK.

    Raises:
        WireError: There is no such part.
    """
    match part:
        case {"type": "text", "ignored": True}:
            return ()
        case {"type": "text", "text": str(text)}:
            return [{"type": "text", "text": text}]
        case {"type": "agent", "name": str(name)}:
            return [{"type": "agent", "name": name}]
        case {"type": "subtask", "agent": str(agent), "prompt": str(prompt)}:
            return [{"type": "subtask", "agent": agent, "prompt": prompt}]
        case {"type": "file", "url": str(url), "mime": str(mime)}:
            return [_file_of(url, mime)]
        case _:
            raise WireError("a part is text, file, agent or subtask, with the fields of the SDK")


def _file_of(url: str, mime: str) -> Json:
    if url.startswith("file://"):
        parts = urlsplit(url)
        lines = {name: values[0] for name, values in parse_qs(parts.query).items() if name in ("start", "end")}
        first, last = lines.get("start"), lines.get("end")
        return {
            "type": "file",
            "path": unquote(parts.path),
            **({"first": first} if first else {}),
            **({"last": last} if first and last else {}),
        }
    if not url.startswith("data:"):
        raise WireError("the url of a file begins with file:// or data:")
    head, comma, data = url.partition(",")
    if not comma:
        raise WireError("the url of a file has no data")
    if not mime.startswith("text/"):
        return {"type": "data", "media_type": mime, "data": data}
    try:
        content = base64.b64decode(data, validate=True) if head.endswith(";base64") else unquote_to_bytes(data)
        return {"type": "text", "text": content.decode()}
    except (binascii.Error, UnicodeDecodeError) as error:
        raise WireError("the text of a file is not UTF-8") from error


async def _until_gone(asked: Asked, hub: Hub, reader: Reader, message: str) -> Json:
    """Return the reply to a message, unless the client goes before."""
    found: list[Json] = []
    with unwrap_single_exception():
        async with create_task_group() as tasks:

            async def watch() -> None:
                while (await asked.request.receive())["type"] != "http.disconnect":
                    pass
                tasks.cancel_scope.cancel("the client has gone")

            tasks.start_soon(watch)
            found.append(await _reply_to(hub, reader, message))
            tasks.cancel_scope.cancel("the reply is there")
    if not found:
        raise ClientDisconnect
    return found[0]


async def _reply_to(hub: Hub, reader: Reader, message: str) -> Json:
    """Return the last reply of the turn of a message.

    Raises:
        PanpanError: There is none: the turn failed or was stopped, or the message was taken back.
    """
    was_known = any(one.uuid == message for one in hub.session.conversation.messages)
    turn = _Turn(message, has_begun=was_known)
    is_over = was_known and not hub.is_busy  # it was sent before
    while not is_over:
        try:
            for one in await reader.take():
                is_over = is_over or turn.follow(one.event)
        except anyio.EndOfStream as error:
            raise PanpanError("the session was closed before the model replied") from error
        if not turn.has_begun and not hub.is_busy:
            raise PanpanError("the prompt was taken back before the model replied")
    if reply := turn.reply or _last_reply(hub, message):
        told = told_message(hub, reply)
        return told if turn.failure is None else told | {"info": told["info"] | {"error": turn.failure}}
    if turn.output is not None:
        return _output(hub, message, turn.output)
    raise PanpanError(turn.failure["data"]["message"] if turn.failure else "the turn ended without a reply")


class _Turn:
    """Follows the turn of one message.

    Args:
        message: Id of the message.
        has_begun: True if its turn is running already.
    """

    def __init__(self, message: str, *, has_begun: bool) -> None:
        self._message = message
        self.has_begun = has_begun
        self.failure: Json | None = None
        self.reply = ""
        """Id of the last reply; empty if there is none."""
        self.output: str | None = None
        """Output of a slash command; None if none ran."""

    def follow(self, event: object) -> bool:
        """Return True if the event ends the turn."""
        match event:
            case TurnBegan(prompt=UserMessage(uuid=uuid)) if uuid == self._message:
                self.has_begun = True
            case CommandRan(text=text) if self.has_begun:
                self.output = text
            case TurnFailed(error=error) if self.has_begun:
                self.failure = shapes.error_json(str(error))
            case TurnEnded(is_interrupted=True) if self.has_begun:
                self.failure = shapes.aborted_json()
            case TurnClosed():
                return self.has_begun
            case AssistantMessage(uuid=uuid) | MessageRecorded(message=AssistantMessage(uuid=uuid)) if self.has_begun:
                self.reply = uuid
            case _:
                pass
        return False


def _last_reply(hub: Hub, message: str) -> str:
    """Return the id of the last reply before the next message of the user; empty if there is none."""
    found, is_after = "", False
    for one in hub.session.conversation.messages:
        if isinstance(one, UserMessage):
            is_after = one.uuid == message
        elif is_after and isinstance(one, AssistantMessage):
            found = one.uuid
    return found


def _output(hub: Hub, message: str, text: str) -> Json:
    """Return the output of a slash command as a reply, which is in no conversation."""
    facts, own = Facts.of(hub), new_id()
    return {"info": shapes.open_reply(own, facts, message), "parts": [facts.part(own, 0, "text", text=text)]}


PROMPT_CALLS: Sequence[Offered] = (
    Offered("POST", "/session/{id}/message", _prompt, "session.prompt"),
    Offered("POST", "/session/{id}/prompt_async", _prompt_async, "session.promptAsync"),
    Offered("POST", "/session/{id}/command", _command, "session.command"),
)
