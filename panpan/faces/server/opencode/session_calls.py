"""Sessions, their messages and their questions, as the SDK asks for them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import Field

from panpan.faces.server.opencode import shapes
from panpan.faces.server.opencode.asked import Asked, Body, Offered
from panpan.faces.server.opencode.events import SessionEvents
from panpan.faces.server.opencode.ids import own_id, place_of_question, wire_id
from panpan.faces.server.opencode.questions import permission_answer, question_answer, question_json
from panpan.faces.server.opencode.shapes import PRIMARY, Facts, Json
from panpan.hub.events import Question
from panpan.hub.hub import Hub
from panpan.hub.operations.session import newest_messages
from panpan.hub.operations.table import NotFoundError
from panpan.hub.wire import WireError, from_json
from panpan.types.content import ChecklistItem
from panpan.types.events import FileRestore
from panpan.types.permission import PermissionQuestion

MAX_LISTED = 500
"""Most sessions of one list."""


class CreateBody(Body):
    """A new session."""

    title: str | None = None
    agent: str | None = None
    model: dict[str, Any] | None = None


async def _create(asked: Asked) -> Json:
    """Open a new session."""
    asked.refuse("parentID", "permission", "metadata", "workspaceID")
    body = asked.read(CreateBody)
    wanted = {
        "title": body.title,
        "mode": None if body.agent is None else mode_of(body.agent),
        "model": None if body.model is None else model_name(body.model, "id"),
    }
    given = {name: value for name, value in wanted.items() if value}
    state = await asked.on_server("sessions.open", folder=asked.place(), **given)
    return shapes.session_of(asked.sessions.hubs[state["session"]["id"]])


def mode_of(agent: str) -> str:
    """Return the mode that an agent of OpenCode stands for.

    Raises:
        WireError: It stands for none.
    """
    if agent not in PRIMARY:
        raise WireError(f"the agent is one of {', '.join(PRIMARY)}; send a subagent as a part of the prompt")
    return PRIMARY[agent]


def model_name(model: dict[str, Any], key: str) -> str:
    """Return the name by which a model is chosen.

    Raises:
        WireError: It is not whole.
    """
    provider, name = model.get("providerID"), model.get(key)
    if not isinstance(provider, str) or not isinstance(name, str) or not name:
        raise WireError(f"a model has providerID and {key}")
    return f"{provider}/{name}" if provider else name


class ListBody(Body):
    """A list of sessions."""

    limit: int = Field(default=100, ge=1, le=MAX_LISTED)
    search: str = ""


async def _list(asked: Asked) -> list[Json]:
    """List sessions, the newest first; those of the client's folder if it names one."""
    body, cursor, found = asked.read(ListBody), "", list[Json]()
    place = asked.place() if asked.folder else ""
    while len(found) < body.limit:
        page = await asked.on_server("sessions.list", cursor=cursor)
        found += [
            shapes.session_json(one["id"], one["cwd"], one["title"], _milliseconds(one["updated_at"]))
            for one in page["sessions"]
            if place in ("", one["cwd"]) and body.search.casefold() in one["title"].casefold()
        ]
        if not (cursor := page["next"]):
            break
    return found[: body.limit]


