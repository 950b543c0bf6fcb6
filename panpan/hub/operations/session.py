"""Operations on one session: its state, its conversation, prompts and changes."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import anyio
from anyio import to_thread
from pydantic import Field

from panpan.config.keys import dotted, flatten, is_secret
from panpan.errors import ConfigError
from panpan.hub.choices import MODES, models_for
from panpan.hub.events import CommandRequested, Delivery, Status, TerminalCommand
from panpan.hub.hub import Hub
from panpan.hub.operations.prompts import MAX_PARTS, Part, TextPart, message_of
from panpan.hub.operations.questions import OpenQuestion, open_questions
from panpan.hub.operations.table import BusyError, Caller, ForbiddenError, NoParams, NotFoundError, Operation, Params
from panpan.hub.waiting_prompts import WaitingPrompt
from panpan.hub.wire import as_json
from panpan.session.models import SessionModels
from panpan.session.session import SessionInfo
from panpan.types.dataclass import dataclass
from panpan.types.messages import Message
from panpan.types.permission import PermissionMode
from panpan.version import __version__

MAX_PAST_BYTES = 8_000_000
"""Most bytes of earlier messages that a client gets at once; the log has all of them."""
MAX_WAIT_S = 600.0
"""Longest wait of one request."""
_MESSAGE_ID = r"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"


class StateParams(Params):
    """Events that a client has already."""

    epoch: str = Field(default="", max_length=100)
    """Epoch that it read before; empty for none."""
    after: int = Field(default=0, ge=0)
    """Number of the last event that it has of that epoch."""


@dataclass(frozen=True, slots=True)
class SessionState:
    """Everything that a client needs before it reads events."""

    version: str
    epoch: str
    """Id of this numbering of events."""
    number: int
    """Number of the event to read on after."""
    session: SessionInfo
    status: Status
    messages: Sequence[Message] | None
    """Messages that no later event carries, the newest of them; None for a client that goes on where it was."""
    last: int
    """Number of the newest event."""
    questions: Sequence[OpenQuestion]
    commands: Sequence[str]
    """Names of the slash commands."""


def state_of(hub: Hub, *, epoch: str = "", after: int = 0) -> SessionState:
    """Return the state for a client, which may have read events before."""
    goes_on = epoch == hub.epoch and after <= hub.feed.last
    messages, number = ((), after) if goes_on else hub.past()
    return SessionState(
        __version__,
        hub.epoch,
        number,
        hub.session.info,
        hub.status,
        None if goes_on else newest_messages(messages),
        hub.feed.last,
        open_questions(hub),
        list(hub.session.commands.names),
    )


def newest_messages(messages: Sequence[Message], *, most: int | None = None) -> Sequence[Message]:
    """Return the last messages that fit into `MAX_PAST_BYTES`, at most `most`."""
    left, newest = MAX_PAST_BYTES, list[Message]()
    for message in reversed(messages):
        if len(newest) == most or (left := left - len(json.dumps(as_json(Message, message)))) <= 0:
            break
        newest.append(message)
    return newest[::-1]


async def _state(hub: Hub, caller: Caller, params: StateParams) -> SessionState:
    """Return the state of a session, its messages and its open questions."""
    return state_of(hub, epoch=params.epoch, after=params.after)


class MessagesParams(Params):
    """A part of the conversation."""

    before: str = Field(default="", max_length=100)
    """Id of a message; those before it are wanted. Empty for the newest."""
    limit: int = Field(default=100, ge=1, le=1_000)


async def _messages(hub: Hub, caller: Caller, params: MessagesParams) -> Sequence[Message]:
    """Return messages of the conversation, oldest first."""
    messages = hub.session.conversation.messages
    if params.before:
        place = next((number for number, one in enumerate(messages) if one.uuid == params.before), None)
        if place is None:
            raise NotFoundError("there is no such message; read the conversation again")
        messages = messages[:place]
    return newest_messages(messages, most=params.limit)


class SendParams(Params):
    """A prompt."""

    parts: tuple[Part, ...] = Field(min_length=1, max_length=MAX_PARTS)
    """Words, files, pictures, agents and subtasks, in their order."""
    delivery: Delivery = "queue"
    """Time of its delivery while a turn runs: at its next round, or in a turn of its own."""
    message: str = Field(default="", pattern=f"{_MESSAGE_ID}|^$")
    """Id for the message, a UUID of version 7, so that sending it twice cannot run it twice; empty for a new one."""
    returned: bool = False
    """True if it goes back to the client when the turn before it is stopped."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A prompt that was accepted."""

    message: str
    """Id of its message."""


async def _send(hub: Hub, caller: Caller, params: SendParams) -> Sent:
    """Send a prompt, which may be a slash command; its turn is told in events."""
    message = message_of(params.parts, params.message)
    if params.message and hub.has_prompt(params.message):
        return Sent(params.message)
    await hub.submit(message, delivery=params.delivery, client=caller.name, is_returned=params.returned)
    return Sent(message.uuid)


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Outcome of an interrupt."""

    cancelled: bool
    """True if a turn ran that was not stopped before."""


async def _cancel(hub: Hub, caller: Caller, params: NoParams) -> Cancelled:
    """Stop the running turn, and drop what the caller is sending."""
    return Cancelled(hub.cancel(caller.name))


@dataclass(frozen=True, slots=True)
class TakenBack:
    """A prompt that came back."""

    text: str | None
    """Words of the prompt; None if none waited."""


async def _take_back(hub: Hub, caller: Caller, params: NoParams) -> TakenBack:
    """Take back the caller's newest prompt that waits."""
    message = hub.take_back(caller.name)
    return TakenBack(None if message is None else message.typed)


class WaitParams(Params):
    """A wait for the end of the turns."""

    timeout_s: float = Field(default=60.0, ge=0, le=MAX_WAIT_S)


async def _wait(hub: Hub, caller: Caller, params: WaitParams) -> Status:
    """Wait until no turn runs, and return the state; it may still be busy when the time is over."""
    with anyio.move_on_after(params.timeout_s), suppress(anyio.EndOfStream):
        await hub.idle()
    return hub.status


def require_usual(mode: PermissionMode | None, caller: Caller) -> None:
    """Refuse a mode that a client may not choose, since it asks less than `auto`.

    Raises:
        ForbiddenError: It may not.
    """
    if mode is not None and not caller.is_host and mode not in MODES:
        raise ForbiddenError(f"the mode {mode} asks too little; choose it where panpan was started")


class ChangeParams(Params):
    """Changes of a session."""

    mode: PermissionMode | None = None
    model: str | None = Field(default=None, min_length=1, max_length=300)
    title: str | None = Field(default=None, pattern=r"\S", max_length=300)


async def _change(hub: Hub, caller: Caller, params: ChangeParams) -> Status:
    """Change the mode, the model or the title of a session."""
    session = hub.session
    require_usual(params.mode, caller)
    if params.model is not None:  # first, since it may fail
        with hub.held():
            await session.use_model(params.model)
    if params.mode is not None:
        session.set_permission_mode(params.mode)
    if params.title is not None:
        session.rename(params.title)
    return hub.status


@dataclass(frozen=True, slots=True)
class Retried:
    """Outcome of a retry."""

    retried: bool
    """True if there was a pause."""


async def _retry_now(hub: Hub, caller: Caller, params: NoParams) -> Retried:
    """End the pause before the model is asked again."""
    return Retried(hub.session.retry_now())


async def _status(hub: Hub, caller: Caller, params: NoParams) -> Status:
    """Return whether a turn runs, waits or asks, with mode, model and title."""
    return hub.status


@dataclass(frozen=True, slots=True)
class ContextFill:
    """Use of the context window and money."""

    window: int | None
    """Tokens that fit into it; None if that is not known."""
    tokens: int
    """Tokens that are in it, as counted or estimated."""
    cost_usd: float
    """Cost of the session so far, in US dollars, as far as prices are known."""