def _milliseconds(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


async def _statuses(asked: Asked) -> Json:
    """Return the state of each open session."""
    hubs = asked.sessions.hubs.items()
    return {wire_id("ses", name): shapes.status_json(hub.status) for name, hub in hubs if asked.is_wanted(name, hub)}


async def _get(asked: Asked) -> Json:
    """Return a session, which is opened if it is only stored."""
    return shapes.session_of(await asked.hub("session.get"))


async def _update(asked: Asked) -> Json:
    """Give a session another title."""
    asked.refuse("permission", "metadata", "time")
    await asked.on_session("session.change", title=asked.params.get("title"))
    return await _get(asked)


async def _delete(asked: Asked) -> bool:
    """Close a session; its conversation is kept."""
    await asked.on_server("sessions.close", session=asked.session)
    return True


async def _children(asked: Asked) -> list[Json]:
    """Return no sessions: subagents are calls of their session."""
    await asked.hub("session.get")
    return []


async def _fork(asked: Asked) -> Json:
    """Open a copy of a session, up to its end."""
    asked.refuse("messageID")
    state = await asked.on_server("sessions.fork", session=asked.session)
    return shapes.session_of(asked.sessions.hubs[state["session"]["id"]])


async def _abort(asked: Asked) -> bool:
    """Stop the running turn."""
    await asked.on_session("session.cancel")
    return True


async def _todo(asked: Asked) -> list[Json]:
    """Return the todo list."""
    return shapes.todos_json(from_json(Sequence[ChecklistItem], await asked.on_session("todos.list")))


async def _diff(asked: Asked) -> list[Json]:
    """Return the files that the session changed."""
    asked.refuse("messageID")
    changes = from_json(FileRestore, await asked.on_session("changes.list"))
    return shapes.diff_json(changes.files)


class MessagesBody(Body):
    """A part of the conversation."""

    limit: int | None = Field(default=None, ge=1)
    before: str = ""


async def _messages(asked: Asked) -> list[Json]:
    """Return the messages, oldest first; the newest of them if they are many."""
    body, hub = asked.read(MessagesBody), await asked.hub("session.messages")
    told = list(shapes.told_messages(newest_messages(hub.session.conversation.messages), Facts.of(hub)))
    if body.before:
        names = [one["info"]["id"] for one in told]
        if body.before not in names:
            raise NotFoundError("there is no such message; read the conversation again")
        told = told[: names.index(body.before)]
    return told[-body.limit :] if body.limit else told


async def _message(asked: Asked) -> Json:
    """Return a message with its parts."""
    hub = await asked.hub("session.messages")
    return told_message(hub, own_id("msg", str(asked.params["messageID"])))


def told_message(hub: Hub, own: str) -> Json:
    """Return a message of a session with its parts.

    Raises:
        NotFoundError: There is none.
    """
    wanted = wire_id("msg", own)
    told = shapes.told_messages(hub.session.conversation.messages, Facts.of(hub))
    if (found := next((one for one in told if one["info"]["id"] == wanted), None)) is None:
        raise NotFoundError("there is no such message; read the conversation again")
    return found


async def _permissions(asked: Asked) -> list[Json]:
    """Return the questions about calls that wait for an answer."""
    return [
        SessionEvents(hub).permission(number, question)
        for name, hub in asked.sessions.hubs.items()
        if asked.is_wanted(name, hub)
        for number, question in hub.questions.open.items()
        if isinstance(question, PermissionQuestion)
    ]


async def _questions(asked: Asked) -> list[Json]:
    """Return the questions of the model, and the plans, that wait for an answer."""
    return [
        question_json(hub.epoch, number, question, wire_id("ses", name))
        for name, hub in asked.sessions.hubs.items()
        if asked.is_wanted(name, hub)
        for number, question in hub.questions.open.items()
        if not isinstance(question, PermissionQuestion)
    ]


async def _reply_to_permission(asked: Asked) -> bool:
    """Answer a question about a call: once, always or reject."""
    named = asked.params.get("requestID") or asked.params.get("permissionID")
    hub, number, question = _open_question(asked, *place_of_question("per", str(named)))
    said = asked.params.get("reply") or asked.params.get("response")
    words = asked.params.get("message")
    answer = permission_answer(question, str(said), words if isinstance(words, str) else "")
    return await _answer(asked, hub, number, answer)


class ReplyBody(Body):
    """Answers to questions of the model."""

    answers: tuple[tuple[str, ...], ...]


async def _reply_to_question(asked: Asked) -> bool:
    """Answer questions of the model, or approve a plan by the name of a mode."""
    hub, number, question = _open_question(asked, *place_of_question("que", str(asked.params["requestID"])))
    return await _answer(asked, hub, number, question_answer(question, asked.read(ReplyBody).answers))


async def _reject_question(asked: Asked) -> bool:
    """Reject questions of the model, or a plan."""
    hub, number, question = _open_question(asked, *place_of_question("que", str(asked.params["requestID"])))
    return await _answer(asked, hub, number, question_answer(question, None))


def _open_question(asked: Asked, epoch: str, number: int) -> tuple[Hub, int, Question]:
    for name, hub in asked.sessions.hubs.items():
        if hub.epoch == epoch and asked.may_read(name) and (question := hub.questions.open.get(number)) is not None:
            return hub, number, question
    raise NotFoundError("this question does not wait for an answer any more")


async def _answer(asked: Asked, hub: Hub, number: int, answer: Json) -> bool:
    told = await asked.on(hub, "session.answer", id=number, answer=answer)
    if not told["counts"]:
        raise NotFoundError("this question does not wait for an answer any more")
    return True


SESSION_CALLS: Sequence[Offered] = (
    Offered("GET", "/session", _list, "session.list"),
    Offered("POST", "/session", _create, "session.create"),
    Offered("GET", "/session/status", _statuses, "session.status"),
    Offered("GET", "/session/{id}", _get, "session.get"),
    Offered("PATCH", "/session/{id}", _update, "session.update"),
    Offered("DELETE", "/session/{id}", _delete, "session.delete"),
    Offered("GET", "/session/{id}/children", _children, "session.children"),
    Offered("POST", "/session/{id}/fork", _fork, "session.fork"),
    Offered("POST", "/session/{id}/abort", _abort, "session.abort"),
    Offered("GET", "/session/{id}/todo", _todo, "session.todo"),
    Offered("GET", "/session/{id}/diff", _diff, "session.diff"),
    Offered("GET", "/session/{id}/message", _messages, "session.messages"),
    Offered("GET", "/session/{id}/message/{messageID}", _message, "session.message"),
    Offered("POST", "/session/{id}/permissions/{permissionID}", _reply_to_permission, "permission.respond"),
    Offered("GET", "/permission", _permissions, "permission.list"),
    Offered("POST", "/permission/{requestID}/reply", _reply_to_permission, "permission.reply"),
    Offered("GET", "/question", _questions, "question.list"),
    Offered("POST", "/question/{requestID}/reply", _reply_to_question, "question.reply"),
    Offered("POST", "/question/{requestID}/reject", _reject_question, "question.reject"),
)