async def _context(hub: Hub, caller: Caller, params: NoParams) -> ContextFill:
    """Return how full the context window is, and what the session has cost."""
    usage, spent = await hub.session.context_usage(), hub.session.budget.spent
    return ContextFill(usage.window_tokens, usage.used_tokens, spent.known_usd)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model that can be chosen."""

    name: str
    model: str
    detail: str


async def _models(hub: Hub, caller: Caller, params: NoParams) -> Sequence[ModelChoice]:
    """Return the models that can be chosen, without asking a provider."""
    session, of_session = hub.session, hub.session.find(SessionModels)
    if of_session is None:
        return ()
    setup = of_session.setup
    found = await to_thread.run_sync(models_for, session.settings, setup.env, setup.kinds, setup.loaded.keys)
    return [ModelChoice(one.name, one.model, one.detail) for one in found]


class RewindParams(Params):
    """A place in the conversation."""

    message: str = Field(min_length=1, max_length=100)
    """Id of a message of the user, which is taken back with all behind it."""


async def _rewind(hub: Hub, caller: Caller, params: RewindParams) -> Status:
    """Take back a message and all that was said since; files stay as they are."""
    if hub.is_busy:
        raise BusyError("a turn runs; stop it first")
    try:
        with hub.held():
            await hub.session.rewind(params.message)
    except ValueError as error:
        raise NotFoundError("there is no such message of the user; read the conversation again") from error
    except RuntimeError as error:
        raise BusyError("a turn runs; stop it first") from error
    return hub.status


async def _config(hub: Hub, caller: Caller, params: NoParams) -> Mapping[str, Any]:
    """Return the settings of a session, by dotted key; secrets are stars."""
    settings = flatten(hub.session.settings)
    return {dotted(path): "***" if is_secret(path) and value else as_json(Any, value) for path, value in settings}


async def _run_command(hub: Hub, caller: Caller, params: "CommandParams") -> Sent:
    """Run a slash command."""
    line = params.line if params.line.startswith("/") else f"/{params.line}"
    if hub.session.commands.line_in(line) is None:
        raise ConfigError(f"there is no command {line.split()[0]!r} here; the state of the session lists them")
    message = message_of([TextPart(text=line)])
    hub.put(WaitingPrompt(message, caller.name, is_command=True, is_contained=True))
    return Sent(message.uuid)


class CommandParams(Params):
    """A slash command."""

    line: str = Field(min_length=1, max_length=100_000)


class TerminalParams(Params):
    """A command for terminals that joined."""

    command: TerminalCommand
    text: str = Field(default="", max_length=100_000)
    """Text to add, or hint to show."""


@dataclass(frozen=True, slots=True)
class Requested:
    """A request that was published."""

    number: int
    """Number of its event."""


async def _ask_terminals(hub: Hub, caller: Caller, params: TerminalParams) -> Requested:
    """Ask the joined terminals to send the text in their input box, to add to it, to clear it, or to show a hint."""
    return Requested(hub.feed.publish(CommandRequested(params.command, params.text)))


SESSION_OPERATIONS: Sequence[Operation[Hub]] = (
    Operation("session.get", StateParams, SessionState, _state),
    Operation("session.messages", MessagesParams, Sequence[Message], _messages),
    Operation("session.send", SendParams, Sent, _send, "write"),
    Operation("session.command", CommandParams, Sent, _run_command, "write"),
    Operation("terminal.run", TerminalParams, Requested, _ask_terminals, "write"),
    Operation("session.cancel", NoParams, Cancelled, _cancel, "write"),
    Operation("session.takeBack", NoParams, TakenBack, _take_back, "write"),
    Operation("session.wait", WaitParams, Status, _wait),
    Operation("session.change", ChangeParams, Status, _change, "write"),
    Operation("session.rewind", RewindParams, Status, _rewind, "write"),
    Operation("session.retryNow", NoParams, Retried, _retry_now, "write"),
    Operation("session.context", NoParams, ContextFill, _context),
    Operation("session.config", NoParams, Mapping[str, Any], _config),
    Operation("status.get", NoParams, Status, _status),
    Operation("models.list", NoParams, Sequence[ModelChoice], _models),
)
"""Operations on a session."""
